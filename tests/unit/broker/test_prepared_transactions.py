"""While a transaction is prepared, a producer with the epoch of its records cannot add to it."""

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.markers import Marker
from kaspar.broker.produce.verification import TransactionCoordinator
from kaspar.broker.server import Broker
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kaspar.records import Codec
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.broker.transactions import batch_of, produce
from tests.unit.storage.logs import make_batch

TRANSACTIONAL_ID = "t-id"
NOISE = random.Random(1).randbytes(100_000)
SETTINGS = {
    "transaction_two_phase_commit_enable": "true",
    "transaction_state_log_num_partitions": "1",
    "offsets_topic_num_partitions": "1",
}


async def coordinated(broker: Broker) -> None:
    await broker.transactions.runtime.ensure_topic()
    await broker.groups.runtime.ensure_topic()
    await until(lambda: bool(broker.transactions.runtime.active_shards() and broker.groups.runtime.active_shards()))


async def prepare_code(client: Client, producer: ProducerIdAndEpoch) -> int:
    return (await initialize(client, producer)).error_code


async def init(client: Client, *, prepare: ProducerIdAndEpoch | None = None) -> ProducerIdAndEpoch:
    response = await initialize(client, prepare)
    assert response.error_code == ErrorCode.NONE
    return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)


async def initialize(client: Client, prepare: ProducerIdAndEpoch | None) -> InitProducerIdResponse:
    producer_id, producer_epoch = prepare or (-1, -1)
    client.send(
        InitProducerIdRequest(
            transactional_id=TRANSACTIONAL_ID,
            transaction_timeout_ms=60_000,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            enable_2pc=prepare is not None,
            keep_prepared_txn=prepare is not None,
        ),
        version=6,
    )
    return await client.response(InitProducerIdResponse)


def slow_batch(producer: ProducerIdAndEpoch, sequence: int) -> bytearray:
    return make_batch(
        [NOISE],
        codec=Codec.GZIP,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=sequence,
        transactional=True,
    )


