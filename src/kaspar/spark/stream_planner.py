"""Where the micro-batches of a stream begin and end, and what of them is lost: the state of a running query.

The start that Spark names is not always where reading begins: a new partition begins at its first offset, and so does a
partition that lost records, or whose topic was made anew, where the query goes on after a loss. Where each begins is
settled together with the end, and kept until the query has moved on; a batch that a restarted query runs again is
settled anew. A loss is reported before Spark writes the end of the batch down, so a query that stops for it can be
started again once its options say what to do.

Topic ids are remembered while the process lives: the checkpoint has offsets alone, in the form of Spark's connector.
"""

import time
from collections.abc import Callable, Iterable, Set
from typing import Protocol, TypeVar
from uuid import UUID

from kaspar.base.ids import ZERO_UUID, TopicPartition
from kaspar.client import Client
from kaspar.spark import data_loss
from kaspar.spark.offsets import PartitionOffsets
from kaspar.spark.options import READ_COMMITTED, ReadOptions
from kaspar.spark.planning import Limits, OffsetRange, available, limited, waits_for_more
from kaspar.spark.subscription import Assignment, is_meant

METADATA_AGE_S = 1.0
"""New partitions and topics are looked for so often: a query without a pause between its triggers asks for offsets a
hundred times as often."""

_Result = TypeVar("_Result")


class Cluster(Protocol):
    """As much of OffsetReader as planning needs."""

    def assignment(self, *, max_age_s: float) -> Assignment: ...
    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...
    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...
    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...
    def bytes_per_offset(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, float]: ...
    def looking_again(self, look: Callable[[], _Result]) -> _Result: ...
    def asking(self, ask: Callable[[Client], _Result]) -> _Result: ...


