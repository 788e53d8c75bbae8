"""Where the micro-batches of a stream start and end, and which of their records are lost: the state of a running query.

Reading does not always begin at the start that Spark names. A new partition begins at its first offset, and so does a
partition that lost records or whose topic was recreated, if the query continues after a loss. The offset where each
partition begins is determined together with the end, and kept until the query has moved on; for a batch that a
restarted query repeats, it is determined again. A loss is reported before Spark stores the end of the batch, so a query
that stopped because of it can be restarted with other options.

Topic ids are kept while the process lives: the checkpoint has only offsets, in the format of Spark's connector.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Protocol, TypeVar
from uuid import UUID

from kaspar.base.errors import MalformedBytes, Refused
from kaspar.base.ids import ZERO_UUID, TopicPartition
from kaspar.base.log import get_log
from kaspar.client import Client
from kaspar.protocol.isolation_level import READ_COMMITTED
from kaspar.spark.offsets import PartitionOffsets
from kaspar.spark.reading import data_loss
from kaspar.spark.reading.common_time import Stamp, ending_together
from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import Limits, OffsetRange, available, limited, waits_for_more
from kaspar.spark.reading.subscription import Assignment, matches

log = get_log(__name__)

METADATA_AGE_S = 1.0
"""How often to look for new partitions and topics. A query without a pause between triggers asks for offsets a hundred
times as often."""

_Result = TypeVar("_Result")


class Cluster(Protocol):
    """The part of OffsetReader that planning needs."""

    def assignment(self, *, max_age_s: float) -> Assignment: ...
    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...
    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...
    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...
    def bytes_per_offset(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, float]: ...
    def retry_if_gone(self, look: Callable[[], _Result]) -> _Result: ...
    def request(self, ask: Callable[[Client], _Result]) -> _Result: ...
    def stamps(self, where: TopicPartition, offset: int) -> Sequence[Stamp]: ...
    def offsets_at(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]: ...


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
        """The ends of the partitions when they were last looked up."""
        self.topic_ids: dict[str, UUID] = {}
        """The ids of the topics whose offsets were determined, at that time."""
        self.is_available_now = False
        """Whether the trigger is AvailableNow: read what exists at the first call, then end."""
        self._cluster = cluster
        self._target: PartitionOffsets | None = None
        """Where a query with AvailableNow ends; None for any other."""
        self._now = now
        self._sleep = sleep
        self._start: PartitionOffsets | None = None
        self._begins: dict[TopicPartition, int] = {}
        """The offsets where reading begins after `_start`, for the partitions where they are known."""
        self._gone: set[TopicPartition] = set()
        self._last_batch_at = float("-inf")

    # --- the next micro-batch -----------------------------------------------------------------------------------------

    def next_end(self, start: PartitionOffsets, limits: Limits) -> dict[TopicPartition, int] | None:
        """Where the micro-batch after `start` ends; None if it waits for more records."""
        self._cluster.retry_if_gone(lambda: self._refresh(start))
        begins = self.position()
        count = available(begins, self.latest)
        waited_ms = (self._now() - self._last_batch_at) * 1000
        # A query with AvailableNow must not wait for more.
        if not self.is_available_now and waits_for_more(limits, count, since_last_batch_ms=waited_ms):
            return None
        self._last_batch_at = self._now()
        sizes = {} if limits.max_bytes is None else self._cluster.bytes_per_offset(frozenset(self.latest))
        end = limited(limits, begins, self.latest, sizes)
        if self.options.limit_by_timestamp and end != self.latest:
            end = self._ending_together(limits, begins, end, sizes)
        if count and end == start:
            # A recreated topic that is as long as the old one: Spark runs a batch only if the offsets differ.
            recreated = next(where for where, offset in end.items() if offset > begins[where])
            end[recreated] -= 1
        return end

    def _ending_together(
        self,
        limits: Limits,
        begins: PartitionOffsets,
        end: dict[TopicPartition, int],
        sizes: Mapping[TopicPartition, float],
    ) -> dict[TopicPartition, int]:
        try:
            return ending_together(limits, begins, end, self.latest, sizes, self._cluster)
        except (Refused, MalformedBytes) as problem:
            # Records may have been deleted a moment ago, for example. The next batch finds out whether they are lost.
            log.warning(f"A micro-batch is limited without regard to timestamps: {problem}.")
            return end

    def _refresh(self, start: PartitionOffsets) -> None:
        there = self._there(start.keys())
        for topic in {where.topic for where in start} & there.topic_ids.keys():
            self.topic_ids.setdefault(topic, there.topic_ids[topic])
        latest = self._latest(start, there)
        if latest != start:
            # The offsets belong to the current topics only if these also existed before the offsets were looked up.
            known, there = there, self._there(start.keys(), max_age_s=0.0)
            if there != known:
                latest = self._latest(start, there)
        self._find_begins(start, latest, there)
        self.latest = latest

    def position(self) -> dict[TopicPartition, int]:
        """The offsets where the last requested micro-batch begins: everything before is processed or lost."""
        return {where: self._begins.get(where, end) for where, end in self.latest.items()}

    def ranges(self, start: PartitionOffsets, end: PartitionOffsets) -> list[OffsetRange]:
        """The ranges that a micro-batch reads."""
        if start == self._start and end.keys() <= self._begins.keys() | start.keys():
            begins, ends = {**start, **self._begins}, dict(end)
        else:
            begins, ends = self._cluster.retry_if_gone(lambda: self._replan(start, end))
        return [OffsetRange(*where, begins[where], ends[where], self.topic_ids[where.topic]) for where in sorted(ends)]

    def _replan(
        self, start: PartitionOffsets, end: PartitionOffsets
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """The start and end of a batch that began before the query was restarted: its topics may have changed since."""
        there = self._there(end.keys())
        latest = self._ends(end, there, there.partitions & end.keys())
        ends = {}
        for where, offset in latest.items():
            if offset < end[where]:
                self._report(data_loss.truncated(where, end[where], offset), f"reads {where} up to there")
            ends[where] = min(offset, end[where])
        self._find_begins(start, ends, there)
        return {**start, **self._begins}, ends

    # --- partitions and their ends ------------------------------------------------------------------------------------

    def _there(self, expected: Set[TopicPartition], *, max_age_s: float = METADATA_AGE_S) -> Assignment:
        """The subscribed partitions now. A missing one is looked up again: a broker may not know it yet."""
        there = self._cluster.assignment(max_age_s=max_age_s)
        for _ in range(self.options.offset_attempts - 1):
            if self._gone.issuperset(expected - there.partitions):
                break
            self._sleep(self.options.offset_retry_interval_ms / 1000)
            there = self._cluster.assignment(max_age_s=0.0)
        gone = expected - there.partitions - self._gone
        if gone:
            left = sorted(where for where in gone if not matches(self.options.subscription, where))
            sentence = (
                data_loss.unsubscribed(left, self.options.subscription) if left else data_loss.deleted(sorted(gone))
            )
            self._report(sentence, "continues without it")
            self._gone |= gone
            for topic in {where.topic for where in gone} - there.topic_ids.keys():
                # If the topic reappears it is another one, unless it has the known id.
                self.topic_ids.setdefault(topic, ZERO_UUID)
        self._gone -= there.partitions
        return there

    def _latest(self, start: PartitionOffsets, there: Assignment) -> dict[TopicPartition, int]:
        """The ends of the partitions; with AvailableNow those of the first call."""
        latest = self._ends(start, there, there.partitions)
        if not self.is_available_now:
            return latest
        if self._target is None:
            self._target = latest
        return {where: min(offset, self._target[where]) for where, offset in latest.items() if where in self._target}

    def _ends(
        self, known: PartitionOffsets, there: Assignment, partitions: Set[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The ends of these partitions. An end before a known offset is looked up again, since a new leader may lag."""
        ends = self._readable(known, partitions)
        for _ in range(self.options.offset_attempts - 1):
            if self._recreated(there) or all(known.get(where, 0) <= offset for where, offset in ends.items()):
                break
            self._sleep(self.options.offset_retry_interval_ms / 1000)
            ends = self._readable(known, partitions)
        return ends

    def _readable(self, known: PartitionOffsets, partitions: Set[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of each partition for a reader; the known offset, if that is inside or after an open transaction."""
        latest = self._cluster.latest(partitions)
        if self.options.isolation_level == READ_COMMITTED:
            behind = {where for where, offset in latest.items() if offset < known.get(where, 0)}
            for where, offset in self._cluster.high_watermarks(behind).items():
                latest[where] = min(offset, known[where])
        return latest

    def _recreated(self, there: Assignment) -> dict[str, tuple[UUID, UUID]]:
        """The topics that were recreated, with the old and the new id."""
        return {
            topic: (self.topic_ids[topic], topic_id)
            for topic, topic_id in there.topic_ids.items()
            if self.topic_ids.get(topic, topic_id) != topic_id
        }

    # --- where reading begins -----------------------------------------------------------------------------------------

    def _find_begins(self, start: PartitionOffsets, ends: PartitionOffsets, there: Assignment) -> None:
        """Find where reading begins in each partition with new records. A loss is reported when it is first seen."""
        if start != self._start:
            self._start, self._begins = dict(start), {}
        for topic, (old, new) in self._recreated(there).items():
            self._report(data_loss.recreated(topic, old, new), f"reads the new {topic!r} from its beginning")
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
            self._report(data_loss.truncated(where, start, end), f"continues at offset {end} of {where}")
            return end
        if start < first:
            lost = data_loss.removed(where, start, self._look_at(where, first))
            self._report(lost, f"continues at offset {first} of {where}")
            return first
        return start

    def _look_at(self, where: TopicPartition, first: int) -> data_loss.StartOfLog:
        return self._cluster.request(lambda client: data_loss.start_of_log(client, where, first))

    def _report(self, sentence: str, otherwise: str) -> None:
        data_loss.report(sentence, fail_on_data_loss=self.options.fail_on_data_loss, otherwise=otherwise)
