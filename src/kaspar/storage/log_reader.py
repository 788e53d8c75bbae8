"""Finds batches in segments and reads them: the whole way from an offset to bytes.

A read begins with the batch that holds the offset, comes from one segment, ends before the batch that holds the upper
offset, and may end within a batch (clients drop the rest); only the first batch is whole, however large, if the caller
wants it so. The bytes are never looked at beyond the first header.

Reads run in any thread, beside appends: a segment's size is read before the log end offset, and an append publishes
them the other way round, so bytes below that size are all of offsets below that end.
"""

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.log import get_log
from kaspar.storage.batch_scan import OVERHEAD
from kaspar.storage.file_names import LOG, OFFSET_INDEX
from kaspar.storage.indexes import OffsetIndex
from kaspar.storage.log_directory import LogDirectory, NotCached, Source
from kaspar.storage.open_files import ReadHandle
from kaspar.storage.segment import Segment

if TYPE_CHECKING:
    from kaspar.storage.log import Log

log = get_log(__name__)

# base offset, length, (leader epoch), magic, (crc, attributes), last offset delta: all that it takes to find a batch
PLACE = struct.Struct(">qi4xB6xi")
_SMALLEST_LENGTH = 49
_WINDOW = 8192
_READ_AHEAD = 4 << 20


class SegmentsChanged(Exception):
    """The segment that was found is no longer part of the log: deleted, or a cleaned one took its place. Look anew."""


class Segments(NamedTuple):
    """The segments of a log in order, published as one, so that a thread never sees half of a change."""

    base_offsets: tuple[int, ...]
    all: tuple[Segment, ...]

    def slot_of(self, offset: int) -> int:
        """The place of the segment that holds `offset`; the first for an offset before all of them."""
        return max(bisect_right(self.base_offsets, offset) - 1, 0)


def read(
    owner: "Log", offset: int, max_bytes: int, upper_offset: int, *, whole_first_batch: bool, source: Source
) -> bytes | bytearray:
    """Read from a log. NotCached if `source` cannot wait and would have to, SegmentsChanged to be tried again."""
    check_range(owner, offset)
    segments = owner.segments
    slot = segments.slot_of(offset)
    while offset < upper_offset and slot < len(segments.all):
        segment = segments.all[slot]
        try:
            handle = owner.directory.readers.acquire(segment, segment.path(LOG))
        except FileNotFoundError as error:
            raise gone(owner, segment, error) from error
        try:
            size = segment.size
            end = size
            last = slot + 1 == len(segments.all)
            if upper_offset < (owner.log_end_offset if last else segments.base_offsets[slot + 1]):
                found = locate(owner.directory, segment, handle, upper_offset, size, source)
                end = size if found is None else found
            position = locate(owner.directory, segment, handle, offset, size, source)
            data = None
            if position is not None:
                data = _read_at(handle.fd, position, end, max_bytes, whole_first_batch, source)
            if source.waits and not owner.has_segment(segment):
                # File, size and index may be of two segments with one name. The handle, too, if it was opened since.
                owner.directory.readers.forget(segment)
                raise SegmentsChanged
            if position is not None and data is not None:
                if source.waits and position + len(data) < size:
                    # Whoever had to wait is far from the end and will want what follows.
                    owner.directory.files.will_need(handle.fd, position + len(data), _READ_AHEAD)
                return data
        finally:
            owner.directory.readers.release(handle)
        slot += 1  # the offset was in a gap at the end of this segment
    return b""


def check_range(owner: "Log", offset: int) -> None:
    if not owner.log_start_offset <= offset <= owner.log_end_offset:
        raise Refused(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Received request for offset {offset} for partition {owner.topic_partition}, but we only have log "
            f"segments in the range {owner.log_start_offset} to {owner.log_end_offset}.",
        )


def locate(
    directory: LogDirectory, segment: Segment, handle: ReadHandle, offset: int, size: int, source: Source
) -> int | None:
    """Where the first batch that ends at or after `offset` begins; None if there is none below `size`."""
    position = segment.recent_position(offset)
    if position < 0:
        position = index_of(directory, segment, handle, source).lookup(offset - segment.base_offset)
    found = _walk(segment, handle.fd, position, offset, size, source)
    if found is None and position > 0:
        log.warning("an offset index leads astray; the segment is searched from its start", file=segment.path(LOG))
        found = _walk(segment, handle.fd, 0, offset, size, source)
    if found is None:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"{segment.path(LOG)} holds bytes that are no record batches")
    return found if found < size else None


def _walk(segment: Segment, fd: int, position: int, offset: int, size: int, source: Source) -> int | None:
    """The position of the batch; `size` or more if none is there; None where bytes make no sense."""
    while position < size:
        wanted = min(_WINDOW, size - position)
        window = source.pread(fd, wanted, position)
        here = 0
        while len(window) - here >= PLACE.size:
            base_offset, length, magic, delta = PLACE.unpack_from(window, here)
            if magic != 2 or length < _SMALLEST_LENGTH or delta < 0 or base_offset < segment.base_offset:
                return None
            if base_offset + delta >= offset:
                return position + here
            here += length + OVERHEAD
        if here == 0:
            if not source.waits:
                raise NotCached
            return size  # fewer bytes than a header: the file was cut meanwhile
        position += here
    return position


def index_of(directory: LogDirectory, segment: Segment, handle: ReadHandle, source: Source) -> OffsetIndex:
    index = segment.index or handle.index
    if index is None:
        if not source.waits:
            raise NotCached  # loading an index reads a file: that is for a thread
        try:
            index = OffsetIndex.load(directory.files, segment.path(OFFSET_INDEX))
        except FileNotFoundError:
            index = OffsetIndex()
        directory.readers.set_index(handle, index)
    return index


def _read_at(
    fd: int, position: int, end: int, max_bytes: int, whole_first_batch: bool, source: Source
) -> bytes | bytearray:
    available = end - position
    if available <= 0:
        return b""
    if not whole_first_batch and max_bytes < available:
        # Look first whether the batch fits: a reader of many partitions comes by here with little room left in each.
        head = source.pread(fd, min(PLACE.size, available), position)
        if len(head) == PLACE.size and PLACE.unpack(head)[1] + OVERHEAD > max_bytes:
            return b""
    data = source.pread(fd, min(max(max_bytes, PLACE.size), available), position)
    if len(data) >= PLACE.size:
        first_size = PLACE.unpack_from(data)[1] + OVERHEAD
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
    return b""  # the file was cut meanwhile


def gone(owner: "Log", segment: Segment, error: OSError) -> SegmentsChanged | Refused | StorageFailure:
    """Why a segment's file is not there: partition or segment were deleted meanwhile, or someone took it away."""
    if owner.deleted:
        return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{owner.topic_partition} was deleted")
    if owner.has_segment(segment):
        return owner.directory.take_offline(f"{error.filename} is missing")
    return SegmentsChanged()