def test_the_epoch_of_a_prepared_transactions_records_is_fenced_at_its_partitions(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            written, untouched = await create_topic(broker, "t", 2)
            await coordinated(broker)
            owner, zombie = Client(broker), Client(broker)
            before = await init(owner)
            produce(zombie, ("t", 0, batch_of(before, 0)))
            assert [response.error_code for response in await zombie.produced()] == [0]
            prepared = await init(owner, prepare=before)
            for partition, batch in ((0, batch_of(before, 1)), (0, slow_batch(before, 1)), (1, batch_of(before, 0))):
                produce(zombie, ("t", partition, batch))
                assert [response.error_code for response in await zombie.produced()] == [
                    ErrorCode.INVALID_PRODUCER_EPOCH
                ]
            produce(owner, ("t", 0, batch_of(prepared, 0)))
            assert [response.error_code for response in await owner.produced()] == [ErrorCode.INVALID_TXN_STATE]
            assert [written.log.log_end_offset, untouched.log.log_end_offset] == [2, 0], "a record and the fence"
            assert written.last_stable_offset == 0
            owner.send(
                EndTxnRequest(
                    transactional_id=TRANSACTIONAL_ID,
                    producer_id=prepared.producer_id,
                    producer_epoch=prepared.producer_epoch,
                    committed=True,
                ),
                version=5,
            )
            assert (await owner.response(EndTxnResponse)).error_code == ErrorCode.NONE
            await until(lambda: written.last_stable_offset == written.log.log_end_offset)

    run(scenario())


def test_a_batch_that_is_being_checked_when_its_transaction_is_prepared_is_not_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            (partition,) = await create_topic(broker, "t")
            await coordinated(broker)
            owner, zombie = Client(broker), Client(broker)
            producer = await init(owner)
            produce(zombie, ("t", 0, batch_of(producer, 0)))
            await zombie.produced()
            produce(zombie, ("t", 0, slow_batch(producer, 1)))
            await init(owner, prepare=producer)
            (late,) = await zombie.produced()
            if late.error_code == ErrorCode.NONE:
                assert late.base_offset == 1, "it came before the fence"
                assert partition.log.log_end_offset == 3
            else:
                assert late.error_code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
                assert partition.log.log_end_offset == 2

    run(scenario())


def test_what_the_coordinator_has_confirmed_is_void_when_the_fence_comes_first(tmp_path: Path) -> None:
    """The leader has asked before the transaction was prepared, and gets the response after its fence."""

    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            (partition,) = await create_topic(broker, "t")
            await coordinated(broker)
            owner, zombie = Client(broker), Client(broker)
            producer = await init(owner)
            verify, asked, go_on = broker.verifier.coordinator.verify, asyncio.Event(), asyncio.Event()

            async def slow(*question: Any, add: bool) -> Mapping[TopicPartition, ErrorCode]:
                codes = await verify(*question, add=add)
                asked.set()
                await go_on.wait()
                return codes

            broker.verifier.coordinator = cast(TransactionCoordinator, SimpleNamespace(verify=slow))
            produce(zombie, ("t", 0, batch_of(producer, 0)))
            await asked.wait()
            await init(owner, prepare=producer)
            assert partition.log.log_end_offset == 1, "the fence"
            go_on.set()
            (late,) = await zombie.produced()
            assert late.error_code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
            assert partition.log.log_end_offset == 1

    run(scenario())


def test_who_asks_hears_that_a_transaction_is_prepared_when_every_partition_has_its_fence(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t", 2)
            await coordinated(broker)
            owner = Client(broker)
            producer = await init(owner)
            for partition in range(2):
                produce(owner, ("t", partition, batch_of(producer, 0)))
                await owner.produced()
            give, held = broker.transactions.markers._give, asyncio.Event()

            async def hold(partition: TopicPartition, marker: Marker) -> ErrorCode:
                if partition.partition == 1:
                    await held.wait()
                return await give(partition, marker)

            broker.transactions.markers._give = hold
            preparing = asyncio.ensure_future(init(owner, prepare=producer))
            await until(lambda: broker.partitions.by_name["t"].partitions[0].log.log_end_offset == 2)
            assert owner.look() == []
            held.set()
            await preparing
            assert broker.partitions.by_name["t"].partitions[1].log.log_end_offset == 2

    run(scenario())


def test_a_request_to_prepare_that_waits_for_too_long_is_to_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kaspar.broker.coordination.transactions.FENCED_WITHIN_S", 0.01)

    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t")
            await coordinated(broker)
            owner = Client(broker)
            producer = await init(owner)
            produce(owner, ("t", 0, batch_of(producer, 0)))
            await owner.produced()
            give, held = broker.transactions.markers._give, asyncio.Event()

            async def hold(partition: TopicPartition, marker: Marker) -> ErrorCode:
                await held.wait()
                return await give(partition, marker)

            broker.transactions.markers._give = hold
            assert await prepare_code(owner, producer) == ErrorCode.CONCURRENT_TRANSACTIONS
            held.set()
            while (code := await prepare_code(owner, producer)) == ErrorCode.CONCURRENT_TRANSACTIONS:
                pass
            assert code == ErrorCode.NONE

    run(scenario())


def test_a_fence_outlives_the_broker_and_what_its_partition_knows_of_producers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t")
            await coordinated(broker)
            owner = Client(broker)
            producer = await init(owner)
            produce(owner, ("t", 0, batch_of(producer, 0)))
            await owner.produced()
            prepared = await init(owner, prepare=producer)
        async with running(tmp_path, **SETTINGS) as broker:
            await coordinated(broker)
            partition = broker.partitions.by_name["t"].partitions[0]
            zombie = Client(broker)
            produce(zombie, ("t", 0, batch_of(producer, 1)))
            assert [response.error_code for response in await zombie.produced()] == [ErrorCode.INVALID_PRODUCER_EPOCH]
            assert await init(zombie, prepare=producer) == prepared
            assert partition.log.log_end_offset == 2, "no second fence is written"

    run(scenario())


def test_offsets_are_committed_by_the_owner_of_a_transaction_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t")
            await coordinated(broker)
            client = Client(broker)
            producer = await init(client)
            offset = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=None)
            request = TxnOffsetCommitRequest(
                transactional_id=TRANSACTIONAL_ID,
                group_id="g",
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(offset,)),),
            )
            codes = []
            for _ in range(2):
                client.send(request, version=5)
                response = await client.response(TxnOffsetCommitResponse)
                codes.append(response.topics[0].partitions[0].error_code)
                if len(codes) == 1:
                    await init(client, prepare=producer)
            assert codes[0] == ErrorCode.NONE
            assert codes[1] == ErrorCode.INVALID_PRODUCER_EPOCH

    run(scenario())
