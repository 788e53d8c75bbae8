"""The order in which a task processes its rows, which does not depend on the order in which the shuffle delivers them.

Like Kafka's tasks (PartitionGroup), each source partition is processed in the order of its offsets, and the next record
is the one with the smallest timestamp among the first records of all source partitions. This is equivalent to sorting
by the largest timestamp that a record's source partition has reached so far; ties are ordered by topic, partition and
offset. Rows of the same record keep the order in which they arrive.
"""

import itertools
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers: TypeAlias = npt.NDArray[np.int64]
_FEW = 1 << 16  # numpy sorts 16-bit numbers by radix sort


def processing_order(
    partitions: Numbers, sources: Numbers, offsets: Numbers, times: Numbers
) -> tuple[Numbers | None, list[int]]:
    """Row indices in processing order (None: the given order), and the start of each partition, followed by the end.

    `sources` are numbers of source partitions, ordered by topic and partition.
    """
    groups, source_count = _groups(partitions, sources)
    order: Numbers | None = None
    if _descends(groups):
        order = np.argsort(groups, kind="stable")
        groups, offsets, times = groups[order], offsets[order], times[order]
    if ((offsets[1:] < offsets[:-1]) & (groups[1:] == groups[:-1])).any():
        by_offset = np.lexsort((offsets, groups))
        order = by_offset if order is None else order[by_offset]
        times = times[by_offset]
    group_starts = _starts(groups)
    partition_starts = _starts(groups // source_count)
    if len(group_starts) > len(partition_starts):  # a partition with several sources
        merged = _merge(times, group_starts, partition_starts)
        order = merged if order is None else order[merged]
    return order, partition_starts


def _groups(partitions: Numbers, sources: Numbers) -> tuple[npt.NDArray[np.int64] | npt.NDArray[np.uint16], int]:
    """A number for each pair of partition and source, in sort order, and the number of sources."""
    encoded = pa.array(sources).dictionary_encode()
    distinct = encoded.dictionary.to_numpy()
    ranks = np.argsort(np.argsort(distinct))
    count = len(distinct)
    groups = partitions.astype(np.int64) * count
    if count > 1:
        groups += ranks[encoded.indices.to_numpy()]
    return (groups.astype(np.uint16) if int(groups.max()) < _FEW else groups), count


def _descends(numbers: npt.NDArray[np.int64] | npt.NDArray[np.uint16]) -> bool:
    return bool((numbers[1:] < numbers[:-1]).any())


def _starts(numbers: npt.NDArray[np.int64] | npt.NDArray[np.uint16]) -> list[int]:
    """The start of each run of equal numbers, followed by the end of the last one."""
    return [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]


def _merge(times: Numbers, group_starts: list[int], partition_starts: list[int]) -> Numbers:
    """Order the rows of each partition, which are sorted by source, by the time that their source has reached."""
    reached = np.empty_like(times)
    for first, last in itertools.pairwise(group_starts):
        np.maximum.accumulate(times[first:last], out=reached[first:last])
    order = np.arange(len(times))
    for first, last in itertools.pairwise(partition_starts):
        order[first:last] = first + np.argsort(reached[first:last], kind="stable")
    return order
