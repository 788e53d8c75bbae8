"""Which aborted transactions a read_committed reader must leave out of the bytes it is given.

An aborted transaction stands in the index of the segment that holds its marker, which may come long after its records.
So the search goes from the segment of the first byte through the later ones, until an entry says that everything below
its last stable offset was decided by then. Most segments have no such index, and cost nothing.

The index of the segment that is written to is in memory; those of the others are loaded by whoever may wait for the
disk, and kept with the open file.
"""

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from kaspar.storage.file_names import LOG, TRANSACTION_INDEX
from kaspar.storage.log_directory import NotCached, Source
from kaspar.storage.log_reader import gone, index_of, locate
from kaspar.storage.open_files import ReadHandle
from kaspar.storage.segment import Segment
from kaspar.storage.transaction_index import AbortedTransaction, TransactionIndex

if TYPE_CHECKING:
    from kaspar.storage.log import Log


MOST_AT_ONCE = 500
"""So many take about half a millisecond; more are for a thread."""


class CommittedRead(NamedTuple):
    records: bytes | bytearray
    aborted: list[AbortedTransaction]


def with_aborted(owner: "Log", offset: int, records: bytes | bytearray, source: Source) -> CommittedRead:
    """`records` were read from `offset` on. NotCached as from `aborted_among`."""
    if not records:
        return CommittedRead(records, [])
    first_offset = int.from_bytes(records[:8], "big")
    return CommittedRead(records, aborted_among(owner, offset, first_offset, len(records), source))


def aborted_among(owner: "Log", offset: int, first_offset: int, size: int, source: Source) -> list[AbortedTransaction]:
    """Those that may have records among the `size` bytes of batches that begin with `first_offset`, which were looked
    for from `offset` on. NotCached if `source` cannot wait and would have to, or if there are so many that to list them
    takes long.
    """
    at_most = None if source.waits else MOST_AT_ONCE
    found: list[AbortedTransaction] = []
    segments = owner.segments
    slot = segments.slot_of(offset)
    upper_offset = -1
    for segment in segments.all[slot:]:
        if segment.aborted_count:
            if upper_offset < 0:
                upper_offset = _upper_offset(owner, first_offset, size, source)
            if _index_of(owner, segment, source).collect(offset, upper_offset, found, at_most=at_most):
                break
    if at_most is not None and len(found) > at_most:
        raise NotCached
    return found


def _upper_offset(owner: "Log", first_offset: int, read_size: int, source: Source) -> int:
    """An offset above all of the records, and not far above, found without a look at each of their batches."""
    segments = owner.segments
    slot = segments.slot_of(first_offset)
    segment = segments.all[slot]
    size = segment.size
    end = owner.log_end_offset if slot + 1 == len(segments.all) else segments.base_offsets[slot + 1]
    handle = _open(owner, segment)
    try:
        begin = locate(owner.directory, segment, handle, first_offset, size, source)
        if begin is None:
            return end  # it was cut meanwhile
        behind = begin + read_size
        offsets, positions = segment.recent
        if positions and positions[0] <= behind:
            slot = bisect_left(positions, behind)
            return offsets[slot] if slot < len(offsets) else end
        index = index_of(owner.directory, segment, handle, source)
        slot = bisect_left(index.positions, behind)
        return segment.base_offset + index.offsets[slot] if slot < len(index.offsets) else end
    finally:
        owner.directory.readers.release(handle)


def _index_of(owner: "Log", segment: Segment, source: Source) -> TransactionIndex:
    aborted = segment.aborted
    if aborted is not None:
        return aborted
    readers = owner.directory.readers
    handle = _open(owner, segment)
    try:
        kept = handle.aborted
        # One that was loaded while the segment was written to may have fallen behind.
        if kept is None or len(kept) < segment.aborted_count:
            if not source.waits:
                raise NotCached
            kept = TransactionIndex.load(owner.directory.files, segment.path(TRANSACTION_INDEX))
            readers.set_aborted(handle, kept)
        return kept
    except FileNotFoundError as error:
        raise gone(owner, segment, error) from error
    finally:
        readers.release(handle)


def _open(owner: "Log", segment: Segment) -> ReadHandle:
    try:
        return owner.directory.readers.acquire(segment, segment.path(LOG))
    except FileNotFoundError as error:
        raise gone(owner, segment, error) from error
