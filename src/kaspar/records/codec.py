"""How a record batch is compressed and where its timestamps come from, as numbers in its attributes."""

from enum import IntEnum

from kaspar.base.primitives import Octets

__all__ = ["Codec", "Octets", "TimestampType"]


class Codec(IntEnum):
    """How the records of a batch are compressed: the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """Who set the timestamps: the producer, for each record, or the broker, for the whole batch."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
