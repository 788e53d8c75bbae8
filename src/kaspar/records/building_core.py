"""The compiled core of the records package, the part that builds: a batch of the records that a coordinator writes.

Those are many and small, one or a few to a batch, all of one moment, without headers, compression or transaction: of
all that `build_batch` can do nothing else is needed for them. The rules of core.py hold here, too.
"""

from collections.abc import Sequence

import cython
from crc32c import crc32c

from kaspar.base.ids import NO_EPOCH, NO_PRODUCER_ID
from kaspar.records.batch import CRC_POSITION, CRC_START, HEADER, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC

_FIRST_RECORD = cython.declare(cython.Py_ssize_t, HEADER_SIZE)
_NO_VALUE = cython.declare(cython.Py_ssize_t, -1)
_pack_header = HEADER.pack_into


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint_size(number: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Of a number from -1 on."""
    raw: cython.Py_ssize_t = 2 * number if number >= 0 else 1
    size: cython.Py_ssize_t = 1
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.locals(data="unsigned char[::1]")
def _put_varint(
    data: bytearray | memoryview, position: cython.Py_ssize_t, number: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where the next byte goes."""
    raw: cython.Py_ssize_t = 2 * number if number >= 0 else 1
    while raw > 0x7F:
        data[position] = (raw & 0x7F) | 0x80
        raw >>= 7
        position += 1
    data[position] = raw
    return position + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _record_size(index: cython.Py_ssize_t, key: cython.Py_ssize_t, value: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Without its own length: attributes, time, offset, key, value, no headers."""
    octets: cython.Py_ssize_t = key + (value if value > 0 else 0)
    return 3 + _varint_size(index) + _varint_size(key) + _varint_size(value) + octets


@cython.locals(data="unsigned char[::1]")
def build_plain_batch(records: Sequence[tuple[bytes, bytes | None]], timestamp: int) -> bytearray:
    """One batch of these keys and values, at least one, all of them of this time: what `build_batch` makes of them."""
    count: cython.Py_ssize_t = len(records)
    if count == 0:
        raise ValueError("a batch holds at least one record")
    size: cython.Py_ssize_t = _FIRST_RECORD
    index: cython.Py_ssize_t
    record_size: cython.Py_ssize_t
    key_size: cython.Py_ssize_t
    value_size: cython.Py_ssize_t
    for index, (key, value) in enumerate(records):
        record_size = _record_size(index, len(key), _NO_VALUE if value is None else len(value))
        size += _varint_size(record_size) + record_size

    batch = bytearray(size)
    _pack_header(
        batch,
        0,
        0,
        size - LENGTH_OVERHEAD,
        NO_EPOCH,
        MAGIC,
        0,
        0,
        count - 1,
        timestamp,
        timestamp,
        NO_PRODUCER_ID,
        -1,
        -1,
        count,
    )
    data = batch
    position: cython.Py_ssize_t = _FIRST_RECORD
    for index, (key, value) in enumerate(records):
        key_size = len(key)
        value_size = _NO_VALUE if value is None else len(value)
        position = _put_varint(data, position, _record_size(index, key_size, value_size))
        position = _put_varint(data, position + 2, index)  # no attributes, no later than the first
        position = _put_varint(data, position, key_size)
        batch[position : position + key_size] = key
        position = _put_varint(data, position + key_size, value_size)
        if value is not None:
            batch[position : position + value_size] = value
            position += value_size
        position += 1  # no headers
    crc: cython.longlong = crc32c(memoryview(batch)[CRC_START:])
    for index in range(4):
        batch[CRC_POSITION + index] = (crc >> (8 * (3 - index))) & 0xFF
    return batch
