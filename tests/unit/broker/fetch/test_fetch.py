"""Fetch requests to a whole broker: limits, waiting, cold data, sessions, and a response to every request."""

import asyncio
import time
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker.fetch import reading
from kaspar.broker.fetch.delayed_fetch import DelayedFetch
from kaspar.broker.fetch.reading import MAX_COPIED_BYTES
from kaspar.broker.server import Broker
from kaspar.controller.events import DeleteTopics, TopicReference
from kaspar.network.connection import Connection
from kaspar.replication.partition import Partition
from kaspar.storage import Log
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.source import NotCached
from tests.unit.broker.running import Client, alive, create_topic, run, running, sizes, until, without_collector
from tests.unit.replication.partitions import append
from tests.unit.storage.logs import make_batch

SOME = bytes(10_000)
FOR_EVER_MS = 2**31 - 1


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is in the page cache: every read has to wait for the disk."""

    def pread_now(directory: LogDirectory, fd: int, length: int, position: int) -> bytes:
        raise NotCached

    monkeypatch.setattr(LogDirectory, "pread_now", pread_now)


async def filled_topic(broker: Broker, partitions: int, *, batches: int = 1, size: int = 10_000) -> list[Partition]:
    found = await create_topic(broker, "t", partitions)
    for partition in found:
        for _ in range(batches):
            append(partition, make_batch([bytes(size)]))
    return found


def waiting(broker: Broker) -> int:
    return broker.pipeline.purgatories()[1].delayed


def test_one_bad_partition_does_not_fail_its_neighbours(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await filled_topic(broker, 2)
            client = Client(broker)
            client.fetch(("t", 0, 0), ("t", 1, 99), ("t", 7, 0), max_wait_ms=FOR_EVER_MS, min_bytes=1 << 20)
            response = await client.fetched()
            codes = {
                partition.partition_index: partition.error_code
                for topic in response.responses
                for partition in topic.partitions
            }
            assert codes == {0: 0, 1: ErrorCode.OFFSET_OUT_OF_RANGE, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            assert sizes(response)["t", 0] > 10_000

    run(scenario())


def test_what_is_not_committed_is_neither_given_nor_out_of_range(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t", flush_messages="1")
            append(partition)
            append(partition)
            assert (partition.high_watermark, partition.log.log_end_offset) == (0, 2)
            client = Client(broker)
            for offset in (0, 1, 2):
                client.fetch(("t", 0, offset))
                (topic,) = (await client.fetched()).responses
                assert (topic.partitions[0].error_code, topic.partitions[0].records) == (0, b"")
            client.fetch(("t", 0, 3))
            (topic,) = (await client.fetched()).responses
            assert topic.partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    run(scenario())


def test_a_fetch_waits_until_there_is_enough(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            first, second = await create_topic(broker, "t", 2)
            client = Client(broker)
            client.fetch(("t", 0, 0), ("t", 1, 0), max_wait_ms=FOR_EVER_MS, min_bytes=15_000)
            append(first, make_batch([SOME]))
            assert waiting(broker) == 1
            append(second, make_batch([SOME]))
            assert min(sizes(await client.fetched()).values()) > 10_000
            assert waiting(broker) == 0

    run(scenario())


def test_a_fetch_returns_what_there_is_when_its_wait_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            client = Client(broker)
            client.fetch(("t", 0, 0), max_wait_ms=20, min_bytes=1 << 20)
            append(partition, make_batch([SOME]))
            assert sizes(await client.fetched())["t", 0] > 10_000

    run(scenario())


def test_a_full_response_waits_for_no_more(tmp_path: Path) -> None:
    """A client may ask for a minimum beyond what the broker puts into one response."""

    async def scenario() -> None:
        async with running(tmp_path, fetch_max_bytes=str(4 << 20)) as broker:
            await filled_topic(broker, 5, batches=2, size=900_000)
            client = Client(broker)
            wanted = [("t", index, 0) for index in range(5)]
            client.fetch(*wanted, max_wait_ms=FOR_EVER_MS, min_bytes=1 << 30)
            assert 4 * 900_000 < sum(sizes(await client.fetched()).values()) <= 4 << 20

    run(scenario())


def test_a_copied_response_is_full_much_earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogDirectory, "cached_length", lambda *_: 0)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await filled_topic(broker, 5, batches=2, size=900_000)
            client = Client(broker)
            wanted = [("t", index, 0) for index in range(5)]
            client.fetch(*wanted, max_wait_ms=FOR_EVER_MS, min_bytes=1 << 30)
            assert sum(sizes(await client.fetched()).values()) == MAX_COPIED_BYTES

    run(scenario())


def test_a_large_response_leaves_out_partial_batches(tmp_path: Path) -> None:
    """And does not wait for it, however much the client wants at least."""

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await filled_topic(broker, 1, batches=5, size=300_000)
            client = Client(broker)
            client.fetch(("t", 0, 0), max_wait_ms=FOR_EVER_MS, min_bytes=1 << 20, partition_max_bytes=1 << 20)
            assert sizes(await client.fetched()) == {("t", 0): partition.log.size * 3 // 5}

    run(scenario())


def test_a_local_client_gets_much_of_one_partition_in_several_responses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none of them waits for more, however much the client wants at least."""
    monkeypatch.setattr(reading, "NEARBY_SLICE_BYTES", 700_000)
    monkeypatch.setattr(Connection, "is_nearby", True)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await filled_topic(broker, 1, batches=5, size=300_000)
            client = Client(broker)
            batch = partition.log.size // 5
            for offset, batches in ((0, 2), (2, 2), (4, 1)):
                least = (5 - offset) * batch
                client.fetch(("t", 0, offset), max_wait_ms=FOR_EVER_MS, min_bytes=least, partition_max_bytes=8 << 20)
                assert sizes(await client.fetched()) == {("t", 0): batches * batch}

    run(scenario())


