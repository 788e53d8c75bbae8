"""The names of a record batch's choices: how it is compressed and whose clock its timestamps come from.

The numbers are those of the batch's attributes.
"""

from enum import IntEnum
from typing import TypeAlias

Octets: TypeAlias = bytes | bytearray | memoryview
"""Bytes to be read, wherever they lie. A memoryview is one of single unsigned bytes without gaps."""


class Codec(IntEnum):
    """How the records of a batch are compressed: the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Who gave the records their time: the producer, record by record, or the broker, once for the whole batch."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
