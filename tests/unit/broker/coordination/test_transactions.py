"""The transaction coordinator in a broker: what waits for what, and what a directory that fails does not hold up."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.markers import Marker
from kaspar.broker.server import Broker
from kaspar.controller.events import DeleteTopics, ProducerIdBlock, TopicReference
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.transactions.state import Transaction, TransactionState
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.broker.transactions import batch_of, produce

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
S = TransactionState


@contextlib.asynccontextmanager
async def coordinating(*folders: Path, **settings: str) -> AsyncIterator[Broker]:
    async with running(*folders, transaction_state_log_num_partitions="1", **settings) as broker:
        await broker.transactions.runtime.ensure_topic()
        await until(lambda: bool(broker.transactions.runtime.active_shards()))
        yield broker


async def new_producer(client: Client, transactional_id: str) -> ProducerIdAndEpoch:
    client.send(InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000), version=5)
    response = await client.response(InitProducerIdResponse)
    assert response.error_code == ErrorCode.NONE
    return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)


async def write(
    client: Client, transactional_id: str, producer: ProducerIdAndEpoch, *partitions: TopicPartition
) -> None:
    for topic, partition in partitions:
        produce(client, (topic, partition, batch_of(producer, 0)), transactional_id=transactional_id)
        (response,) = await client.produced()
        assert response.error_code == ErrorCode.NONE


async def commit(client: Client, transactional_id: str, producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=True,
    )
    client.send(request, version=5)
    response = await client.response(EndTxnResponse)
    assert response.error_code == ErrorCode.NONE
    return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)


def transaction(broker: Broker, transactional_id: str) -> Transaction:
    (shard,) = broker.transactions.runtime.active_shards().values()
    return shard.transactions[transactional_id]


def directory_of(broker: Broker, partition: TopicPartition) -> str:
    log = broker.logs.get(partition)
    assert log is not None
    return str(Path(log.folder).parent)


def fail_directory_of(broker: Broker, partition: TopicPartition) -> None:
    broker.failures.log_directory_failed(StorageFailure(directory_of(broker, partition), "the disk is gone"))


def apart_from_the_coordinator(broker: Broker) -> tuple[TopicPartition, TopicPartition]:
    """A partition in another directory than the coordinator's own, and one in the same."""
    own = directory_of(broker, TopicPartition("__transaction_state", 0))
    (other,) = [partition for partition in (A, B) if directory_of(broker, partition) != own]
    return other, A if other == B else B


