"""Finds offsets by timestamp: through the time index to a position near it, along the batches, then into one batch.
Also finds the timestamp of the first batch after an offset, from the headers of batches only.

All lookups read files, and those by timestamp may decompress a batch, so they run in a thread.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import NO_EPOCH, LeaderEpoch, Offset
from kaspar.records import HEADER_SIZE, BatchHeader, iter_records, read_header
from kaspar.storage.disk.file_names import LOG, TIME_INDEX
from kaspar.storage.local_log import LocalLog
from kaspar.storage.reading.log_reader import ReadableLog
from kaspar.storage.segments.batch_scan import BatchScan
from kaspar.storage.segments.search import locate
from kaspar.storage.segments.segment import Segment
from kaspar.storage.segments.segment_list import Segments

_CHUNK_BYTES = 64 << 10
_MOST_HEADERS: Final = 1_000
"""How many batches without records a lookup by offset skips before it gives up."""

_Found = TypeVar("_Found")


class TimestampAndOffset(NamedTuple):
    timestamp: int
    offset: Offset
    leader_epoch: LeaderEpoch


class FirstData(NamedTuple):
    """The first batch with records of producers at or after an offset."""

    is_known: bool
    """False if the search gave up because there are too many batches without such records."""
    batch: TimestampAndOffset | None = None
    """None if there is no such batch. Has the offset of the record, and the timestamp of the batch's first record."""


def first_data_batch(owner: ReadableLog, offset: int) -> FirstData:
    """Find the first batch with records of producers at or after `offset`. Skips the markers of transactions, and
    batches that compaction has emptied.
    """
    return _retried(owner, lambda segments: _first_data(owner, segments, max(offset, owner.log_start_offset)))


def first_at_or_after(owner: ReadableLog, timestamp: int) -> TimestampAndOffset | None:
    """The first record whose timestamp is not below the given one."""
    return _retried(owner, lambda segments: _first_in(owner, segments, timestamp))


def with_max_timestamp(owner: ReadableLog) -> TimestampAndOffset | None:
    """The first record with the largest timestamp."""
    return _retried(owner, lambda segments: _with_max_in(owner, segments))


def _retried(owner: ReadableLog, look: Callable[[Segments], _Found]) -> _Found:
    """Repeat the lookup if segments were deleted or cleaned meanwhile: an index is only valid for its own segment."""
    local = owner.local
    while True:
        swaps, segments = local.swap_count, local.segments
        try:
            found = look(segments)
        except FileNotFoundError as error:
            if local.deleted:
                raise Refused(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{local.topic_partition} was deleted while it was searched"
                ) from error
            if local.has_segments(segments):
                raise _search_failed(local, error) from error
        except OSError as error:
            raise _search_failed(local, error) from error
        else:
            if local.completed_swaps() == swaps:
                return found


def _search_failed(local: LocalLog, error: OSError) -> StorageFailure | Refused:
    return local.directory.fail(error, f"searching {local.topic_partition}")


def _first_in(owner: ReadableLog, segments: Segments, timestamp: int) -> TimestampAndOffset | None:
    files = owner.local.directory.files
    for segment in segments.all:
        if segment.size and segment.largest_timestamp(files) >= timestamp:
            found = _first_in_segment(owner, segment, timestamp)
            # The record with that timestamp may be deleted, or compaction may have removed it from its batch.
            if found is not None:
                return found
    return None


def _with_max_in(owner: ReadableLog, segments: Segments) -> TimestampAndOffset | None:
    files = owner.local.directory.files
    filled = [segment for segment in segments.all if segment.size]
    if not filled:
        return None
    newest = max(filled, key=lambda segment: segment.loaded_max_timestamp(files))
    max_timestamp = newest.loaded_max_timestamp(files)
    return _search(owner, newest, newest.offset_of_max_timestamp, max_timestamp) if max_timestamp >= 0 else None


def _first_in_segment(owner: ReadableLog, segment: Segment, timestamp: int) -> TimestampAndOffset | None:
    files = owner.local.directory.files
    entries = segment.loaded_time_index(files).entries(files, segment.path(TIME_INDEX))
    # No record up to an entry's offset is later than its timestamp, so the record is behind the last earlier entry.
    slot = bisect_right([entry[0] for entry in entries], timestamp - 1) - 1
    begin = segment.base_offset + (entries[slot][1] if slot >= 0 else 0)
    return _search(owner, segment, max(begin, owner.log_start_offset), timestamp)


def _search(owner: ReadableLog, segment: Segment, begin: int, timestamp: int) -> TimestampAndOffset | None:
    directory = owner.local.directory
    handle = directory.readers.acquire(segment, segment.path(LOG))
    try:
        size = segment.size
        position = locate(directory.readers, segment, handle, begin, size, directory.waiting)
        if position is None:
            return None
        for _, header, batch in BatchScan(directory.files, handle.fd, position, size, chunk_bytes=_CHUNK_BYTES):
            if header.max_timestamp < timestamp:
                continue
            for record in iter_records(batch):
                if record.timestamp >= timestamp and record.offset >= owner.log_start_offset:
                    epoch = LeaderEpoch(header.leader_epoch) if header.leader_epoch >= 0 else NO_EPOCH
                    return TimestampAndOffset(record.timestamp, Offset(record.offset), epoch)
        return None
    finally:
        directory.readers.release(handle)


def _first_data(owner: ReadableLog, segments: Segments, offset: int) -> FirstData:
    headers_left = _MOST_HEADERS
    for segment in segments.all[segments.slot_of(offset) :]:
        batch, headers_left = _first_data_in(owner, segment, offset, headers_left)
        if batch is not None:
            return FirstData(True, batch)
        if not headers_left:
            return FirstData(False)
    return FirstData(True)


def _first_data_in(
    owner: ReadableLog, segment: Segment, offset: int, headers_left: int
) -> tuple[TimestampAndOffset | None, int]:
    """Search one segment. Returns what was found, and how many more headers may be read."""
    directory = owner.local.directory
    handle = directory.readers.acquire(segment, segment.path(LOG))
    try:
        size = segment.size
        position = locate(directory.readers, segment, handle, offset, size, directory.waiting)
        while position is not None and position < size and headers_left:
            head = directory.files.pread(handle.fd, HEADER_SIZE, position)
            if len(head) < HEADER_SIZE:  # the file was truncated meanwhile
                break
            header = read_header(head, 0)
            if header.count and not header.is_control:
                epoch = LeaderEpoch(header.leader_epoch) if header.leader_epoch >= 0 else NO_EPOCH
                found = Offset(max(offset, header.base_offset))
                return TimestampAndOffset(_time_of(header), found, epoch), headers_left
            position += header.size
            headers_left -= 1
        return None, headers_left
    finally:
        directory.readers.release(handle)


def _time_of(header: BatchHeader) -> int:
    if header.is_log_append_time or header.delete_horizon_ms is not None:
        return header.max_timestamp
    return header.base_timestamp
