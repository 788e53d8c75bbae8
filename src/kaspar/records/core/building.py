"""Builds the batches that coordinators write. Part of the compiled core; the rules of checking.py apply.

These batches are many and small: one or a few records with the same timestamp, without headers, compression or a
transaction. So they need only a small part of what `build_batch` can do.
"""

from collections.abc import Sequence

import cython
from crc32c import crc32c

from kaspar.base.ids import NO_EPOCH, NO_PRODUCER_ID
from kaspar.records.layout import HEADER

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
    from cython.cimports.kaspar.records import layout
else:
    from kaspar.base import primitives
    from kaspar.records import layout

_NO_VALUE = cython.declare(cython.Py_ssize_t, -1)
_pack_header = HEADER.pack_into


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _record_size(index: cython.Py_ssize_t, key: cython.Py_ssize_t, value: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The size of a record without its length field: attributes, timestamp, offset, key, value, no headers."""
    octets: cython.Py_ssize_t = key + (value if value > 0 else 0)
    return (
        3
        + primitives.size_of_varlong(index)
        + primitives.size_of_varlong(key)
        + primitives.size_of_varlong(value)
        + octets
    )


@cython.locals(data="unsigned char[::1]")
def build_plain_batch(records: Sequence[tuple[bytes, bytes | None]], timestamp: int) -> bytearray:
    """Build one batch from these keys and values, at least one, all with this timestamp, exactly as `build_batch`
    does.
    """
    count: cython.Py_ssize_t = len(records)
    if count == 0:
        raise ValueError("a batch holds at least one record")
    size: cython.Py_ssize_t = layout.HEADER_SIZE
    index: cython.Py_ssize_t
    record_size: cython.Py_ssize_t
    key_size: cython.Py_ssize_t
    value_size: cython.Py_ssize_t
    for index, (key, value) in enumerate(records):
        record_size = _record_size(index, len(key), _NO_VALUE if value is None else len(value))
        size += primitives.size_of_varlong(record_size) + record_size

    batch = bytearray(size)
    _pack_header(
        batch,
        0,
        0,
        size - layout.LENGTH_OVERHEAD,
        NO_EPOCH,
        layout.MAGIC,
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
    position: cython.Py_ssize_t = layout.HEADER_SIZE
    for index, (key, value) in enumerate(records):
        key_size = len(key)
        value_size = _NO_VALUE if value is None else len(value)
        position = primitives.write_varlong(data, position, _record_size(index, key_size, value_size))
        position = primitives.write_varlong(data, position + 2, index)  # attributes and timestamp delta are 0
        position = primitives.write_varlong(data, position, key_size)
        batch[position : position + key_size] = key
        position = primitives.write_varlong(data, position + key_size, value_size)
        if value is not None:
            batch[position : position + value_size] = value
            position += value_size
        position += 1  # no headers
    primitives.write_int32(data, layout.CRC_AT, crc32c(memoryview(batch)[layout.CRC_COVERS_FROM :]))
    return batch