def test_a_partition_whose_directory_failed_holds_up_its_own_transactions_only_and_gets_its_marker_later(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        folders = (tmp_path / "a", tmp_path / "b")
        async with coordinating(*folders) as broker:
            await create_topic(broker, "t", 2)
            failing, sound = apart_from_the_coordinator(broker)
            client = Client(broker)
            torn = await new_producer(client, "torn")
            await write(client, "torn", torn, failing, sound)
            whole = await new_producer(client, "whole")
            await write(client, "whole", whole, sound)
            fail_directory_of(broker, failing)

            await commit(client, "torn", torn)
            await commit(client, "whole", whole)
            await until(lambda: transaction(broker, "whole").state is S.COMPLETE_COMMIT)
            await until(lambda: broker.transactions.markers.waiting_count == 1)
            assert transaction(broker, "torn").state is S.PREPARE_COMMIT
            log = broker.logs.get(sound)
            assert log is not None
            assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset, (
                "the sound partition has its marker"
            )

        async with running(*folders) as broker:
            await until(lambda: bool(broker.transactions.runtime.active_shards()))
            await until(lambda: transaction(broker, "torn").state is S.COMPLETE_COMMIT)
            log = broker.logs.get(failing)
            assert log is not None
            assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset

    run(scenario())


def test_a_topic_that_is_deleted_is_waited_for_no_longer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with coordinating(tmp_path / "a", tmp_path / "b") as broker:
            await create_topic(broker, "t", 2)
            failing, _ = apart_from_the_coordinator(broker)
            client = Client(broker)
            producer = await new_producer(client, "torn")
            await write(client, "torn", producer, failing)
            fail_directory_of(broker, failing)
            await commit(client, "torn", producer)
            await until(lambda: broker.transactions.markers.waiting_count == 1)
            await broker.controller.submit(DeleteTopics((TopicReference(name="t"),)))
            await until(lambda: transaction(broker, "torn").state is S.COMPLETE_COMMIT)

    run(scenario())


def test_a_coordinator_that_is_out_of_touch_for_a_while_gives_no_marker_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with coordinating(tmp_path) as broker:
            await create_topic(broker, "t")
            client = Client(broker)
            producer = await new_producer(client, "id")
            await write(client, "id", producer, A)
            give, in_touch = broker.transactions.markers._give, True
            broker.transactions.runtime._services = replace(broker.coordinators.services, in_touch=lambda: in_touch)

            async def fails_at_first(partition: TopicPartition, marker: Marker) -> ErrorCode:
                nonlocal in_touch
                in_touch = False
                broker.transactions.markers._give = give
                return ErrorCode.NETWORK_EXCEPTION

            broker.transactions.markers._give = fails_at_first
            await commit(client, "id", producer)
            await until(lambda: transaction(broker, "id").state is S.COMPLETE_COMMIT)
            assert not in_touch

    run(scenario())


def test_the_next_transaction_goes_on_as_soon_as_the_one_before_is_complete(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with coordinating(tmp_path, add_partitions_to_txn_retry_backoff_max_ms="60000") as broker:
            await create_topic(broker, "t", 2)
            client = Client(broker)
            producer = await new_producer(client, "id")
            await write(client, "id", producer, A)
            hold = asyncio.Event()
            give = broker.transactions.markers._give

            async def held_back(*arguments: object, **named: object) -> ErrorCode:
                await hold.wait()
                return await give(*arguments, **named)  # type: ignore[arg-type]

            broker.transactions.markers._give = held_back
            following = await commit(client, "id", producer)
            asked = asyncio.ensure_future(broker.transactions.verify("id", following, [A], add=True))
            twice = asyncio.ensure_future(broker.transactions.verify("id", following, [B], add=True))
            gone = asyncio.ensure_future(broker.transactions.verify("id", following, [B], add=True))
            await asyncio.sleep(0)
            assert transaction(broker, "id").state is S.PREPARE_COMMIT
            gone.cancel()
            hold.set()
            assert await asked == {A: ErrorCode.NONE}
            assert await twice == {B: ErrorCode.NONE}
            assert transaction(broker, "id").partitions == frozenset({A, B})

    run(scenario())


def test_a_request_that_waits_too_long_has_to_retry(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with coordinating(tmp_path, add_partitions_to_txn_retry_backoff_max_ms="1") as broker:
            await create_topic(broker, "t", 2)
            client = Client(broker)
            producer = await new_producer(client, "id")
            await write(client, "id", producer, A)

            async def never(*arguments: object, **named: object) -> ErrorCode:
                await asyncio.Event().wait()
                return ErrorCode.NONE

            broker.transactions.markers._give = never
            following = await commit(client, "id", producer)
            codes = await broker.transactions.verify("id", following, [A], add=True)
            assert codes == {A: ErrorCode.CONCURRENT_TRANSACTIONS}
            assert await broker.transactions.verify("id", following, [A], add=False) == codes

    run(scenario())


def test_an_unknown_id_is_reported_to_the_caller(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with coordinating(tmp_path) as broker:
            for add in (True, False):
                codes = await broker.transactions.verify("unknown", ProducerIdAndEpoch(1, 0), [A, B], add=add)
                assert codes == dict.fromkeys((A, B), ErrorCode.INVALID_PRODUCER_ID_MAPPING)

    run(scenario())


def test_only_a_new_transactional_id_needs_a_producer_id_from_the_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While there is none: known ids go on, and who asks a broker that does not coordinate is sent elsewhere."""

    async def scenario() -> None:
        async with coordinating(tmp_path) as broker:
            client = Client(broker)
            first = await new_producer(client, "known")

            async def away() -> ProducerIdBlock:
                raise Refused(ErrorCode.REQUEST_TIMED_OUT, "the controller was lost before it replied")

            monkeypatch.setattr(broker.producer_ids, "_allocate", away)
            while broker.producer_ids.available:
                broker.producer_ids.take()
            again = await new_producer(client, "known")
            assert again == ProducerIdAndEpoch(first.producer_id, first.producer_epoch + 1)
            assert await refusal_of(client, "new") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            await broker.transactions.runtime.stop()
            assert await refusal_of(client, "new") is ErrorCode.NOT_COORDINATOR

    async def refusal_of(client: Client, transactional_id: str) -> ErrorCode:
        client.send(InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000), version=5)
        return ErrorCode((await client.response(InitProducerIdResponse)).error_code)

    run(scenario())
