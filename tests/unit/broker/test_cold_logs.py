"""The first append to a log after a start: what it has to read from the disk is read in a thread."""

import threading
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.storage.disk.files import Files
from kaspar.storage.segments.indexes import OffsetIndex
from tests.unit.broker.running import Client, create_topic, run, running
from tests.unit.broker.transactions import Coordinator, P, batch_of, end, produce
from tests.unit.storage.logs import make_batch, read_values


@pytest.fixture
def loaded_in(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """Which threads have read an index."""
    threads: list[threading.Thread] = []
    load = OffsetIndex.load

    def watched(files: Files, path: str) -> OffsetIndex:
        threads.append(threading.current_thread())
        return load(files, path)

    monkeypatch.setattr(OffsetIndex, "load", staticmethod(watched))
    return threads


def test_the_first_append_after_a_start_reads_the_index_in_a_thread(
    tmp_path: Path, loaded_in: list[threading.Thread]
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "topic", index_interval_bytes="0")
            client = Client(broker)
            assert not partition.log.cold  # it is new
            for value in (b"1", b"2", b"3"):
                client.produce(("topic", 0, make_batch([value])))
                await client.produced()

        loaded_in.clear()
        async with running(tmp_path) as broker:
            partition = broker.partitions.by_name["topic"].partitions[0]
            assert partition.log.cold
            client = Client(broker)
            # The second finds the log cold too, and must not overtake the first.
            client.produce(("topic", 0, make_batch([b"4"])))
            client.produce(("topic", 0, make_batch([b"5"])))
            assert [(await client.produced())[0].base_offset for _ in range(2)] == [3, 4]
            assert threading.main_thread() not in loaded_in
            assert len(loaded_in) == 1
            assert [value for _, value in read_values(partition.log)] == [b"1", b"2", b"3", b"4", b"5"]

    run(scenario())


def test_transactions_read_the_index_of_a_cold_log_in_a_thread(
    tmp_path: Path, loaded_in: list[threading.Thread]
) -> None:
    """The first batch of one, when it is verified, and the marker of one that was open before the start."""

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            partitions = await create_topic(broker, "topic", 2, index_interval_bytes="0")
            Coordinator(broker)
            client = Client(broker)
            produce(client, ("topic", 0, batch_of(P, 0)), ("topic", 1, batch_of(P, 0)))
            await client.produced()
            assert await end(broker, partitions[0], P, committed=True) is ErrorCode.NONE

        loaded_in.clear()
        async with running(tmp_path) as broker:
            ended, still_open = broker.partitions.by_name["topic"].partitions.values()
            assert ended.log.cold
            assert still_open.log.cold
            Coordinator(broker)
            client = Client(broker)
            produce(client, ("topic", 0, batch_of(P, 1, b"1")))
            produce(client, ("topic", 0, batch_of(P, 2, b"2")))
            assert [(await client.produced())[0].base_offset for _ in range(2)] == [2, 3]
            assert await end(broker, still_open, P, committed=True) is ErrorCode.NONE
            assert threading.main_thread() not in loaded_in
            assert len(loaded_in) == 2

    run(scenario())


def test_what_was_read_for_a_segment_that_is_no_longer_active_is_dropped(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "topic")
            client = Client(broker)
            client.produce(("topic", 0, make_batch()))
            await client.produced()
        async with running(tmp_path) as broker:
            log = broker.partitions.by_name["topic"].partitions[0].log
            read = log.read_cold()
            log.roll(now_ms=broker.clock.now_ms())
            active = log.segments.all[-1]
            own = active.index
            log.warm_up(read)
            assert active.index is own

    run(scenario())
