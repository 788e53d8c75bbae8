"""Finds a batch in a segment by its offset: through the offset index to a position near it, then along the headers.

An index may be stale or damaged. If it misleads a search, the search starts over at the beginning of the segment.
"""

import struct

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.log import get_log
from kaspar.records.layout import HEADER_SIZE, LENGTH_OVERHEAD, MAGIC
from kaspar.storage.disk.file_names import LOG, OFFSET_INDEX
from kaspar.storage.disk.source import NotCached, Source
from kaspar.storage.segments.indexes import OffsetIndex
from kaspar.storage.segments.open_files import ReadHandle, ReadHandles
from kaspar.storage.segments.segment import Segment

log = get_log(__name__)

# base offset, length, (leader epoch), magic, (crc, attributes), last offset delta: the fields needed to find a batch
PLACE = struct.Struct(">qi4xB6xi")
_SMALLEST_LENGTH = HEADER_SIZE - LENGTH_OVERHEAD
_WINDOW = 8192


def locate(
    readers: ReadHandles, segment: Segment, handle: ReadHandle, offset: int, size: int, source: Source
) -> int | None:
    """The position of the first batch that ends at or after `offset`; None if there is none below `size`."""
    position = segment.recent_position(offset)
    if position < 0:
        position = index_of(readers, segment, handle, source).lookup(offset - segment.base_offset)
    found = _walk(segment, handle.fd, position, offset, size, source)
    if found is None and position > 0:
        log.warning("an offset index is misleading; searching the segment from its start", file=segment.path(LOG))
        found = _walk(segment, handle.fd, 0, offset, size, source)
    if found is None:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"{segment.path(LOG)} contains bytes that are not a record batch")
    return found if found < size else None


def _walk(segment: Segment, fd: int, position: int, offset: int, size: int, source: Source) -> int | None:
    """The position of the batch; `size` or more if it is not there; None at bytes that are not a batch header."""
    while position < size:
        wanted = min(_WINDOW, size - position)
        window = source.pread(fd, wanted, position)
        here = 0
        while len(window) - here >= PLACE.size:
            base_offset, length, magic, delta = PLACE.unpack_from(window, here)
            if magic != MAGIC or length < _SMALLEST_LENGTH or delta < 0 or base_offset < segment.base_offset:
                return None
            if base_offset + delta >= offset:
                return position + here
            here += length + LENGTH_OVERHEAD
        if here == 0:
            if not source.waits:
                raise NotCached
            return size  # less than a header: the file was truncated meanwhile
        position += here
    return position


def index_of(readers: ReadHandles, segment: Segment, handle: ReadHandle, source: Source) -> OffsetIndex:
    index = segment.index or handle.index
    if index is None:
        if not source.waits:
            raise NotCached  # loading an index reads a file
        try:
            index = OffsetIndex.load(readers.files, segment.path(OFFSET_INDEX))
        except FileNotFoundError:
            index = OffsetIndex()
        readers.set_index(handle, index)
    return index
