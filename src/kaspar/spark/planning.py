"""What a micro-batch or a batch reads, and how it is cut into tasks: decisions alone, no broker and no clock.

Ranges are cut by the bytes they hold, not by the count of their records, so that a topic with one large partition, or
with large records in one, keeps every core busy. A small batch gets few tasks, since each costs more than its records.
The parts of a partition's range follow one another without a gap.
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
"""Where nobody may know how large partitions are: then they count by their records, as if these were so large."""

TASK_BYTES = 8 * 1024 * 1024
"""What is worth a task of its own: less is read sooner than a second task has started."""


@dataclass(frozen=True)
class OffsetRange(InputPartition):
    """Offsets of one partition, from `start` up to but not with `end`."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: UUID = ZERO_UUID
    """The topic that was meant when the range was planned, should another of its name take its place."""
    from_earliest: bool = False
    """Whether records before `start` are not missed, nor any that are removed before they are read."""
    to_latest: bool = False
    """Whether the range goes on behind `end` if its partition does when it is read."""

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
    """What one task reads: its ranges, one after the other."""

    ranges: tuple[OffsetRange, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one micro-batch may hold; None: no such limit."""

    min_offsets: int | None = None
    max_offsets: int | None = None
    max_bytes: int | None = None
    max_delay_ms: int = 0
    """A batch of fewer than `min_offsets` waits for more at most so long."""


@dataclass(frozen=True, slots=True)
class Parallelism:
    """How many tasks are wanted."""

    cores: int
    packs: bool = False
    """Whether `cores` is known for certain. Then small ranges share tasks, since more than so many cannot run."""
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    splits: bool = True
    """Whether a partition is cut because it is large, though neither of the two above asks for it."""


# --- limits -----------------------------------------------------------------------------------------------------------


def available(start: PartitionOffsets, latest: PartitionOffsets) -> int:
    """How many offsets are there to be read; `start` has every partition that `latest` has."""
    return sum(max(offset - start[where], 0) for where, offset in latest.items())


def waits_for_more(limits: Limits, offsets: int, *, since_last_batch_ms: float) -> bool:
    """Whether so few offsets are left for a later micro-batch."""
    if limits.min_offsets is None or since_last_batch_ms >= limits.max_delay_ms:
        return False
    return offsets < limits.min_offsets


def limited(
    limits: Limits, start: PartitionOffsets, latest: PartitionOffsets, bytes_per_offset: Mapping[TopicPartition, float]
) -> dict[TopicPartition, int]:
    """Where the micro-batch ends, so that it keeps the limits; every partition gets its share of what it has."""
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
    """A limit shared out in proportion; what is there counts by its weight.

    As Spark's connector has it: a share below one offset is one, so that no small partition starves.
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
    """A range on its way to be cut; the one with the largest parts comes first."""

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
    """The tasks that read all of these ranges, each of which is of another partition.

    Empty ranges need no task; those that may have something when they are read go with the last one.
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
    """Into how many parts each range is cut: the largest one again and again, until none is too large."""
    most = wanted.max_records_per_partition
    cuts = [
        _Cut(index, 1 if most is None else ceil(len(each) / most), size, len(each))
        for index, (each, size) in enumerate(zip(ranges, sizes, strict=True))
    ]
    heapq.heapify(cuts)
    count = sum(cut.parts for cut in cuts)
    # A part may be a tenth larger than an even share: it is not cut in two for that.
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
    """So many tasks, of about the same size: the largest pieces are given first, each to the task that has least."""
    loads = [(0.0, number) for number in range(count)]
    packs: list[list[OffsetRange]] = [[] for _ in range(count)]
    for size, piece in sorted(pieces, key=lambda each: -each[0]):
        load, number = heapq.heappop(loads)
        packs[number].append(piece)
        heapq.heappush(loads, (load + size, number))
    return [ReadTask(tuple(sorted(pack, key=lambda each: (each.topic_partition, each.start)))) for pack in packs]
