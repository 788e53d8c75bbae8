"""Reads the records of a batch one by one, as Python objects. Part of the compiled core; the rules of checking.py
apply."""

import cython

from kaspar.base.errors import MalformedBytes
from kaspar.base.named_tuples import new_tuple
from kaspar.records.codec import Octets
from kaspar.records.core.record_fields import PROBLEMS
from kaspar.records.record import Header, Record

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
    from cython.cimports.kaspar.records import layout
    from cython.cimports.kaspar.records.core import record_fields
else:
    from kaspar.base import primitives
    from kaspar.records import layout
    from kaspar.records.core import record_fields

IS_COMPILED: bool = cython.compiled

_MOST_VARINT_BYTES = cython.declare(cython.Py_ssize_t, 5)


@cython.locals(data="const unsigned char[::1]")
def whole_records(buffer: Octets) -> tuple[int, int]:
    """Return where the last whole record of `buffer` ends, and the size of the record after it, or 0 if that is not
    known yet. The position is -1 if there can be no record."""
    data = buffer
    start: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(buffer)
    varint: cython.longlong
    size: cython.longlong
    while start < end:
        varint = primitives.read_varint(data, start, end)
        if varint < 0:
            return start if end - start < _MOST_VARINT_BYTES else -1, 0
        size = primitives.varint_value(varint) + primitives.varint_size(varint)
        if size < layout.SMALLEST_RECORD_SIZE:
            return -1, 0
        if size > end - start:
            return start, size
        start += size
    return start, 0


@cython.final
@cython.cclass
class RecordReader:
    """Reads the records of one batch from its inflated bytes, which may come in pieces of whole records."""

    _base_offset: cython.longlong
    _base_timestamp: cython.ulonglong
    _log_append_time: cython.longlong
    _is_log_append_time: cython.bint
    _view = cython.declare("const unsigned char[::1]")

    def __init__(
        self, base_offset: cython.longlong, base_timestamp: cython.longlong, log_append_time: int | None
    ) -> None:
        self._base_offset = base_offset
        self._base_timestamp = base_timestamp
        self._is_log_append_time = log_append_time is not None
        self._log_append_time = -1 if log_append_time is None else log_append_time

    def read(self, data: bytes, most: int) -> list[Record]:
        """All records in `data`, which ends with one of them. Raises MalformedBytes if there are more than `most`."""
        self._view = data
        records: list[Record] = []
        fields: record_fields.RecordFields
        timestamp: cython.longlong
        offset: cython.longlong
        position: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t = len(data)
        while position < size:
            if len(records) == most:
                raise MalformedBytes(PROBLEMS[record_fields.TOO_MANY_RECORDS])
            fields = record_fields.read_record(self._view, position, size)
            if fields.problem:
                raise MalformedBytes(PROBLEMS[fields.problem])
            timestamp = self._log_append_time
            if not self._is_log_append_time:
                timestamp = primitives.wrap_int64(
                    self._base_timestamp
                    + primitives.read_varlong(self._view, fields.timestamp_at, fields.timestamp_size)
                )
            offset = self._base_offset + fields.offset_delta
            key = self._octets(data, fields.key_at, fields.key_size)
            value = self._octets(data, fields.value_at, fields.value_size)
            headers = self._headers(data, fields.headers_at, fields.end)
            records.append(new_tuple(Record, (timestamp, key, value, headers, offset)))
            position = fields.end
        return records

    @cython.cfunc
    def _octets(self, data: bytes, start: cython.Py_ssize_t, size: cython.longlong) -> bytes | None:
        return None if size < 0 else data[start : start + size]

    @cython.cfunc
    def _headers(self, data: bytes, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> tuple[Header, ...]:
        varint: cython.longlong = primitives.read_varint(self._view, position, end)
        if varint < 0:
            raise MalformedBytes(PROBLEMS[record_fields.BAD_NUMBER])
        position += primitives.varint_size(varint)
        count: cython.longlong = primitives.varint_value(varint)
        if count == 0 and position == end:
            return ()
        problem: cython.int = record_fields.check_headers(self._view, position, end, count)
        if problem:
            raise MalformedBytes(PROBLEMS[problem])
        headers: list[Header] = []
        size: cython.longlong
        while len(headers) < count:
            varint = primitives.read_varint(self._view, position, end)
            position += primitives.varint_size(varint)
            size = primitives.varint_value(varint)
            key = data[position : position + size].decode("utf-8", "surrogateescape")
            position += size
            varint = primitives.read_varint(self._view, position, end)
            position += primitives.varint_size(varint)
            size = primitives.varint_value(varint)
            headers.append((key, self._octets(data, position, size)))
            if size > 0:
                position += size
        return tuple(headers)
