"""The first append to a log after a start: what it has to read from the disk is read in a thread."""

import threading
from pathlib import Path

import pytest

from kaspar.storage.files import Files
from kaspar.storage.indexes import OffsetIndex
from tests.unit.broker.running import Client, create_topic, run, running
from tests.unit.storage.logs import make_batch, read_values


def test_the_first_append_after_a_start_reads_the_index_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded_in: list[threading.Thread] = []
    load = OffsetIndex.load

    def watched(files: Files, path: str) -> OffsetIndex:
        loaded_in.append(threading.current_thread())
        return load(files, path)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "topic", index_interval_bytes="0")
            client = Client(broker)
            assert not partition.log.cold  # it is new
            for value in (b"1", b"2", b"3"):
                client.produce(("topic", 0, make_batch([value])))
                await client.produced()

        monkeypatch.setattr(OffsetIndex, "load", staticmethod(watched))
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
