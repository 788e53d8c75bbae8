"""The fields of one record, read with all of their lengths checked.

An inlined module: see kaspar/base/primitives.py for its rules.
"""

from typing import Final, NamedTuple

import cython

from kaspar.base.primitives import Octets, read_varint, varint_size, varint_value, varlong_size

# Problems of a record; 0 means none.
BAD_NUMBER: Final = 1
RECORD_TOO_SHORT: Final = 2
BEYOND_END: Final = 3
BAD_HEADER_COUNT: Final = 4
HEADER_WITHOUT_KEY: Final = 5
WRONG_LENGTH: Final = 6
OFFSET_OUTSIDE_BATCH: Final = 7
TIMESTAMP_OVERFLOW: Final = 8
TOO_MANY_RECORDS: Final = 9

PROBLEMS = {
    BAD_NUMBER: "a varint in a record is cut off or longer than its type",
    RECORD_TOO_SHORT: "a record is shorter than the smallest possible record",
    BEYOND_END: "a record, key, value or header extends beyond its container",
    BAD_HEADER_COUNT: "a record has an invalid number of headers",
    HEADER_WITHOUT_KEY: "a record has a header without a key",
    WRONG_LENGTH: "a record does not end where its length says",
    OFFSET_OUTSIDE_BATCH: "a record has an offset outside its batch",
    TIMESTAMP_OVERFLOW: "the timestamp of a record overflows microseconds",
    TOO_MANY_RECORDS: "there are more records than the batch header says",
}

_SMALLEST_BODY: Final = 6  # attributes, timestamp, offset, no key, no value and no headers


class RecordFields(NamedTuple):
    """The positions and sizes of the fields. If there is a problem, the others are not valid."""

    problem: cython.int
    end: cython.Py_ssize_t
    timestamp_at: cython.Py_ssize_t
    timestamp_size: cython.Py_ssize_t
    offset_delta: cython.longlong
    key_at: cython.Py_ssize_t
    key_size: cython.longlong  # -1: null
    value_at: cython.Py_ssize_t
    value_size: cython.longlong  # -1: null
    headers_at: cython.Py_ssize_t  # their count, then the headers


def read_record(data: Octets, position: cython.Py_ssize_t, limit: cython.Py_ssize_t) -> RecordFields:
    """Read the record at `position`, which must end by `limit`. Its headers are not read."""
    varint: cython.longlong = read_varint(data, position, limit)
    if varint < 0:
        return failed(BAD_NUMBER)
    position += varint_size(varint)
    length: cython.longlong = varint_value(varint)
    if length < _SMALLEST_BODY:
        return failed(RECORD_TOO_SHORT)
    if length > limit - position:
        return failed(BEYOND_END)
    end: cython.Py_ssize_t = position + length
    timestamp_at: cython.Py_ssize_t = position + 1  # after the attributes, which have no meaning yet
    timestamp_size: cython.Py_ssize_t = varlong_size(data, timestamp_at, end)
    position = timestamp_at + timestamp_size
    varint = read_varint(data, position, end)
    if timestamp_size == 0 or varint < 0:
        return failed(BAD_NUMBER)
    position += varint_size(varint)
    offset_delta: cython.longlong = varint_value(varint)

    varint = read_varint(data, position, end)
    if varint < 0:
        return failed(BAD_NUMBER)
    position += varint_size(varint)
    key_at: cython.Py_ssize_t = position
    key_size: cython.longlong = varint_value(varint)
    if key_size > end - position:
        return failed(BEYOND_END)
    if key_size > 0:
        position += key_size

    varint = read_varint(data, position, end)
    if varint < 0:
        return failed(BAD_NUMBER)
    position += varint_size(varint)
    value_at: cython.Py_ssize_t = position
    value_size: cython.longlong = varint_value(varint)
    if value_size > end - position:
        return failed(BEYOND_END)
    if value_size > 0:
        position += value_size
    return RecordFields(
        0, end, timestamp_at, timestamp_size, offset_delta, key_at, key_size, value_at, value_size, position
    )


def failed(problem: cython.int) -> RecordFields:
    return RecordFields(problem, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def check_headers(
    data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t, count: cython.longlong
) -> cython.int:
    """The problem of a record whose `count` headers begin at `position`: 0 if they end where it ends."""
    varint: cython.longlong
    field: cython.longlong
    size: cython.longlong
    if count < 0 or count > (end - position) // 2:
        return BAD_HEADER_COUNT
    for field in range(2 * count):
        varint = read_varint(data, position, end)
        if varint < 0:
            return BAD_NUMBER
        position += varint_size(varint)
        size = varint_value(varint)
        if size < 0 and field & 1 == 0:
            return HEADER_WITHOUT_KEY
        if size > end - position:
            return BEYOND_END
        if size > 0:
            position += size
    return 0 if position == end else WRONG_LENGTH
