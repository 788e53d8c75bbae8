"""The asyncio client as a broker will use it: leaders, coordinators, pipelined fetches of raw batches."""

import asyncio
from uuid import UUID

import uvloop

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import TopicPartition
from kaspar.client.async_client import AsyncClient
from kaspar.client.asynchronous import AsyncConnection
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.coordinators import MOVING, CoordinatorKind, request_coordinator
from kaspar.protocol.messages import fetch
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.records import Codec, Record, build_batch, iter_records
from tests.compat.scenario import NewTopic
from tests.peers.brokers import Brokers

BATCHES = 50


def test_batches_are_written_to_the_leader_and_fetched_ahead(broker: Brokers, new_topic: NewTopic) -> None:
    topic = new_topic()
    where = TopicPartition(topic, 0)

    async def test() -> None:
        async with AsyncClient(broker.bootstrap) as client:
            for number in range(BATCHES):
                batch = build_batch([Record(number, None, b"%d" % number)], codec=Codec.LZ4)
                assert await client.produce(topic, 0, bytes(batch)) is not None
            assert await client.offset_at(topic, 0, LATEST_TIMESTAMP) == BATCHES
            leader = client.core.address_of(await client.leader_of(where))
            topic_id = client.core.topic_id_of(topic)
        async with await AsyncConnection.connect(*leader, records_in_place=True, max_in_flight=5) as connection:
            requests = [_fetch(topic, topic_id, offset) for offset in range(BATCHES)]
            responses = await connection.request_all(requests)
        values: list[bytes | None] = []
        for offset, response in enumerate(responses):
            assert isinstance(response, fetch.FetchResponse)
            records = memoryview(response.responses[0].partitions[0].records or b"")
            values += [record.value for record in iter_records(records) if record.offset == offset]
        assert values == [b"%d" % number for number in range(BATCHES)]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test())


def _fetch(topic: str, topic_id: UUID, offset: int) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
    wanted = fetch.FetchTopic(topic=topic, topic_id=topic_id, partitions=(partition,))
    return fetch.FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, topics=(wanted,))


def test_transaction_coordinator_is_found_and_asked(broker: Brokers) -> None:
    async def test() -> None:
        async with AsyncClient(broker.bootstrap) as client:

            async def init(transactional_id: str) -> InitProducerIdResponse:
                message = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=10_000)
                return await client.run(
                    request_coordinator(
                        client.core,
                        CoordinatorKind.TRANSACTION,
                        transactional_id,
                        message,
                        InitProducerIdResponse,
                        retry_on=MOVING | {ErrorCode.CONCURRENT_TRANSACTIONS},
                        resend=True,
                    )
                )

            responses = await asyncio.gather(*[init(f"async-{number}") for number in range(20)])
            assert {response.error_code for response in responses} == {ErrorCode.NONE}
            assert len({response.producer_id for response in responses}) == 20
            assert (await init("async-0")).producer_epoch == 1

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test())
