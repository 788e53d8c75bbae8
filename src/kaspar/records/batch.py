"""A record batch as bytes: reading its header, checking it, and changing in place the fields that a broker may set."""

import struct
from collections.abc import Iterator

from crc32c import crc32c

from kaspar.records.codec import Octets, TimestampType
from kaspar.records.core import checking
from kaspar.records.layout import (
    ATTRIBUTES_AT,
    CRC_AT,
    CRC_COVERS_FROM,
    HEADER_SIZE,
    LENGTH_AT,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    MAX_TIMESTAMP_AT,
)

__all__ = [
    "HEADER_SIZE",
    "BatchHeader",
    "CheckedBatch",
    "PlainTerms",
    "check_batch",
    "check_plain_batch",
    "crc_matches",
    "iter_headers",
    "place_batch",
    "read_header",
    "set_crc",
    "set_max_timestamp",
]

BatchHeader = checking.BatchHeader
CheckedBatch = checking.CheckedBatch
PlainTerms = checking.PlainTerms
check_batch = checking.check_batch
check_plain_batch = checking.check_plain_batch
place_batch = checking.place_batch
read_header = checking.read_header

_LENGTH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMP = struct.Struct(">q")


def iter_headers(buffer: Octets, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """The position and header of every whole batch, up to a partial one. Raises MalformedBytes at bytes that are no
    batch."""
    while end - start >= HEADER_SIZE:
        header = read_header(buffer, start)
        if header.size > end - start:
            return
        yield start, header
        start += header.size


def crc_matches(buffer: Octets, position: int, header: BatchHeader) -> bool:
    """Whether the CRC of the whole batch at `position` is correct."""
    return crc32c(memoryview(buffer)[position + CRC_COVERS_FROM : position + header.size]) == header.crc


def set_max_timestamp(
    buffer: bytearray | memoryview, start: int, timestamp_type: TimestampType, max_timestamp: int
) -> None:
    """Set the batch's timestamp type and max timestamp, and recompute its CRC if that changed anything."""
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, start + ATTRIBUTES_AT)
    (old_max_timestamp,) = _TIMESTAMP.unpack_from(buffer, start + MAX_TIMESTAMP_AT)
    flag = LOG_APPEND_TIME_FLAG if timestamp_type is TimestampType.LOG_APPEND_TIME else 0
    new_attributes = attributes & ~LOG_APPEND_TIME_FLAG | flag
    if new_attributes == attributes and old_max_timestamp == max_timestamp:
        return
    _ATTRIBUTES.pack_into(buffer, start + ATTRIBUTES_AT, new_attributes)
    _TIMESTAMP.pack_into(buffer, start + MAX_TIMESTAMP_AT, max_timestamp)
    set_crc(buffer, start)


def set_crc(buffer: bytearray | memoryview, start: int) -> None:
    """Compute the CRC of the whole batch at `start` and write it into its header."""
    (length,) = _LENGTH.unpack_from(buffer, start + LENGTH_AT)
    covered = memoryview(buffer)[start + CRC_COVERS_FROM : start + LENGTH_OVERHEAD + length]
    _CRC.pack_into(buffer, start + CRC_AT, crc32c(covered))
