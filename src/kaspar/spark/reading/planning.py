"""The offset ranges of a batch or micro-batch, and how they are split into tasks. No I/O, no clock.

Ranges are split by bytes, not by record count, so that a topic with one large partition, or with large records in one,
keeps every core busy. A small batch gets few tasks, since a task costs more than its records. The parts of a range are
contiguous.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, floor, inf
from uuid import UUID

from pyspark.sql.datasource import InputPartition

from kaspar.base.ids import ZERO_UUID, TopicPartition
from kaspar.spark.offsets import PartitionOffsets

UNKNOWN_BYTES_PER_OFFSET = 256.0
"""The assumption if partition sizes are unknown, which makes them proportional to the number of records."""

TASK_BYTES = 8 * 1024 * 1024
"""The smallest task: fewer bytes are read faster than a second task starts."""


@dataclass(frozen=True)
class OffsetRange(InputPartition):
    """Offsets of one partition, from `start` (inclusive) to `end` (exclusive)."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: UUID = ZERO_UUID
    """The id of the topic when the range was planned, to detect a recreated topic."""
    from_earliest: bool = False
    """The range starts at the log start offset at the time of reading: earlier records are not a loss."""
    to_latest: bool = False
    """The range ends at the latest offset at the time of reading, which may be after `end`."""

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def binds_late(self) -> bool:
        return self.from_earliest or self.to_latest

    def __len__(self) -> int:
        return max(self.end - self.start, 0)