def test_what_was_read_before_the_wait_takes_its_room_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await filled_topic(broker, 1, batches=6)
            size = partition.log.size
            client = Client(broker)
            client.fetch(("t", 0, 0), max_wait_ms=FOR_EVER_MS, min_bytes=size + 1, max_bytes=size + 5_000)
            assert waiting(broker) == 1
            append(partition, make_batch([SOME]))
            assert sizes(await client.fetched()) == {("t", 0): size + 5_000}

    run(scenario())


def test_a_fetch_of_a_client_that_is_gone_waits_no_longer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            client = Client(broker)
            client.fetch(("t", 0, 0), max_wait_ms=FOR_EVER_MS)
            assert waiting(broker) == 1
            client.connection.connection_lost(None)
            assert waiting(broker) == 0
            assert not partition.fetch_waiters

    run(scenario())


def test_deleting_the_topic_completes_waiting_fetches(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            client = Client(broker)
            client.fetch(("t", 0, 0), max_wait_ms=FOR_EVER_MS)
            await broker.controller.submit(DeleteTopics((TopicReference("t"),)))
            (topic,) = (await client.fetched()).responses
            assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario())


@pytest.mark.usefixtures("cold")
def test_cold_partitions_are_all_in_the_response_though_there_is_no_room_for_all(tmp_path: Path) -> None:
    """The Java client drops a full response in which a partition is missing, and asks for the same again."""

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            size = (await filled_topic(broker, 4))[0].log.size
            client = Client(broker)
            wanted = [("t", index, 0) for index in range(4)]
            client.fetch(*wanted, max_bytes=2 * size)
            assert list(sizes(await client.fetched()).values()) == [size, size, 0, 0]

    run(scenario())


@pytest.mark.usefixtures("cold")
def test_the_time_that_cold_reads_take_is_part_of_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await filled_topic(broker, 1)
            real = Log.read

            def slow_read(log: Log, *arguments: int, whole_first_batch: bool) -> bytes | bytearray:
                time.sleep(0.3)
                return real(log, *arguments, whole_first_batch=whole_first_batch)

            monkeypatch.setattr(Log, "read", slow_read)
            client = Client(broker)
            started = time.perf_counter()
            client.fetch(("t", 0, 0), max_wait_ms=300, min_bytes=1 << 20)
            await client.fetched()
            assert time.perf_counter() - started < 0.55

    run(scenario())


@pytest.mark.usefixtures("cold")
def test_a_bug_in_a_cold_read_closes_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await filled_topic(broker, 1)

            def broken_read(log: Log, *arguments: int, whole_first_batch: bool) -> bytes:
                raise ZeroDivisionError("a bug")

            monkeypatch.setattr(Log, "read", broken_read)
            client = Client(broker)
            client.fetch(("t", 0, 0))
            await until(client.transport.is_closing)

    run(scenario())


@pytest.mark.usefixtures("cold")
def test_a_client_that_goes_while_cold_data_is_read_is_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await filled_topic(broker, 1)
            client = Client(broker)
            client.fetch(("t", 0, 0), max_wait_ms=FOR_EVER_MS, min_bytes=1 << 20)
            client.connection.connection_lost(None)
            await broker.threads.run_blocking(lambda: None)
            await asyncio.sleep(0)
            assert waiting(broker) == 0
            assert not partition.fetch_waiters

    run(scenario())


def test_a_session_reports_only_changes_and_served_partitions_come_last(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            first, second = await filled_topic(broker, 2)
            client = Client(broker)
            client.fetch(("t", 0, 0), ("t", 1, 0), session_epoch=0, max_bytes=1)
            full = await client.fetched()
            assert [size > 0 for size in sizes(full).values()] == [True, False]
            client.fetch(session_id=full.session_id, session_epoch=1, max_bytes=1)
            assert list(sizes(await client.fetched())) == [("t", 1)]
            client.fetch(("t", 0, 1), ("t", 1, 1), session_id=full.session_id, session_epoch=2)
            assert sizes(await client.fetched()) == {}
            append(second)
            client.fetch(session_id=full.session_id, session_epoch=3)
            assert list(sizes(await client.fetched())) == [("t", 1)]
            assert first.high_watermark == 1

    run(scenario())


def test_a_fetch_that_waited_is_released_with_its_response(tmp_path: Path) -> None:
    """It holds the records: they must not stay until the collector comes."""

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            client = Client(broker)
            client.fetch(("t", 0, 0), max_wait_ms=5)
            assert alive(DelayedFetch) == 1
            await client.fetched()
            assert alive(DelayedFetch) == 0, "its time was over"
            client.fetch(("t", 0, 0), max_wait_ms=FOR_EVER_MS)
            append(partition, make_batch([bytes(200_000)]))
            await client.fetched()
            assert alive(DelayedFetch) == 0, "there was enough"

    with without_collector():
        run(scenario())


@pytest.mark.usefixtures("cold")
def test_a_fetch_of_cold_data_is_released_with_its_response(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await filled_topic(broker, 1)
            client = Client(broker)
            client.fetch(("t", 0, 0))
            await client.fetched()
            await until(lambda: alive(DelayedFetch) == 0)

    with without_collector():
        run(scenario())


def test_a_fetch_is_gone_with_its_client(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await filled_topic(broker, 1)
            client = Client(broker)
            client.fetch(("t", 0, 0), max_wait_ms=FOR_EVER_MS, min_bytes=1 << 20)
            assert alive(DelayedFetch) == 1
            client.connection.connection_lost(None)
            assert alive(DelayedFetch) == 0

    with without_collector():
        run(scenario())
