"""Finds offsets by time: through the time index to a place near, then along the batches, then into one batch.

Both look-ups read files and may inflate one batch, so they are for a thread.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_EPOCH, LeaderEpoch, Offset
from kaspar.records import iter_records
from kaspar.storage.batch_scan import BatchScan
from kaspar.storage.file_names import LOG, TIME_INDEX
from kaspar.storage.log_reader import Segments, locate
from kaspar.storage.segment import Segment

if TYPE_CHECKING:
    from kaspar.storage.log import Log

_PIECE = 64 << 10


class TimestampAndOffset(NamedTuple):
    timestamp: int
    offset: Offset
    leader_epoch: LeaderEpoch


def first_at_or_after(owner: "Log", timestamp: int) -> TimestampAndOffset | None:
    """The first record whose timestamp is not below the given one."""
    return _looked_up(owner, lambda segments: _first_in(owner, segments, timestamp))


def with_max_timestamp(owner: "Log") -> TimestampAndOffset | None:
    """The first record that has the largest timestamp of all."""
    return _looked_up(owner, lambda segments: _with_max_in(owner, segments))


def _looked_up(owner: "Log", look: Callable[[Segments], TimestampAndOffset | None]) -> TimestampAndOffset | None:
    """Look once more if segments were deleted or cleaned meanwhile: an index and its segment belong together."""
    while True:
        swaps, segments = owner.swaps, owner.segments
        try:
            found = look(segments)
        except FileNotFoundError as error:
            if owner.deleted:
                raise Refused(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{owner.topic_partition} was deleted while it was searched"
                ) from error
            if owner.has_segments(segments):
                raise
        else:
            if owner.completed_swaps() == swaps:
                return found


def _first_in(owner: "Log", segments: Segments, timestamp: int) -> TimestampAndOffset | None:
    files = owner.directory.files
    for segment in segments.all:
        if segment.size and segment.largest_timestamp(files) >= timestamp:
            found = _first_in_segment(owner, segment, timestamp)
            # The record with that time may be deleted, or gone from a batch that compaction has emptied.
            if found is not None:
                return found
    return None


def _with_max_in(owner: "Log", segments: Segments) -> TimestampAndOffset | None:
    files = owner.directory.files
    filled = [segment for segment in segments.all if segment.size]
    if not filled:
        return None
    newest = max(filled, key=lambda segment: segment.loaded_max_timestamp(files))
    max_timestamp = newest.loaded_max_timestamp(files)
    return _search(owner, newest, newest.offset_of_max_timestamp, max_timestamp) if max_timestamp >= 0 else None


def _first_in_segment(owner: "Log", segment: Segment, timestamp: int) -> TimestampAndOffset | None:
    files = owner.directory.files
    entries = segment.loaded_time_index(files).entries(files, segment.path(TIME_INDEX))
    # Every record up to an entry's offset is at most as late as the entry says; so the one sought comes after the last
    # entry that is earlier.
    slot = bisect_right([entry[0] for entry in entries], timestamp - 1) - 1
    begin = segment.base_offset + (entries[slot][1] if slot >= 0 else 0)
    return _search(owner, segment, max(begin, owner.log_start_offset), timestamp)


def _search(owner: "Log", segment: Segment, begin: int, timestamp: int) -> TimestampAndOffset | None:
    directory = owner.directory
    handle = directory.readers.acquire(segment, segment.path(LOG))
    try:
        size = segment.size
        position = locate(directory, segment, handle, begin, size, directory.waiting)
        if position is None:
            return None
        for _, header, batch in BatchScan(directory.files, handle.fd, position, size, piece=_PIECE):
            if header.max_timestamp < timestamp:
                continue
            for record in iter_records(batch):
                if record.timestamp >= timestamp and record.offset >= owner.log_start_offset:
                    epoch = LeaderEpoch(header.leader_epoch) if header.leader_epoch >= 0 else NO_EPOCH
                    return TimestampAndOffset(record.timestamp, Offset(record.offset), epoch)
        return None
    finally:
        directory.readers.release(handle)
