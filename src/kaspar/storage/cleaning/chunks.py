"""Reads a segment for the cleaner: chunks of whole batches with valid checksums, as fast as the throttle allows.

A batch that is larger than a chunk is read whole. Anything that is not a valid batch is a DamagedSegment: cleaning
stops there, since a key that is read wrongly would remove the records of another.
"""

from collections.abc import Generator
from typing import NamedTuple

from kaspar.records import HEADER_SIZE, read_header
from kaspar.records.compaction import whole_batches
from kaspar.storage.cleaning.errors import DamagedSegment
from kaspar.storage.cleaning.throttle import Pace
from kaspar.storage.disk.file_names import LOG
from kaspar.storage.log import Log
from kaspar.storage.segments.search import index_of
from kaspar.storage.segments.segment import Segment


class Chunk(NamedTuple):
    position: int
    """The position of `data` in the file."""
    data: bytes
    end: int
    """Where the whole batches in `data` end."""


def read_chunks(owner: Log, segment: Segment, pace: Pace, *, from_offset: int = 0) -> Generator[Chunk]:
    """Read all batches of the segment, or those from a position at or before `from_offset`."""
    directory = owner.directory
    path = segment.path(LOG)
    handle = directory.readers.acquire(segment, path)
    try:
        position = 0
        if from_offset > segment.base_offset:
            index = index_of(directory.readers, segment, handle, directory.waiting)
            position = index.lookup(from_offset - segment.base_offset)
        size = segment.size
        wanted = pace.chunk_bytes
        while position < size:
            pace.check()
            data = directory.files.pread(handle.fd, min(wanted, size - position), position)
            pace.spent(len(data))
            end, problem = whole_batches(data, 0, len(data))
            if problem is not None:
                raise DamagedSegment(path, position + end, problem)
            if end:
                yield Chunk(position, data, end)
                position += end
                wanted = pace.chunk_bytes
                continue
            needed = read_header(data, 0).size if len(data) >= HEADER_SIZE else HEADER_SIZE
            if needed > size - position or needed <= wanted:
                raise DamagedSegment(path, position, "the last record batch is truncated")
            wanted = needed
    finally:
        directory.readers.release(handle)
