"""Reads record batches from a log: from an offset to bytes.

A read begins with the batch that contains the offset, stays within one segment, ends before the batch that contains the
upper offset, and may end within a batch (clients drop the rest). Only the first batch is returned whole, however large,
if the caller requests that. Nothing beyond the first header is parsed.

Reads run in any thread, concurrently with appends: a read gets a segment's size before the log end offset, and an
append publishes them in the opposite order, so all bytes below that size have offsets below that end.
"""

from typing import Protocol

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.records.layout import LENGTH_OVERHEAD
from kaspar.storage.disk.file_names import LOG
from kaspar.storage.disk.source import NotCached, Source
from kaspar.storage.local_log import LocalLog
from kaspar.storage.segments.search import PLACE, locate
from kaspar.storage.segments.segment import Segment

_READ_AHEAD = 4 << 20


class SegmentsChanged(Exception):
    """The segment was deleted or replaced by a cleaned one after it was found: look it up again."""


class ReadableLog(Protocol):
    """What reads need from a `Log`."""

    local: LocalLog
    log_start_offset: int


def read(
    owner: ReadableLog, offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool, source: Source
) -> bytes | bytearray:
    """Read from a log. Raises NotCached if `source` cannot wait and would have to; SegmentsChanged: try again."""
    local = owner.local
    if not owner.log_start_offset <= offset <= local.log_end_offset:
        raise out_of_range(owner, offset)
    readers = local.directory.readers
    segments = local.segments
    slot = segments.slot_of(offset)
    while offset < upper_offset and slot < len(segments.all):
        segment = segments.all[slot]
        try:
            handle = readers.acquire(segment, segment.path(LOG))
        except FileNotFoundError as error:
            raise missing(local, segment, error) from error
        try:
            size = segment.size
            end = size
            last = slot + 1 == len(segments.all)
            if upper_offset < (local.log_end_offset if last else segments.base_offsets[slot + 1]):
                found = locate(readers, segment, handle, upper_offset, size, source)
                end = size if found is None else found
            position = locate(readers, segment, handle, offset, size, source)
            data = None
            if position is not None:
                data = _read_at(handle.fd, position, end, max_bytes, whole_first_batch, source)
            if source.waits and not local.has_segment(segment):
                # File, size and index may be from two segments with the same name; the handle, too, if it was opened
                # since.
                readers.forget(segment)
                raise SegmentsChanged
            if position is not None and data is not None:
                if source.waits and position + len(data) < size:
                    # A reader that had to wait is far from the end and will continue to read from here.
                    local.directory.files.will_need(handle.fd, position + len(data), _READ_AHEAD)
                return data
        finally:
            readers.release(handle)
        slot += 1  # the offset was in a gap at the end of this segment
    return b""


def read_waiting(
    owner: ReadableLog, offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool
) -> bytes | bytearray:
    """Like `read`, for a thread that may block on disk I/O. Repeats the read if segments change meanwhile."""
    local = owner.local
    source = local.directory.waiting
    while True:
        try:
            return read(owner, offset, max_bytes, upper_offset, whole_first_batch=whole_first_batch, source=source)
        except SegmentsChanged:
            continue
        except OSError as error:
            raise read_failed(local, error) from error


def out_of_range(owner: ReadableLog, offset: int) -> Refused:
    local = owner.local
    return Refused(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"Received request for offset {offset} for partition {local.topic_partition}, but we only have log segments in "
        f"the range {owner.log_start_offset} to {local.log_end_offset}.",
    )


def missing(local: LocalLog, segment: Segment, error: OSError) -> SegmentsChanged | Refused | StorageFailure:
    """Return the reason why a segment's file is missing: the partition or the segment was deleted, a truncation is not
    finished, or the file was removed by another program.
    """
    if local.deleted:
        return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{local.topic_partition} was deleted")
    if local.truncation_due:
        return Refused(ErrorCode.OFFSET_NOT_AVAILABLE, f"the truncation of {local.topic_partition} is not finished")
    if local.has_segment(segment):
        return local.directory.take_offline(f"{error.filename} is missing")
    return SegmentsChanged()


def read_failed(local: LocalLog, error: OSError) -> StorageFailure | Refused:
    return local.directory.fail(error, f"reading {local.topic_partition}")


def _read_at(
    fd: int, position: int, end: int, max_bytes: int, whole_first_batch: bool, source: Source
) -> bytes | bytearray:
    available = end - position
    if available <= 0:
        return b""
    if not whole_first_batch and max_bytes < available:
        # Check first whether the batch fits: a fetch of many partitions has little room left for each.
        head = source.pread(fd, min(PLACE.size, available), position)
        if len(head) == PLACE.size and PLACE.unpack(head)[1] + LENGTH_OVERHEAD > max_bytes:
            return b""
    data = source.pread(fd, min(max(max_bytes, PLACE.size), available), position)
    if len(data) >= PLACE.size:
        first_size = PLACE.unpack_from(data)[1] + LENGTH_OVERHEAD
        if first_size <= len(data) and first_size <= max_bytes:
            return data
        if not whole_first_batch and first_size > max_bytes:
            return b""
        if len(data) != first_size:
            data = source.pread(fd, min(first_size, available), position)
        if len(data) == first_size:
            return data
    if not source.waits:
        raise NotCached  # only a part of the first batch is in memory
    return b""  # the file was truncated meanwhile
