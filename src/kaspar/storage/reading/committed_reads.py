"""Which aborted transactions a read_committed reader must filter out of the bytes it gets.

An aborted transaction is in the index of the segment that contains its marker, which may be far behind its records. So
the search goes from the segment of the first byte through the later ones, until an entry whose last stable offset is
above the records: everything below it was decided by then. Most segments have no such index, and cost nothing.

The index of the active segment is in memory; the others are loaded by a read that may block on disk I/O, and kept with
the open file.
"""

from bisect import bisect_left
from typing import NamedTuple

from kaspar.storage.disk.file_names import LOG, TRANSACTION_INDEX
from kaspar.storage.disk.source import NotCached, Source
from kaspar.storage.local_log import LocalLog
from kaspar.storage.reading.log_reader import (
    ReadableLog,
    SegmentsChanged,
    missing,
    read_failed,
    read_waiting,
)
from kaspar.storage.segments.open_files import ReadHandle
from kaspar.storage.segments.search import index_of, locate
from kaspar.storage.segments.segment import Segment
from kaspar.storage.segments.transaction_index import AbortedTransaction, TransactionIndex

MOST_AT_ONCE = 500
"""This many take about half a millisecond; a longer list is left to a thread."""


class CommittedRead(NamedTuple):
    records: bytes | bytearray
    aborted: list[AbortedTransaction]


def read_committed_waiting(
    owner: ReadableLog, offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool
) -> CommittedRead:
    """Like `read_waiting`, with the aborted transactions that may have records among the bytes."""
    local = owner.local
    while True:
        swaps = local.swap_count
        records = read_waiting(owner, offset, max_bytes, upper_offset, whole_first_batch=whole_first_batch)
        try:
            committed = with_aborted(local, offset, records, local.directory.waiting)
        except SegmentsChanged:
            continue
        except OSError as error:
            raise read_failed(local, error) from error
        # If segments were cleaned meanwhile, the new ones lack entries for aborted records read from the old ones.
        if local.completed_swaps() == swaps:
            return committed


def with_aborted(local: LocalLog, offset: int, records: bytes | bytearray, source: Source) -> CommittedRead:
    """Add the aborted transactions to `records`, read from `offset` on. Raises NotCached like `aborted_among`."""
    if not records:
        return CommittedRead(records, [])
    first_offset = int.from_bytes(records[:8], "big")
    return CommittedRead(records, aborted_among(local, offset, first_offset, len(records), source))


def aborted_among(
    local: LocalLog, offset: int, first_offset: int, size: int, source: Source
) -> list[AbortedTransaction]:
    """The aborted transactions that may have records among `size` bytes of batches, read from `offset` on, of which the
    first begins with `first_offset`. Raises NotCached if `source` cannot wait and would have to, or if there are so
    many that listing them takes long.
    """
    at_most = None if source.waits else MOST_AT_ONCE
    found: list[AbortedTransaction] = []
    segments = local.segments
    slot = segments.slot_of(offset)
    upper_offset = -1
    for segment in segments.all[slot:]:
        if segment.aborted_count:
            if upper_offset < 0:
                upper_offset = _upper_offset(local, first_offset, size, source)
            if _index_of(local, segment, source).collect(offset, upper_offset, found, at_most=at_most):
                break
    if at_most is not None and len(found) > at_most:
        raise NotCached
    return found


def _upper_offset(local: LocalLog, first_offset: int, read_size: int, source: Source) -> int:
    """An offset not far above the last of the records, found without reading the header of every batch."""
    segments = local.segments
    slot = segments.slot_of(first_offset)
    segment = segments.all[slot]
    size = segment.size
    end = local.log_end_offset if slot + 1 == len(segments.all) else segments.base_offsets[slot + 1]
    handle = _open(local, segment)
    try:
        begin = locate(local.directory.readers, segment, handle, first_offset, size, source)
        if begin is None:
            return end  # the log was truncated meanwhile
        behind = begin + read_size
        offsets, positions = segment.recent
        if positions and positions[0] <= behind:
            slot = bisect_left(positions, behind)
            return offsets[slot] if slot < len(offsets) else end
        index = index_of(local.directory.readers, segment, handle, source)
        slot = bisect_left(index.positions, behind)
        return segment.base_offset + index.offsets[slot] if slot < len(index.offsets) else end
    finally:
        local.directory.readers.release(handle)


def _index_of(local: LocalLog, segment: Segment, source: Source) -> TransactionIndex:
    aborted = segment.aborted
    if aborted is not None:
        return aborted
    readers = local.directory.readers
    handle = _open(local, segment)
    try:
        kept = handle.aborted
        # An index that was loaded while the segment was still written to may lack the latest entries.
        if kept is None or len(kept) < segment.aborted_count:
            if not source.waits:
                raise NotCached
            kept = TransactionIndex.load(local.directory.files, segment.path(TRANSACTION_INDEX))
            readers.set_aborted(handle, kept)
        return kept
    except FileNotFoundError as error:
        raise missing(local, segment, error) from error
    finally:
        readers.release(handle)


def _open(local: LocalLog, segment: Segment) -> ReadHandle:
    try:
        return local.directory.readers.acquire(segment, segment.path(LOG))
    except FileNotFoundError as error:
        raise missing(local, segment, error) from error
