"""Selects the batches of a fetch response that a consumer sees. Compiled core; the rules of checking.py apply.

Kafka leaves it to the consumer to skip control batches and, under read_committed, those of aborted transactions: the
response lists the producers and first offsets of these, and their abort markers are among its batches. The CRC of every
selected batch is checked; of the others only the header is read.
"""

from collections.abc import Sequence

import cython
from crc32c import crc32c

from kaspar.base.errors import MalformedBytes
from kaspar.records.codec import Octets
from kaspar.records.core import checking

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
    from cython.cimports.kaspar.records import layout
else:
    from kaspar.base import primitives
    from kaspar.records import layout

IS_COMPILED: bool = cython.compiled

_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)


@cython.cfunc
@cython.exceptval(-1)
@cython.locals(data="const unsigned char[::1]")
def _whole_batch_size(data: Octets, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The size of the whole batch at `start`; 0 if it is incomplete. Raises MalformedBytes."""
    left: cython.Py_ssize_t = len(data) - start
    if left <= layout.MAGIC_AT:
        return 0
    base_offset: cython.longlong = primitives.read_int64(data, start)
    size: cython.longlong = layout.batch_size(data, start)
    magic: cython.int = data[start + layout.MAGIC_AT]
    if magic < layout.MAGIC:
        raise MalformedBytes(
            f"offset {base_offset} has messages in the old format v{magic}, which Kafka has not written by default "
            "since 0.11 and which is not supported: copy the topic with a Kafka older than 4.0"
        )
    if magic != layout.MAGIC or size < layout.HEADER_SIZE or base_offset < 0:
        raise _damaged(data, start, "it is not a record batch")
    if size > left:
        return 0
    if primitives.read_int32(data, start + layout.LAST_OFFSET_DELTA_AT) < 0 or base_offset > 0x7FFF_FFFF_0000_0000:
        raise _damaged(data, start, "its offsets are invalid")
    return size


@cython.cfunc
@cython.locals(data="const unsigned char[::1]")
def _damaged(data: Octets, start: cython.Py_ssize_t, what: str) -> MalformedBytes:
    return MalformedBytes(f"the batch at offset {primitives.read_int64(data, start)} is damaged: {what}")


@cython.final
@cython.cclass
class BatchSelector:
    """Selects batches from the responses passed to `give`; each call of `select` moves on to the next one."""

    position = cython.declare(cython.Py_ssize_t, visibility="readonly")  # position of the last selected batch
    _source: memoryview
    _data = cython.declare("const unsigned char[::1]")
    _next: cython.Py_ssize_t
    _aborted = cython.declare(list)  # (producer, first offset) of later transactions, the next one last
    _aborted_producers = cython.declare(set)  # producers whose current transaction ends with an abort

    def give(self, records: memoryview, aborted: Sequence[tuple[int, int]]) -> None:
        """Set the records of the next response, and the producer and first offset of each aborted transaction in it."""
        self._source = records
        self._data = records
        self._next = 0
        self._aborted = sorted(aborted, key=_first_offset, reverse=True)
        self._aborted_producers = set()

    def select(self, start: cython.longlong, until: cython.longlong) -> checking.BatchHeader | None:
        """Return the next batch with data records from offset `start` on and below `until`; None if there is none. A
        partial batch at the end of the response is ignored. Raises MalformedBytes."""
        data = self._data
        size: cython.Py_ssize_t
        base_offset: cython.longlong
        last_offset: cython.longlong
        attributes: cython.longlong
        producer_id: cython.longlong
        while True:
            self.position = self._next
            size = _whole_batch_size(data, self.position)
            if size == 0:
                return None
            self._next = self.position + size
            base_offset = primitives.read_int64(data, self.position)
            last_offset = layout.last_offset(data, self.position)
            attributes = primitives.read_int16(data, self.position + layout.ATTRIBUTES_AT)
            if base_offset >= until:
                return None
            if attributes & layout.CONTROL_FLAG:
                self._see_marker(size, last_offset)
                continue
            if attributes & layout.TRANSACTIONAL_FLAG:
                producer_id = primitives.read_int64(data, self.position + layout.PRODUCER_ID_AT)
                if self._is_aborted(producer_id, last_offset):
                    continue
            if last_offset >= start:
                self._check_crc(size)
                return checking.read_header(self._source, self.position)

    @cython.cfunc
    def _check_crc(self, size: cython.Py_ssize_t) -> object:
        start: cython.Py_ssize_t = self.position
        stated: cython.longlong = primitives.read_uint32(self._data, start + layout.CRC_AT)
        covered = self._source[start + layout.CRC_COVERS_FROM : start + size]
        computed: cython.longlong = crc32c(covered, 0, size >= _GIL_RELEASE_BYTES)
        if computed != stated:
            raise _damaged(self._data, start, f"the CRC is {computed}, but the header says {stated}")
        return None

    @cython.cfunc
    def _is_aborted(self, producer_id: cython.longlong, last_offset: cython.longlong) -> cython.bint:
        aborted = self._aborted
        while aborted and aborted[len(aborted) - 1][1] <= last_offset:
            self._aborted_producers.add(aborted.pop()[0])
        return producer_id in self._aborted_producers

    @cython.cfunc
    def _see_marker(self, size: cython.Py_ssize_t, last_offset: cython.longlong) -> object:
        """End the producer's aborted transaction if this is an abort marker: later batches belong to the next one."""
        data = self._data
        position: cython.Py_ssize_t = self.position + layout.HEADER_SIZE
        end: cython.Py_ssize_t = self.position + size
        producer_id: cython.longlong = primitives.read_int64(data, self.position + layout.PRODUCER_ID_AT)
        field: cython.int
        if not self._is_aborted(producer_id, last_offset):
            return None
        self._check_crc(size)
        if data[self.position + layout.LOW_ATTRIBUTES_AT] & layout.CODEC_MASK:
            raise _damaged(data, self.position, "it is a compressed control batch")
        for field in range(5):  # the length, the attributes, both deltas and the length of the key; the type is next
            while field != 1 and position < end and data[position] >= 0x80:
                position += 1
            position += 1
        if end - position < 4:
            raise _damaged(data, self.position, "its control record is cut off")
        if primitives.read_int16(data, position + 2) == 0:
            self._aborted_producers.discard(producer_id)
        return None


def _first_offset(aborted: tuple[int, int]) -> int:
    return aborted[1]


@cython.locals(data="const unsigned char[::1]")
def offset_behind(records: Octets) -> int | None:
    """The offset after the last whole batch; None if there is none. Raises MalformedBytes."""
    data = records
    last: cython.Py_ssize_t = -1
    position: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t = _whole_batch_size(data, 0)
    while size:
        last = position
        position += size
        size = _whole_batch_size(data, position)
    if last < 0:
        return None
    return layout.last_offset(data, last) + 1
