"""The compiled core of the records package: which batches of a fetched answer a consumer sees.

The rules of records/core.py hold here too. Kafka leaves it to the consumer to leave out control batches and, under
read_committed, those of aborted transactions: the answer names the producers and the first offsets of these, and their
abort markers are among its batches. The CRC of every batch that is seen is checked; one that nobody wants costs only a
look at its header. Nothing imports this module by name: records/column_reading.py loads one form of it.
"""

from collections.abc import Sequence

import cython
from crc32c import crc32c

from kaspar.base.errors import MalformedBytes
from kaspar.records.batch import BatchHeader, read_header
from kaspar.records.codec import Octets

IS_COMPILED: bool = cython.compiled

_HEADER_SIZE = cython.declare(cython.int, 61)
_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)

_CODEC = cython.declare(cython.int, 0x07)
_TRANSACTIONAL = cython.declare(cython.int, 0x10)
_CONTROL = cython.declare(cython.int, 0x20)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _integer(data: Octets, position: cython.Py_ssize_t, size: cython.int) -> cython.longlong:
    """A signed number of so many bytes, the most significant first."""
    sign: cython.ulonglong = 1
    number: cython.ulonglong = 0
    index: cython.int
    for index in range(size):
        number = (number << 8) | data[position + index]
    sign = sign << (8 * size - 1)
    return (number ^ sign) - sign


@cython.cfunc
@cython.exceptval(-1)
@cython.locals(data="const unsigned char[::1]")
def _whole_batch_size(data: Octets, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """How large the batch at `start` is: 0 if no whole one is there. Raises MalformedBytes where none can be."""
    left: cython.Py_ssize_t = len(data) - start
    if left < 17:
        return 0
    base_offset: cython.longlong = _integer(data, start, 8)
    size: cython.longlong = _integer(data, start + 8, 4) + 12
    if data[start + 16] < 2:
        raise MalformedBytes(
            f"at offset {base_offset} are messages in the old format v{data[start + 16]}, which Kafka has not "
            "written since 0.11 and which are not read here: copy the topic with a Kafka older than 4.0"
        )
    if data[start + 16] != 2 or size < _HEADER_SIZE or base_offset < 0:
        raise _damaged(data, start, "what stands there is no record batch")
    if size > left:
        return 0
    if _integer(data, start + 23, 4) < 0 or base_offset > 0x7FFF_FFFF_0000_0000:
        raise _damaged(data, start, "its offsets cannot be")
    return size


@cython.cfunc
@cython.locals(data="const unsigned char[::1]")
def _damaged(data: Octets, start: cython.Py_ssize_t, what: str) -> MalformedBytes:
    return MalformedBytes(f"the batch at offset {_integer(data, start, 8)} is damaged: {what}")


@cython.final
@cython.cclass
class BatchSelector:
    """`give` takes the records of an answer, and `select` goes to one batch after the other."""

    position = cython.declare(cython.Py_ssize_t, visibility="readonly")  # of the batch that was selected last
    _source: memoryview
    _data = cython.declare("const unsigned char[::1]")
    _next: cython.Py_ssize_t
    _aborted = cython.declare(list)  # (producer, first offset) of transactions still to come, the next of them last
    _aborted_producers = cython.declare(set)  # those in the midst of a transaction that ends with an abort

    def give(self, records: memoryview, aborted: Sequence[tuple[int, int]]) -> None:
        """The records of the next answer, and the producer and first offset of each aborted transaction in it."""
        self._source = records
        self._data = records
        self._next = 0
        self._aborted = sorted(aborted, key=_first_offset, reverse=True)
        self._aborted_producers = set()

    def select(self, start: cython.longlong, until: cython.longlong) -> BatchHeader | None:
        """The next batch with data records from offset `start` on and below `until`; None if there is none. A part of a
        batch at the end of an answer is left out. Raises MalformedBytes."""
        data = self._data
        size: cython.Py_ssize_t
        base_offset: cython.longlong
        last_offset: cython.longlong
        attributes: cython.longlong
        while True:
            self.position = self._next
            size = _whole_batch_size(data, self.position)
            if size == 0:
                return None
            self._next = self.position + size
            base_offset = _integer(data, self.position, 8)
            last_offset = base_offset + _integer(data, self.position + 23, 4)
            attributes = _integer(data, self.position + 21, 2)
            if base_offset >= until:
                return None
            if attributes & _CONTROL:
                self._see_marker(size, last_offset)
                continue
            if attributes & _TRANSACTIONAL and self._is_aborted(_integer(data, self.position + 43, 8), last_offset):
                continue
            if last_offset >= start:
                self._check_crc(size)
                return read_header(self._source, self.position)

    @cython.cfunc
    def _check_crc(self, size: cython.Py_ssize_t) -> object:
        start: cython.Py_ssize_t = self.position
        stated: cython.longlong = _integer(self._data, start + 17, 4) & 0xFFFF_FFFF
        computed: cython.longlong = crc32c(self._source[start + 21 : start + size], 0, size >= _GIL_RELEASE_BYTES)
        if computed != stated:
            raise _damaged(self._data, start, f"its crc is {computed}, not {stated} as it says")
        return None

    @cython.cfunc
    def _is_aborted(self, producer_id: cython.longlong, last_offset: cython.longlong) -> cython.bint:
        aborted = self._aborted
        while aborted and aborted[len(aborted) - 1][1] <= last_offset:
            self._aborted_producers.add(aborted.pop()[0])
        return producer_id in self._aborted_producers

    @cython.cfunc
    def _see_marker(self, size: cython.Py_ssize_t, last_offset: cython.longlong) -> object:
        """An abort marker ends its producer's transaction: what follows is of the next one."""
        data = self._data
        position: cython.Py_ssize_t = self.position + _HEADER_SIZE
        end: cython.Py_ssize_t = self.position + size
        producer_id: cython.longlong = _integer(data, self.position + 43, 8)
        field: cython.int
        if not self._is_aborted(producer_id, last_offset):
            return None
        self._check_crc(size)
        if data[self.position + 22] & _CODEC:
            raise _damaged(data, self.position, "it is a control batch, and compressed")
        for field in range(5):  # the length, the attributes, both deltas and the length of the key; then comes its type
            while field != 1 and position < end and data[position] >= 0x80:
                position += 1
            position += 1
        if end - position < 4:
            raise _damaged(data, self.position, "its control record is cut off")
        if _integer(data, position + 2, 2) == 0:
            self._aborted_producers.discard(producer_id)
        return None


def _first_offset(aborted: tuple[int, int]) -> int:
    return aborted[1]


@cython.locals(data="const unsigned char[::1]")
def offset_behind(records: Octets) -> int | None:
    """The offset behind the last whole batch; None if there is none. Raises MalformedBytes where no batch can be."""
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
    return _integer(data, last, 8) + _integer(data, last + 23, 4) + 1
