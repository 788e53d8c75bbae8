"""Ends a limited micro-batch at the same time in all partitions. No I/O.

This is for queries that join topics: older records are read first, also if this takes several batches, as in a task of
Kafka Streams (PartitionGroup, KIP-353). No record that remains unread is older than one in the batch, as long as the
records of a partition are in the order of their timestamps; where they are not, a batch ends near that time.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple, Protocol

from kaspar.base.ids import TopicPartition
from kaspar.spark.offsets import PartitionOffsets
from kaspar.spark.reading.planning import Limits, available, limited


class Stamp(NamedTuple):
    """The offset and the timestamp of a record."""

    offset: int
    timestamp: int


class Logs(Protocol):
    def stamps(self, where: TopicPartition, offset: int) -> Sequence[Stamp]:
        """The records from this offset on of the first batch that has any; none at the end of the log."""

    def offsets_at(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """The first offset with this timestamp or a later one; -1 if there is none."""


def ending_together(
    limits: Limits,
    start: PartitionOffsets,
    end: PartitionOffsets,
    latest: PartitionOffsets,
    bytes_per_offset: Mapping[TopicPartition, float],
    logs: Logs,
) -> dict[TopicPartition, int]:
    """The end of a micro-batch, at the same time in all partitions. `end` is within the limits and before `latest`. So
    is the result, which includes at least one record."""
    first = _cut(start, end, latest, logs)
    allowed, taken = available(start, end), available(start, first)
    if 2 * taken > allowed:
        return first
    # Some partitions have few records before that time, so the others may read more.
    factor = ceil(allowed / taken)
    wanted = {where: min(latest[where], start[where] + factor * (first[where] - start[where])) for where in end}
    second = _cut(start, limited(limits, start, wanted, bytes_per_offset), latest, logs)
    return second if available(start, second) > taken else first


def _cut(
    start: PartitionOffsets, end: PartitionOffsets, latest: PartitionOffsets, logs: Logs
) -> dict[TopicPartition, int]:
    """Cut off the records that are later than the earliest one after `end`."""
    left = {where: logs.stamps(where, offset) for where, offset in end.items() if offset < latest[where]}
    times = {where: stamps[0].timestamp for where, stamps in left.items() if stamps}
    if not times:
        return dict(end)
    time = min(times.values())
    later = [where for where in end if end[where] > start[where] and times.get(where) != time]
    found = logs.offsets_at(later, time + 1)
    cut = {where: _first_after(time, where, start[where], end[where], found[where], logs) for where in later}
    return {**end, **cut}


def _first_after(time: int, where: TopicPartition, first: int, last: int, found: int, logs: Logs) -> int:
    """The first offset, from `first` to `last`, of a later record. It is the one that the broker has found, unless that
    is a transaction marker: the timestamps of markers come from the clock, whatever those of their records are."""
    if not 0 <= found < last:
        return last
    probes = [found, found - 1]
    while first < last:
        probe = probes.pop() if probes else (first + last) // 2
        probe = min(max(probe, first), last - 1)
        stamps = logs.stamps(where, probe)
        if not stamps or stamps[0].offset >= last or stamps[0].timestamp > time:
            last = probe
        elif (later := next((each.offset for each in stamps if each.timestamp > time), None)) is not None:
            return min(later, last)
        else:
            first = min(stamps[-1].offset + 1, last)
    return last
