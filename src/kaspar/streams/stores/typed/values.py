"""The format of timestamped values in stores: 8 bytes of timestamp, big endian, and the value (Kafka's
ValueAndTimestampSerializer)."""

import struct
from typing import Final, Generic, NamedTuple, TypeVar

from kaspar.streams.errors import StreamsError

V = TypeVar("V")

TIMESTAMP_SIZE = 8

write_timestamp: Final = struct.Struct(">q").pack
read_timestamp: Final = struct.Struct(">q").unpack_from


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """A value and its event time."""

    value: V
    timestamp: int


def null_key(store: str) -> StreamsError:
    return StreamsError(f"store {store}: a key must not be null")
