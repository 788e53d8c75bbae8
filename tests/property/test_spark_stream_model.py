"""A stream that goes on after losses reads every record that is left, and none twice, whatever happens to its topics.

Topics grow, lose their first records, get partitions, are deleted and recreated; the query triggers with and without
limits, crashes and runs its last batch again. In the end it has read all that was left for it to read.
"""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.spark.reading.common_time import Stamp
from kaspar.spark.reading.data_loss import StartOfLog
from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import Limits, OffsetRange
from kaspar.spark.reading.stream_planner import StreamPlanner
from kaspar.spark.reading.subscription import Assignment

TOPICS = ("a", "b")
OPTIONS = ReadOptions.of({"kafka.bootstrap.servers": "a:1", "subscribePattern": ".*", "failOnDataLoss": "false"})
BY_TIMESTAMP = replace(OPTIONS, limit_by_timestamp=True)

_Result = TypeVar("_Result")
Record = tuple[uuid.UUID, int, int]
"""The id of its topic, its partition and its offset."""


class Planner(StreamPlanner):
    def _look_at(self, where: TopicPartition, first: int) -> StartOfLog:
        return StartOfLog(first)


class Cluster:
    """Logs as (first offset, end), and metadata that is as old as the last look at it, unless refreshed."""

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, tuple[int, int]] = {}
        self.ids: dict[str, uuid.UUID] = {}
        self.known: Assignment | None = None
        self.meanwhile: list[Callable[[], None]] = []
        """What happens right after the next lookup of end offsets."""

    def assignment(self, *, max_age_s: float) -> Assignment:
        if self.known is None or max_age_s == 0:
            self.known = Assignment(dict(self.ids), frozenset(self.logs))
        return self.known

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        found = {where: self._log(where)[1] for where in partitions}
        while self.meanwhile:
            self.meanwhile.pop()()
        return found

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self.latest(partitions)

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {where: self._log(where)[0] for where in partitions}

    def _log(self, where: TopicPartition) -> tuple[int, int]:
        if where not in self.logs:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{where} is not there")
        return self.logs[where]

    def bytes_per_offset(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, float]:
        return dict.fromkeys(partitions, 10.0)

    def retry_if_gone(self, look: Callable[[], _Result]) -> _Result:
        for _ in range(3):
            try:
                return look()
            except Refused:
                self.known = None
        return look()

    def stamps(self, where: TopicPartition, offset: int) -> list[Stamp]:
        """Records of topic b are older than those of a; a batch has two of them."""
        first, end = self._log(where)
        if offset < first:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, f"{where} begins at {first}")
        return [Stamp(each, self._time(where, each)) for each in range(offset, min(offset + 2, end))]

    def offsets_at(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        found = {}
        for where in partitions:
            later = [offset for offset in range(*self._log(where)) if self._time(where, offset) >= timestamp]
            found[where] = min(later, default=-1)
        return found

    def _time(self, where: TopicPartition, offset: int) -> int:
        return offset * 10 + (100 if where.topic == "a" else 0)

    def request(self, ask: Callable[[Client], _Result]) -> _Result:
        raise NotImplementedError


class Stream(RuleBasedStateMachine):
    options = OPTIONS

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.planner = self._start_process()
        self.checkpoint: dict[TopicPartition, int] = {}
        self.read: list[Record] = []
        self.removed: set[Record] = set()
        self.unseen_change = False
        """A topic was recreated, and the process that remembers its old id has not looked since."""

    def _start_process(self) -> StreamPlanner:
        self.cluster.known = None
        return Planner(self.options, self.cluster, now=lambda: 0.0, sleep=lambda seconds: None)

    # --- topics -------------------------------------------------------------------------------------------------------

    @rule(topic=st.sampled_from(TOPICS), partitions=st.integers(1, 3))
    def create(self, topic: str, partitions: int) -> None:
        if topic not in self.cluster.ids:
            self.cluster.ids[topic] = uuid.uuid4()
            self.cluster.logs |= {TopicPartition(topic, number): (0, 0) for number in range(partitions)}

    @rule(topic=st.sampled_from(TOPICS))
    def delete(self, topic: str) -> None:
        for where in [each for each in self.cluster.logs if each.topic == topic]:
            self._remove(where, self.cluster.logs[where][1])
            del self.cluster.logs[where]
            self.unseen_change = True
        self.cluster.ids.pop(topic, None)

    @rule(topic=st.sampled_from(TOPICS))
    def add_partition(self, topic: str) -> None:
        numbers = [where.partition for where in self.cluster.logs if where.topic == topic]
        if numbers:
            self.cluster.logs[TopicPartition(topic, max(numbers) + 1)] = (0, 0)

    @rule(data=st.data(), count=st.integers(1, 5))
    def append(self, data: st.DataObject, count: int) -> None:
        if self.cluster.logs:
            where = data.draw(st.sampled_from(sorted(self.cluster.logs)))
            first, end = self.cluster.logs[where]
            self.cluster.logs[where] = first, end + count

    @rule(data=st.data(), count=st.integers(1, 5))
    def remove_first(self, data: st.DataObject, count: int) -> None:
        if self.cluster.logs:
            where = data.draw(st.sampled_from(sorted(self.cluster.logs)))
            first, end = self.cluster.logs[where]
            self._remove(where, min(first + count, end))

    def _remove(self, where: TopicPartition, before: int) -> None:
        first, end = self.cluster.logs[where]
        self.removed |= {(self.cluster.ids[where.topic], where.partition, offset) for offset in range(first, before)}
        self.cluster.logs[where] = before, end

    @rule(topic=st.sampled_from(TOPICS), count=st.integers(0, 9), is_recreated=st.booleans())
    def deleted_in_mid_look(self, topic: str, count: int, is_recreated: bool) -> None:
        def change() -> None:
            self.delete(topic)
            if is_recreated:
                self.create(topic, 1)
                self.cluster.logs[TopicPartition(topic, 0)] = 0, count

        self.cluster.meanwhile.append(change)

    @rule()
    def metadata_ages(self) -> None:
        self.cluster.known = None

    # --- the query ----------------------------------------------------------------------------------------------------

    @rule(most=st.none() | st.integers(1, 4), in_bytes=st.booleans())
    def trigger(self, most: int | None, in_bytes: bool) -> None:
        limits = Limits(
            max_offsets=None if in_bytes else most, max_bytes=most * 10 if in_bytes and most is not None else None
        )
        self._run(limits)

    def _run(self, limits: Limits) -> bool:
        start = dict(self.checkpoint)
        self.unseen_change = False
        end = self.planner.next_end(start, limits)
        assert end is not None
        if end == start:
            return False
        self._take(self.planner.ranges(start, end))
        self.checkpoint = end
        return True

    @precondition(lambda self: not self.unseen_change)
    @rule(again=st.booleans())
    def crash(self, again: bool) -> None:
        """And start again; maybe after the next batch was begun and before it was done: then it is run again."""
        start = dict(self.checkpoint)
        self.cluster.meanwhile.clear()
        end = self.planner.next_end(start, Limits()) if again else start
        assert end is not None
        self.planner = self._start_process()
        if end != start:
            self._take(self.planner.ranges(start, end))
            self.checkpoint = end

    def _take(self, ranges: Iterable[OffsetRange]) -> None:
        for each in ranges:
            if each.topic_id != self.cluster.ids.get(each.topic):
                continue  # a task sees that, too, and reads nothing of another topic
            first, end = self.cluster.logs[each.topic_partition]
            assert not len(each) or first <= each.start <= each.end <= end, "only what is there is asked for"
            self.read += [(each.topic_id, each.partition, offset) for offset in range(each.start, each.end)]

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_read_twice(self) -> None:
        assert len(self.read) == len(set(self.read))

    def teardown(self) -> None:
        self._run(Limits())  # with all that was to happen meanwhile
        for _ in range(10):
            self.metadata_ages()
            if not self._run(Limits()):
                break
        else:
            raise AssertionError("the stream does not come to rest")
        there = {
            (self.cluster.ids[where.topic], where.partition, offset)
            for where, (first, end) in self.cluster.logs.items()
            for offset in range(first, end)
        }
        assert there <= set(self.read), f"never read: {sorted(there - set(self.read))}"


class StreamByTimestamp(Stream):
    options = BY_TIMESTAMP


TestStream = Stream.TestCase
TestStreamByTimestamp = StreamByTimestamp.TestCase
TestStream.settings = TestStreamByTimestamp.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
