"""A record batch as bytes: reading its header, checking it, and changing what a broker may change, in place.

This module alone chooses the form of the compiled core, and hands it to the rest of the package.
"""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from crc32c import crc32c

from kaspar.base.compiled import load
from kaspar.records.codec import Octets, TimestampType

if TYPE_CHECKING:
    from kaspar.records import core
else:
    core = load("kaspar.records.core")

__all__ = [
    "HEADER_SIZE",
    "BatchHeader",
    "CheckedBatch",
    "PlainTerms",
    "check_batch",
    "check_plain_batch",
    "core",
    "crc_matches",
    "iter_headers",
    "place_batch",
    "read_header",
    "set_crc",
    "set_max_timestamp",
]

BatchHeader = core.BatchHeader
CheckedBatch = core.CheckedBatch
PlainTerms = core.PlainTerms
check_batch = core.check_batch
check_plain_batch = core.check_plain_batch
place_batch = core.place_batch
read_header = core.read_header

MAGIC = 2
HEADER_SIZE = 61
HEADER = struct.Struct(">qiibIhiqqqhii")
LENGTH_OVERHEAD = 12  # base_offset and length itself, which length does not count
CRC_POSITION = 17
CRC_START = 21  # the CRC covers all that follows it
ATTRIBUTES_POSITION = 21
MAX_TIMESTAMP_POSITION = 35

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20

_LENGTH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMP = struct.Struct(">q")


def iter_headers(buffer: Octets, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """The place and header of every whole batch; stops at a partial one. Raises MalformedBytes at what is no batch."""
    while end - start >= HEADER_SIZE:
        header = read_header(buffer, start)
        if header.size > end - start:
            return
        yield start, header
        start += header.size


def crc_matches(buffer: Octets, position: int, header: BatchHeader) -> bool:
    """Whether the whole batch at `position` is as it was when its CRC was computed."""
    return crc32c(memoryview(buffer)[position + CRC_START : position + header.size]) == header.crc


def set_max_timestamp(
    buffer: bytearray | memoryview, start: int, timestamp_type: TimestampType, max_timestamp: int
) -> None:
    """Set the batch's timestamp type and max timestamp, and its CRC anew if that changed anything."""
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, start + ATTRIBUTES_POSITION)
    (old_max_timestamp,) = _TIMESTAMP.unpack_from(buffer, start + MAX_TIMESTAMP_POSITION)
    flag = LOG_APPEND_TIME_FLAG if timestamp_type is TimestampType.LOG_APPEND_TIME else 0
    new_attributes = attributes & ~LOG_APPEND_TIME_FLAG | flag
    if new_attributes == attributes and old_max_timestamp == max_timestamp:
        return
    _ATTRIBUTES.pack_into(buffer, start + ATTRIBUTES_POSITION, new_attributes)
    _TIMESTAMP.pack_into(buffer, start + MAX_TIMESTAMP_POSITION, max_timestamp)
    set_crc(buffer, start)


def set_crc(buffer: bytearray | memoryview, start: int) -> None:
    """Compute the CRC of the whole batch at `start` and write it into its header."""
    (length,) = _LENGTH.unpack_from(buffer, start + 8)
    covered = memoryview(buffer)[start + CRC_START : start + LENGTH_OVERHEAD + length]
    _CRC.pack_into(buffer, start + CRC_POSITION, crc32c(covered))
