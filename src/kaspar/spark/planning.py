"""What a micro-batch or a batch reads, and how it is cut into tasks: decisions alone, no broker and no clock.

Ranges are cut by the bytes they hold, not by the count of their records, so that a topic with one large partition, or
with large records in one, keeps every core busy. A small batch gets few tasks, since each costs more than its records:
small ranges of several partitions are read by one. The parts of a partition's range follow one another without a gap.
"""

from dataclasses import dataclass
from uuid import UUID

from pyspark.sql.datasource import InputPartition

from kaspar.base.ids import ZERO_UUID, TopicPartition


@dataclass(frozen=True)
class OffsetRange(InputPartition):
    """Offsets of one partition, from `start` up to but not with `end`."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: UUID = ZERO_UUID
    """The topic that was meant when the range was planned, should another of its name take its place."""

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __len__(self) -> int:
        return max(self.end - self.start, 0)


@dataclass(frozen=True)
class ReadTask(InputPartition):
    """What one task reads: its ranges, one after the other."""

    ranges: tuple[OffsetRange, ...]
