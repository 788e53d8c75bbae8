"""Scans the batches of a segment file: where whole batches end, and for which of them its indexes have entries. Part of
the compiled core; the rules of checking.py apply."""

from typing import NamedTuple

import cython
from crc32c import crc32c

from kaspar.base.named_tuples import new_tuple
from kaspar.records.codec import Octets

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
    from cython.cimports.kaspar.records import layout
else:
    from kaspar.base import primitives
    from kaspar.records import layout

IS_COMPILED: bool = cython.compiled

_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)


class IndexPoint(NamedTuple):
    """A batch for which the indexes of a segment have entries, with the largest timestamp up to it."""

    last_offset: int
    position: int
    max_timestamp: int
    offset_of_max_timestamp: int


@cython.locals(data="const unsigned char[::1]")
def whole_batches(buffer: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> tuple[int, str | None]:
    """Return where the last whole batch ends, and what is wrong after it, if anything is."""
    data = buffer
    view = memoryview(buffer)
    size: cython.longlong
    crc: cython.longlong
    if start < 0 or end > len(buffer):
        raise ValueError(f"{start} to {end} is outside a buffer of {len(buffer)} bytes")
    while end - start >= layout.HEADER_SIZE:
        size = layout.batch_size(data, start)
        if data[start + layout.MAGIC_AT] != layout.MAGIC or size < layout.HEADER_SIZE:
            return start, "what stands there is no record batch"
        if size > end - start:
            break
        crc = crc32c(view[start + layout.CRC_COVERS_FROM : start + size], 0, size >= _GIL_RELEASE_BYTES)
        if crc != primitives.read_uint32(data, start + layout.CRC_AT):
            return start, "the checksum is wrong"
        start += size
    return start, None


@cython.final
@cython.cclass
class IndexPoints:
    """For which batches of a new segment its sparse indexes have entries, and the largest timestamp so far."""

    max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    offset_of_max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    last_offset = cython.declare(cython.longlong, visibility="readonly")
    _interval_bytes: cython.longlong
    _bytes_since: cython.longlong

    def __init__(self, interval_bytes: int) -> None:
        self.max_timestamp = -1
        self.offset_of_max_timestamp = -1
        self.last_offset = -1
        self._interval_bytes = interval_bytes
        self._bytes_since = 0

    @cython.locals(data="const unsigned char[::1]")
    def add(self, batches: Octets, position: cython.longlong) -> list[IndexPoint]:
        """Return the index entries for these batches, which are written at `position` of the file."""
        data = batches
        points: list[IndexPoint] = []
        here: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = len(batches)
        size: cython.Py_ssize_t
        timestamp: cython.longlong
        while here < end:
            size = layout.batch_size(data, here)
            self.last_offset = layout.last_offset(data, here)
            timestamp = primitives.read_int64(data, here + layout.MAX_TIMESTAMP_AT)
            if timestamp > self.max_timestamp:
                self.max_timestamp = timestamp
                self.offset_of_max_timestamp = self.last_offset
            if self._bytes_since > self._interval_bytes:
                point = (self.last_offset, position + here, self.max_timestamp, self.offset_of_max_timestamp)
                points.append(new_tuple(IndexPoint, point))
                self._bytes_since = 0
            self._bytes_since += size
            here += size
        return points
