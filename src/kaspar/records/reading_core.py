"""The compiled core of the records package, second part: reads the records of a batch one by one.

The rules of its first part hold here too (records/core.py). Nothing imports this module by name: records/reader.py
loads one form of it.
"""

import cython

from kaspar.base.errors import MalformedBytes
from kaspar.records.codec import Octets
from kaspar.records.record import Header, Record

IS_COMPILED: bool = cython.compiled

_SMALLEST_RECORD = cython.declare(cython.int, 7)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _signed(number: cython.ulonglong) -> cython.longlong:
    """The two's complement reading of a number's lowest 64 bits."""
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    sign: cython.ulonglong = 0x8000_0000_0000_0000
    return ((number & mask) ^ sign) - sign


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _zigzag(raw: cython.ulonglong) -> cython.longlong:
    """The number that a varint of these bits stands for."""
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    raw &= mask
    return _signed((raw >> 1) ^ (0 - (raw & 1)))


@cython.locals(data="const unsigned char[::1]")
def whole_records(buffer: Octets) -> tuple[int, int]:
    """Where the last whole record of `buffer` ends, and how many bytes from there on the next one takes, or 0 where
    that cannot be told yet. -1 if there can be no record."""
    data = buffer
    start: cython.Py_ssize_t = 0
    position: cython.Py_ssize_t
    end: cython.Py_ssize_t = len(buffer)
    size: cython.longlong
    raw: cython.ulonglong
    low_32_bits: cython.ulonglong = 0xFFFF_FFFF
    octet: cython.ulonglong
    while start < end:
        raw = 0
        octet = 0x80
        position = start
        while octet >= 0x80 and position < end and position < start + 5:
            octet = data[position]
            raw |= (octet & 0x7F) << (7 * (position - start))
            position += 1
        if octet >= 0x80:
            return start if position < start + 5 else -1, 0
        size = _zigzag(raw & low_32_bits) + position - start
        if size < _SMALLEST_RECORD:
            return -1, 0
        if size > end - start:
            return start, size
        start += size
    return start, 0


@cython.final
@cython.cclass
class RecordReader:
    """Reads the records of one batch out of its inflated bytes, which may come in pieces of whole records."""

    _base_offset: cython.longlong
    _base_timestamp: cython.ulonglong
    _log_append_time: cython.longlong
    _is_log_append_time: cython.bint
    _position: cython.Py_ssize_t
    _end: cython.Py_ssize_t
    _view = cython.declare("const unsigned char[::1]")

    def __init__(
        self, base_offset: cython.longlong, base_timestamp: cython.longlong, log_append_time: int | None
    ) -> None:
        self._base_offset = base_offset
        self._base_timestamp = base_timestamp
        self._is_log_append_time = log_append_time is not None
        self._log_append_time = -1 if log_append_time is None else log_append_time
        self._position = 0
        self._end = 0

    def read(self, data: bytes, most: int) -> list[Record]:
        """All records in `data`, which ends with one of them. There may be `most`, and not one more."""
        self._view = data
        records: list[Record] = []
        length: cython.longlong
        size: cython.Py_ssize_t = len(data)
        self._position = 0
        while self._position < size:
            if len(records) == most:
                raise MalformedBytes("a batch has more records than it says")
            self._end = size
            length = self._number(35)
            if length < 6:
                raise MalformedBytes(f"a record of {length} bytes is too short to be one")
            if length > size - self._position:
                raise MalformedBytes("a record is cut off")
            self._end = self._position + length
            records.append(self._record(data))
        return records

    @cython.cfunc
    def _number(self, bits: cython.int) -> cython.longlong:
        low_32_bits: cython.ulonglong = 0xFFFF_FFFF
        raw: cython.ulonglong = 0
        shift: cython.int = 0
        octet: cython.ulonglong
        while self._position < self._end and shift < bits:
            octet = self._view[self._position]
            self._position += 1
            raw |= (octet & 0x7F) << shift
            shift += 7
            if octet < 0x80:
                if bits == 35:
                    raw &= low_32_bits
                return _zigzag(raw)
        raise MalformedBytes("a number in a record is cut off or longer than its type")

    @cython.cfunc
    def _octets(self, data: bytes) -> bytes | None:
        size: cython.longlong = self._number(35)
        if size < 0:
            return None
        start: cython.Py_ssize_t = self._position
        if size > self._end - start:
            raise MalformedBytes("a key, value or header is longer than its record")
        self._position = start + size
        return data[start : start + size]

    @cython.cfunc
    def _record(self, data: bytes) -> Record:
        self._position += 1  # the attributes
        delta: cython.longlong = self._number(70)
        timestamp: cython.longlong = _signed(self._base_timestamp + delta)
        if self._is_log_append_time:
            timestamp = self._log_append_time
        offset: cython.longlong = self._base_offset + self._number(35)
        key = self._octets(data)
        value = self._octets(data)
        header_count: cython.longlong = self._number(35)
        if header_count < 0 or header_count > self._end - self._position:
            raise MalformedBytes("a record has an impossible number of headers")
        headers: tuple[Header, ...] = ()
        if header_count:
            headers = self._headers(data, header_count)
        if self._position != self._end:
            raise MalformedBytes("a record does not end where its length says")
        return tuple.__new__(Record, (timestamp, key, value, headers, offset))  # spares a call of Python code

    @cython.cfunc
    def _headers(self, data: bytes, header_count: cython.longlong) -> tuple[Header, ...]:
        headers: list[Header] = []
        while len(headers) < header_count:
            key = self._octets(data)
            if key is None:
                raise MalformedBytes("a record has a header without a key")
            headers.append((key.decode("utf-8", "surrogateescape"), self._octets(data)))
        return tuple(headers)
