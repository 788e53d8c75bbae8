"""Produce requests to a whole broker: order, commits, time limits, refusals, and a response to every request."""

import asyncio
import random
import struct
import threading
import time
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, StorageFailure
from kaspar.broker.produce.request_append import INLINE_REQUEST_NS
from kaspar.config import LogConfig
from kaspar.records import Codec
from kaspar.storage import Appended, Log, PreparedBatch, prepare
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.storage.logs import make_batch, read_values

NOISE = random.Random(1).randbytes(100_000)
SLOW = make_batch([NOISE] * 2, codec=Codec.GZIP)
"""So much to inflate that it is checked in a thread."""


def test_one_bad_partition_does_not_fail_its_neighbours(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t", 2)
            client = Client(broker)
            damaged = make_batch()
            damaged[-1] ^= 1
            client.produce(("t", 0, make_batch()), ("t", 1, damaged), ("t", 7, make_batch()), ("no", 0, make_batch()))
            codes = [(response.index, response.error_code) for response in await client.produced()]
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert codes == [(0, 0), (1, ErrorCode.CORRUPT_MESSAGE), (7, unknown), (0, unknown)]

    run(scenario())


def test_a_large_batch_whose_length_makes_no_sense_is_one_bad_partition(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t", 2, max_message_bytes="1000")
            client = Client(broker)
            senseless = make_batch([bytes(2000)])
            struct.pack_into(">i", senseless, 8, 3)
            client.produce(("t", 0, senseless), ("t", 1, make_batch()))
            assert [response.error_code for response in await client.produced()] == [ErrorCode.CORRUPT_MESSAGE, 0]

    run(scenario())


def test_what_is_quick_to_check_does_not_overtake_what_is_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            client = Client(broker)
            client.produce(("t", 0, SLOW))
            client.produce(("t", 0, make_batch([b"quick"])))
            client.produce(("t", 0, SLOW))
            offsets = [(await client.produced())[0].base_offset for _ in range(3)]
            assert offsets == [0, 2, 3]
            assert read_values(partition.log)[2] == (2, b"quick")

    run(scenario())


def test_a_bug_met_by_one_batch_closes_its_connection_and_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlucky = make_batch([NOISE] * 3, codec=Codec.GZIP)

    def patched(batch: bytearray, start: int, end: int, config: LogConfig, now_ms: int) -> PreparedBatch:
        if len(batch) == len(unlucky):
            raise ZeroDivisionError("a bug")
        return prepare(batch, start, end, config, now_ms)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            monkeypatch.setattr("kaspar.broker.produce.appender.prepare", patched)
            one, other = Client(broker), Client(broker)
            one.produce(("t", 0, unlucky))
            other.produce(("t", 0, SLOW))
            assert [response.error_code for response in await other.produced()] == [0]
            assert one.transport.is_closing()
            assert not other.transport.is_closing()
            assert (broker.backlog.waiting_count, broker.backlog.waiting_bytes) == (0, 0)

    run(scenario())


def test_a_batch_that_fails_the_directory_completes_those_that_waited_in_the_same_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch waits for its sync; the second finds the disk gone. Nothing is left to wait for then."""

    async def scenario() -> None:
        async with running(tmp_path / "a", tmp_path / "b") as broker:
            first, second, third = await create_topic(broker, "t", 3, flush_messages="1")
            assert first.log.directory is third.log.directory
            real = Log.append_as_leader

            def append(log: Log, prepared: PreparedBatch, *, leader_epoch: int, now_ms: int) -> Appended:
                if log is third.log:
                    raise StorageFailure(log.directory.path, "the disk is gone")
                return real(log, prepared, leader_epoch=leader_epoch, now_ms=now_ms)

            monkeypatch.setattr(Log, "append_as_leader", append)
            client = Client(broker)
            client.produce(("t", 0, make_batch()), ("t", 2, make_batch()))
            codes = [response.error_code for response in await client.produced()]
            assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR]
            assert first.offline
            assert not second.offline

    run(scenario())


def hold_syncs(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Syncs wait until the event is set."""
    may_sync = threading.Event()
    real = Log.flush

    def flush(log: Log) -> object:
        may_sync.wait(20)
        return real(log)

    monkeypatch.setattr(Log, "flush", flush)
    return may_sync


@pytest.mark.parametrize("acks", [1, -1])
def test_group_commit_responds_after_the_sync_and_many_share_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t", flush_messages="1")
            may_sync = hold_syncs(monkeypatch)
            clients = [Client(broker) for _ in range(10)]
            for client in clients:
                client.produce(("t", 0, make_batch()), acks=acks)
            await asyncio.sleep(0)
            assert not any(client.look() for client in clients)
            assert partition.high_watermark == 0
            may_sync.set()
            offsets = {(await client.produced())[0].base_offset for client in clients}
            assert offsets == set(range(10))
            assert partition.log.recovery_point == 10

    run(scenario())


def test_a_produce_that_is_not_committed_in_time_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t", flush_messages="1")
            may_sync = hold_syncs(monkeypatch)
            client = Client(broker)
            client.produce(("t", 0, make_batch()), timeout_ms=5)
            assert [response.error_code for response in await client.produced()] == [ErrorCode.REQUEST_TIMED_OUT]
            may_sync.set()
            client.produce(("t", 0, make_batch()))
            assert [response.base_offset for response in await client.produced()] == [1]

    run(scenario())


def test_a_batch_repeated_in_one_request_fails_in_both_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t", flush_messages="1")
            may_sync = hold_syncs(monkeypatch)
            client = Client(broker)
            batch = make_batch(producer_id=1, producer_epoch=0, base_sequence=0)
            client.produce(("t", 0, batch), ("t", 0, batch), timeout_ms=5)
            timed_out = ErrorCode.REQUEST_TIMED_OUT
            assert [response.error_code for response in await client.produced()] == [timed_out, timed_out]
            may_sync.set()

    run(scenario())


def test_deleting_the_topic_completes_requests_that_wait_for_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t", flush_messages="1")
            may_sync = hold_syncs(monkeypatch)
            client = Client(broker)
            client.produce(("t", 0, make_batch()))
            partition.retire()
            assert [response.error_code for response in await client.produced()] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
            may_sync.set()

    run(scenario())


def test_nothing_is_kept_for_a_client_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t", flush_messages="1")
            may_sync = hold_syncs(monkeypatch)
            client = Client(broker)
            client.produce(("t", 0, make_batch()), timeout_ms=2**31 - 1)
            assert broker.pipeline.purgatories()[0].delayed == 1
            client.connection.connection_lost(None)
            assert broker.pipeline.purgatories()[0].delayed == 0
            may_sync.set()

    run(scenario())


@pytest.mark.parametrize("slow", [False, True])
def test_acks_0_has_no_response_and_a_failure_closes_the_connection(tmp_path: Path, slow: bool) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            client = Client(broker)
            client.produce(("t", 0, SLOW if slow else make_batch()), acks=0)
            await until(lambda: partition.log.log_end_offset > 0)
            assert not client.transport.is_closing()
            client.produce(("t", 0, SLOW if slow else make_batch()), ("no", 0, make_batch()), acks=0)
            assert client.transport.is_closing()
            assert client.look() == []
            await until(lambda: broker.backlog.waiting_count == 0)

    run(scenario())


def test_a_request_with_acks_0_is_counted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            Client(broker).produce(("t", 0, make_batch()), acks=0)
            assert sum(broker.metrics.requests.of("Produce").versions().values()) == 1

    run(scenario())


@pytest.mark.parametrize("settings", [{"queued_max_requests": "3"}, {"queued_max_request_bytes": str(3 * len(SLOW))}])
def test_batches_that_wait_for_their_check_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    """Also with acks=0, where a client waits for no response before it sends more."""
    may_check = threading.Event()

    def patched(batch: bytearray, start: int, end: int, config: LogConfig, now_ms: int) -> PreparedBatch:
        may_check.wait(20)
        return prepare(batch, start, end, config, now_ms)

    async def scenario() -> None:
        async with running(tmp_path, **settings) as broker:
            (partition,) = await create_topic(broker, "t")
            monkeypatch.setattr("kaspar.broker.produce.appender.prepare", patched)
            client = Client(broker)
            for _ in range(20):
                client.produce(("t", 0, SLOW), acks=0)
            assert broker.backlog.waiting_count == 4
            assert not client.transport.is_reading()
            may_check.set()
            await until(lambda: client.look() == [] and partition.log.log_end_offset == 40)
            assert client.transport.is_reading()

    run(scenario())


def test_a_request_with_many_batches_has_no_more_time_than_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them is checked in less than a millisecond; together they would hold up everyone. What is surely quick
    is not worth the way to a thread even then.
    """
    time_ns = 0

    def a_while_later() -> int:
        nonlocal time_ns
        time_ns += INLINE_REQUEST_NS * 2 // 5
        return time_ns

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            partitions = await create_topic(broker, "t", 10)
            monkeypatch.setattr(time, "thread_time_ns", a_while_later)
            client = Client(broker)
            compressed, quick = make_batch([b"small"], codec=Codec.LZ4), make_batch()
            client.produce(*[("t", index, compressed) for index in range(9)], ("t", 9, quick))
            ends = [partition.log.log_end_offset for partition in partitions]
            assert ends == [1, 1, 1, 0, 0, 0, 0, 0, 0, 1]
            assert [response.error_code for response in await client.produced()] == [0] * 10
            assert [partition.log.log_end_offset for partition in partitions] == [1] * 10

    run(scenario())