@dataclass(frozen=True)
class ReadTask(InputPartition):
    """The ranges that one task reads, in order."""

    ranges: tuple[OffsetRange, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one micro-batch; None means no such limit."""

    min_offsets: int | None = None
    max_offsets: int | None = None
    max_bytes: int | None = None
    max_delay_ms: int = 0
    """How long a batch of fewer than `min_offsets` waits for more."""


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The desired number of tasks."""

    cores: int
    packs: bool = False
    """Whether `cores` is exact. Then small ranges share tasks, since no more tasks can run at once."""
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    splits: bool = True
    """Whether a partition is split because it is large, even if neither of the two above requires it."""


# --- limits -----------------------------------------------------------------------------------------------------------


def available(start: PartitionOffsets, latest: PartitionOffsets) -> int:
    """The number of offsets to read; `start` has every partition that `latest` has."""
    return sum(max(offset - start[where], 0) for where, offset in latest.items())


def waits_for_more(limits: Limits, offsets: int, *, since_last_batch_ms: float) -> bool:
    """Whether there are so few offsets that they wait for a later micro-batch."""
    if limits.min_offsets is None or since_last_batch_ms >= limits.max_delay_ms:
        return False
    return offsets < limits.min_offsets


def limited(
    limits: Limits, start: PartitionOffsets, latest: PartitionOffsets, bytes_per_offset: Mapping[TopicPartition, float]
) -> dict[TopicPartition, int]:
    """The end of the micro-batch within the limits. Each partition's share is in proportion to its unread records."""
    end = dict(latest)
    if limits.max_offsets is not None:
        end = _shares(limits.max_offsets, start, end, dict.fromkeys(end, 1.0))
    if limits.max_bytes is not None:
        sizes = {where: bytes_per_offset.get(where, UNKNOWN_BYTES_PER_OFFSET) for where in end}
        end = _shares(limits.max_bytes, start, end, sizes)
    return end


def _shares(
    limit: int, start: PartitionOffsets, latest: PartitionOffsets, weights: Mapping[TopicPartition, float]
) -> dict[TopicPartition, int]:
    """Share out the limit in proportion to the weighted size of each partition.

    A share below one offset is rounded up to one, as in Spark's connector, so that no small partition starves.
    """
    sizes = {where: (end - start[where]) * weights[where] for where, end in latest.items() if end > start[where]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(latest)
    ends = dict(latest)
    for where, size in sizes.items():
        share = limit * (size / total) / weights[where]
        ends[where] = min(latest[where], start[where] + (ceil(share) if share < 1 else floor(share)))
    return ends


# --- tasks ------------------------------------------------------------------------------------------------------------


@dataclass(order=True, slots=True)
class _Cut:
    """A range to be split; the one with the largest parts comes first."""

    priority: float = field(init=False)
    index: int
    parts: int = field(compare=False)
    size: float = field(compare=False)
    offsets: int = field(compare=False)

    def __post_init__(self) -> None:
        self.weigh()

    def weigh(self) -> None:
        self.priority = -self.part_size if self.parts < self.offsets else 0.0

    @property
    def part_size(self) -> float:
        return self.size / self.parts


def tasks(
    ranges: Sequence[OffsetRange], bytes_per_offset: Mapping[TopicPartition, float], wanted: Parallelism
) -> list[ReadTask]:
    """The tasks that read all of these ranges, each of a different partition.

    Empty ranges need no task; those that may have records by the time they are read are added to the last one.
    """
    full = sorted((each for each in ranges if len(each)), key=lambda each: each.topic_partition)
    sizes = [len(each) * bytes_per_offset.get(each.topic_partition, UNKNOWN_BYTES_PER_OFFSET) for each in full]
    parts = _parts(full, sizes, wanted)
    pieces: list[tuple[float, OffsetRange]] = []
    for each, size, count in zip(full, sizes, parts, strict=True):
        pieces += [(size / count, piece) for piece in _cut(each, count)]
    few = max(wanted.cores, wanted.min_partitions or 0)
    if wanted.packs and wanted.max_records_per_partition is None and len(pieces) > few:
        planned = _packed(pieces, few)
    else:
        planned = [ReadTask((piece,)) for _, piece in pieces]
    if idle := tuple(each for each in ranges if not len(each) and each.to_latest):
        last = planned.pop().ranges if planned else ()
        planned.append(ReadTask((*last, *idle)))
    return planned


def _parts(ranges: Sequence[OffsetRange], sizes: Sequence[float], wanted: Parallelism) -> list[int]:
    """The number of parts of each range: repeatedly split the one with the largest parts, until none is too large."""
    most = wanted.max_records_per_partition
    cuts = [
        _Cut(index, 1 if most is None else ceil(len(each) / most), size, len(each))
        for index, (each, size) in enumerate(zip(ranges, sizes, strict=True))
    ]
    heapq.heapify(cuts)
    count = sum(cut.parts for cut in cuts)
    # A part may be a tenth larger than an even share before it is split.
    largest = 1.1 * max(sum(sizes) / wanted.cores, TASK_BYTES) if wanted.splits else inf
    while cuts and cuts[0].priority < 0 and (cuts[0].part_size > largest or count < (wanted.min_partitions or 0)):
        cuts[0].parts += 1
        count += 1
        cuts[0].weigh()
        heapq.heapreplace(cuts, cuts[0])
    return [cut.parts for cut in sorted(cuts, key=lambda cut: cut.index)]


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    bounds = [whole.start + len(whole) * part // parts for part in range(parts + 1)]
    return [
        replace(whole, start=start, end=end, to_latest=whole.to_latest and end == whole.end)
        for start, end in pairwise(bounds)
    ]


def _packed(pieces: Sequence[tuple[float, OffsetRange]], count: int) -> list[ReadTask]:
    """`count` tasks of about the same size: the largest pieces first, each to the task with the least so far."""
    loads = [(0.0, number) for number in range(count)]
    packs: list[list[OffsetRange]] = [[] for _ in range(count)]
    for size, piece in sorted(pieces, key=lambda each: -each[0]):
        load, number = heapq.heappop(loads)
        packs[number].append(piece)
        heapq.heappush(loads, (load + size, number))
    return [ReadTask(tuple(sorted(pack, key=lambda each: (each.topic_partition, each.start)))) for pack in packs]
