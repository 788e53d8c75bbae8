"""Limited micro-batches that end at the same time in all partitions, of logs that are lists of timestamps."""

import random
from collections.abc import Iterable, Sequence

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.spark.reading.common_time import Stamp, ending_together
from kaspar.spark.reading.planning import Limits, limited

TABLE, STREAM = TopicPartition("table", 0), TopicPartition("stream", 0)
MARKER_TIME = 1_000_000


class Logs:
    """Timestamps by offset; None is a gap. Batches have three offsets."""

    def __init__(self, *, markers: bool = False, **logs: Sequence[int | None]) -> None:
        self.logs = {TopicPartition(name, 0): log for name, log in logs.items()}
        self.markers = markers
        """Whether every batch ends with a marker, at the offset of its last gap."""
        self.requests = 0

    def stamps(self, where: TopicPartition, offset: int) -> Sequence[Stamp]:
        self.requests += 1
        log = self.logs[where]
        while offset < len(log):
            end = min(offset // 3 * 3 + 3, len(log))
            found = [Stamp(each, time) for each in range(offset, end) if (time := log[each]) is not None]
            if found:
                return found
            offset = end
        return []

    def offsets_at(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        return {
            where: next((offset for offset, time in enumerate(self.logs[where]) if self._time(time) >= timestamp), -1)
            for where in partitions
        }

    def _time(self, time: int | None) -> int:
        return time if time is not None else MARKER_TIME if self.markers else -1

    def batches(self, max_offsets: int) -> list[dict[TopicPartition, int]]:
        """The ends of all batches."""
        at, latest = dict.fromkeys(self.logs, 0), {where: len(log) for where, log in self.logs.items()}
        limits, ends = Limits(max_offsets=max_offsets), []
        while at != latest:
            end = limited(limits, at, latest, {})
            if end != latest:
                end = ending_together(limits, at, end, latest, {}, self)
            assert sum(end.values()) > sum(at.values()), "every batch has a record"
            at = end
            ends.append(end)
        return ends

    def order(self, max_offsets: int) -> list[int]:
        """The timestamps in the order of processing: each batch is sorted by time."""
        processed: list[int] = []
        at = dict.fromkeys(self.logs, 0)
        for end in self.batches(max_offsets):
            of_batch = [time for where, log in self.logs.items() for time in log[at[where] : end[where]]]
            processed += sorted(time for time in of_batch if time is not None)
            at = end
        return processed


def test_a_table_that_is_older_is_read_before_the_stream() -> None:
    logs = Logs(table=range(100), stream=range(1000, 1100))
    assert logs.batches(40) == [
        {TABLE: 40, STREAM: 0},
        {TABLE: 80, STREAM: 0},
        {TABLE: 100, STREAM: 0},
        {TABLE: 100, STREAM: 40},
        {TABLE: 100, STREAM: 80},
        {TABLE: 100, STREAM: 100},
    ]


def test_topics_of_the_same_time_are_read_together() -> None:
    logs = Logs(table=range(0, 1000, 10), stream=range(1000))
    ends = logs.batches(110)
    assert len(ends) == 10
    assert all(abs(end[STREAM] - 10 * end[TABLE]) <= 10 for end in ends)


@pytest.mark.parametrize("markers", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_records_are_processed_in_the_order_of_their_timestamps(seed: int, markers: bool) -> None:
    rng = random.Random(seed)

    def log() -> list[int | None]:
        base, spread = rng.randrange(500), rng.choice([5, 50, 1000])
        times: list[int | None] = [*sorted(base + rng.randrange(spread) for _ in range(rng.randrange(1, 200)))]
        return [None if number % 3 == 2 and markers else time for number, time in enumerate(times)]

    logs = Logs(table=log(), stream=log(), other=log(), markers=markers)
    order = logs.order(rng.randrange(1, 60))
    assert order == sorted(order)


@pytest.mark.parametrize("seed", range(20))
def test_timestamps_without_order_do_not_make_batches_small(seed: int) -> None:
    rng = random.Random(seed)
    logs = Logs(
        table=[rng.randrange(1000) for _ in range(300)], stream=[number + rng.randrange(100) for number in range(300)]
    )
    assert len(logs.batches(60)) < 30


def test_records_of_the_same_time_are_no_obstacle() -> None:
    assert len(Logs(table=[7] * 100, stream=[7] * 100).batches(50)) == 4


def test_brokers_are_asked_few_things() -> None:
    logs = Logs(table=range(3000), stream=range(1500, 4500))
    batches = len(logs.batches(600))
    assert logs.requests <= 6 * batches