class StreamPlanner:
    def __init__(
        self,
        options: ReadOptions,
        cluster: Cluster,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.options = options
        self.latest: PartitionOffsets = {}
        """Where the partitions ended when they were last looked at."""
        self.topic_ids: dict[str, UUID] = {}
        """Of the topics whose offsets were settled, as they were then."""
        self.is_available_now = False
        """Whether the query reads what is there when it first asks, and then ends."""
        self._cluster = cluster
        self._target: PartitionOffsets | None = None
        """With AvailableNow: where it ends."""
        self._now = now
        self._sleep = sleep
        self._start: PartitionOffsets | None = None
        self._begins: dict[TopicPartition, int] = {}
        """Where reading begins after `_start`, as far as it is settled."""
        self._gone: set[TopicPartition] = set()
        self._last_batch_at = float("-inf")

    # --- the next micro-batch -----------------------------------------------------------------------------------------

    def next_end(self, start: PartitionOffsets, limits: Limits) -> dict[TopicPartition, int] | None:
        """Where the micro-batch after `start` ends; None where it waits for more."""
        self._cluster.looking_again(lambda: self._look(start))
        begins = self.position()
        count = available(begins, self.latest)
        waited_ms = (self._now() - self._last_batch_at) * 1000
        # A query that ends with what is there must not wait for more.
        if not self.is_available_now and waits_for_more(limits, count, since_last_batch_ms=waited_ms):
            return None
        self._last_batch_at = self._now()
        sizes = {} if limits.max_bytes is None else self._cluster.bytes_per_offset(frozenset(self.latest))
        end = limited(limits, begins, self.latest, sizes)
        if count and end == start:
            # A topic made anew that is as long as the old one: Spark sees something new only in other offsets.
            made_anew = next(where for where, offset in end.items() if offset > begins[where])
            end[made_anew] -= 1
        return end

    def _look(self, start: PartitionOffsets) -> None:
        there = self._there(start.keys())
        for topic in {where.topic for where in start} & there.topic_ids.keys():
            self.topic_ids.setdefault(topic, there.topic_ids[topic])
        latest = self._latest(start, there)
        if latest != start:
            # The offsets are those of the topics that are there now, only if these were there before, too.
            known, there = there, self._there(start.keys(), max_age_s=0.0)
            if there != known:
                latest = self._latest(start, there)
        self._settle(start, latest, there)
        self.latest = latest

    def position(self) -> dict[TopicPartition, int]:
        """Where reading stands before the micro-batch that was asked for last: all before it is done, or lost."""
        return {where: self._begins.get(where, end) for where, end in self.latest.items()}

    def ranges(self, start: PartitionOffsets, end: PartitionOffsets) -> list[OffsetRange]:
        """What a micro-batch reads."""
        if start == self._start and end.keys() <= self._begins.keys() | start.keys():
            begins, ends = {**start, **self._begins}, dict(end)
        else:
            begins, ends = self._cluster.looking_again(lambda: self._again(start, end))
        return [OffsetRange(*where, begins[where], ends[where], self.topic_ids[where.topic]) for where in sorted(ends)]

    def _again(
        self, start: PartitionOffsets, end: PartitionOffsets
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Of a batch that was begun before the query was started again: much can have happened to it since."""
        there = self._there(end.keys())
        latest = self._ends(end, there, there.partitions & end.keys())
        ends = {}
        for where, offset in latest.items():
            if offset < end[where]:
                self._report(data_loss.truncated(where, end[where], offset), f"reads {where} up to there")
            ends[where] = min(offset, end[where])
        self._settle(start, ends, there)
        return {**start, **self._begins}, ends

    # --- what there is ------------------------------------------------------------------------------------------------

    def _there(self, expected: Set[TopicPartition], *, max_age_s: float = METADATA_AGE_S) -> Assignment:
        """The partitions that are meant now. One that is missing is asked for again: a broker may not know it yet."""
        there = self._cluster.assignment(max_age_s=max_age_s)
        for _ in range(self.options.offset_attempts - 1):
            if self._gone.issuperset(expected - there.partitions):
                break
            self._sleep(self.options.offset_retry_interval_ms / 1000)
            there = self._cluster.assignment(max_age_s=0.0)
        gone = expected - there.partitions - self._gone
        if gone:
            left = sorted(where for where in gone if not is_meant(self.options.subscription, where))
            sentence = (
                data_loss.unsubscribed(left, self.options.subscription) if left else data_loss.deleted(sorted(gone))
            )
            self._report(sentence, "goes on without it")
            self._gone |= gone
            for topic in {where.topic for where in gone} - there.topic_ids.keys():
                # Should it come back, it is another one, unless it has the id that is known of this one.
                self.topic_ids.setdefault(topic, ZERO_UUID)
        self._gone -= there.partitions
        return there

    def _latest(self, start: PartitionOffsets, there: Assignment) -> dict[TopicPartition, int]:
        """Where what there is ends; with AvailableNow as it was when that was first asked."""
        latest = self._ends(start, there, there.partitions)
        if not self.is_available_now:
            return latest
        if self._target is None:
            self._target = latest
        return {where: min(offset, self._target[where]) for where, offset in latest.items() if where in self._target}

    def _ends(
        self, known: PartitionOffsets, there: Assignment, partitions: Set[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Where these partitions end. An end before a known offset is asked for again: a leader may be late to know."""
        ends = self._readable(known, partitions)
        for _ in range(self.options.offset_attempts - 1):
            if self._made_anew(there) or all(known.get(where, 0) <= offset for where, offset in ends.items()):
                break
            self._sleep(self.options.offset_retry_interval_ms / 1000)
            ends = self._readable(known, partitions)
        return ends

    def _readable(self, known: PartitionOffsets, partitions: Set[TopicPartition]) -> dict[TopicPartition, int]:
        """Where each ends for a reader; at the known offset, if that lies in or behind an open transaction."""
        latest = self._cluster.latest(partitions)
        if self.options.isolation_level == READ_COMMITTED:
            behind = {where for where, offset in latest.items() if offset < known.get(where, 0)}
            for where, offset in self._cluster.high_watermarks(behind).items():
                latest[where] = min(offset, known[where])
        return latest

    def _made_anew(self, there: Assignment) -> dict[str, tuple[UUID, UUID]]:
        """Topics that took the place of others of their name: the old and the new id."""
        return {
            topic: (self.topic_ids[topic], topic_id)
            for topic, topic_id in there.topic_ids.items()
            if self.topic_ids.get(topic, topic_id) != topic_id
        }

    # --- where reading begins -----------------------------------------------------------------------------------------

    def _settle(self, start: PartitionOffsets, ends: PartitionOffsets, there: Assignment) -> None:
        """Find where reading begins in each partition that has something; a loss is reported when it is first seen."""
        if start != self._start:
            self._start, self._begins = dict(start), {}
        for topic, (old, new) in self._made_anew(there).items():
            self._report(data_loss.made_anew(topic, old, new), f"reads the new {topic!r} from its beginning")
            self._begins |= self._cluster.earliest(where for where in ends if where.topic == topic)
        self.topic_ids |= there.topic_ids
        open_ones = [where for where, end in ends.items() if where not in self._begins and start.get(where) != end]
        first = self._cluster.earliest(open_ones)
        for where in open_ones:
            self._begins[where] = self._begin_of(where, start.get(where), first[where], ends[where])

    def _begin_of(self, where: TopicPartition, start: int | None, first: int, end: int) -> int:
        if start is None:
            if first > 0:
                self._report(data_loss.removed(where, 0, self._look_at(where, first)), f"reads {where} from {first} on")
            return first
        if start > end:
            self._report(data_loss.truncated(where, start, end), f"goes on at offset {end} of {where}")
            return end
        if start < first:
            lost = data_loss.removed(where, start, self._look_at(where, first))
            self._report(lost, f"goes on at offset {first} of {where}")
            return first
        return start

    def _look_at(self, where: TopicPartition, first: int) -> data_loss.StartOfLog:
        return self._cluster.asking(lambda client: data_loss.start_of_log(client, where, first))

    def _report(self, sentence: str, goes_on: str) -> None:
        data_loss.report(sentence, fail_on_data_loss=self.options.fail_on_data_loss, goes_on=goes_on)
