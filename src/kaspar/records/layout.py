"""Where the fields of a record batch (format v2, Kafka's DefaultRecordBatch) are, and what its attributes mean.

An inlined module: see kaspar/base/primitives.py for its rules.
"""

import struct
from typing import Final

import cython

from kaspar.base.primitives import Octets, read_int32, read_int64

MAGIC: Final = 2

# Positions in the header.
BASE_OFFSET_AT: Final = 0
LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
LOW_ATTRIBUTES_AT: Final = 22
LAST_OFFSET_DELTA_AT: Final = 23
BASE_TIMESTAMP_AT: Final = 27
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_ID_AT: Final = 43
PRODUCER_EPOCH_AT: Final = 51
BASE_SEQUENCE_AT: Final = 53
COUNT_AT: Final = 57
HEADER_SIZE: Final = 61

LENGTH_OVERHEAD: Final = 12
"""The base offset and the length field itself, which the length does not count."""
CRC_COVERS_FROM: Final = 21
"""The CRC covers everything from here on."""

# Attributes.
CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

SMALLEST_RECORD_SIZE: Final = 7
"""A length, attributes, a timestamp, an offset, no key, no value and no headers: one byte each."""

HEADER = struct.Struct(">qiibIhiqqqhii")


def batch_size(data: Octets, start: cython.Py_ssize_t) -> cython.longlong:
    """The size of the whole batch in bytes, according to its header."""
    return read_int32(data, start + LENGTH_AT) + LENGTH_OVERHEAD


def last_offset(data: Octets, start: cython.Py_ssize_t) -> cython.longlong:
    return read_int64(data, start) + read_int32(data, start + LAST_OFFSET_DELTA_AT)
