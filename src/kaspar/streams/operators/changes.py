"""The changes of a table on their way through a topic: pairs of new and old value as bytes."""

import struct
from typing import Any

from kaspar.streams.errors import StreamsError
from kaspar.streams.serdes import Serde

_SIZE = struct.Struct(">i")
_ABSENT = -1


class ChangeSerde:
    """The size of the new value (-1 if it is None), the new value, and the rest is the old one, behind its size."""

    def __init__(self, values: Serde[Any]) -> None:
        self._values = values

    def serialize(self, topic: str, value: tuple[Any, Any] | None) -> bytes | None:
        if value is None:
            return None
        return b"".join(_sized(self._values.serialize(topic, each)) for each in value)

    def deserialize(self, topic: str, data: bytes | None) -> tuple[Any, Any] | None:
        if data is None:
            return None
        new, end = _read(data, 0)
        old, end = _read(data, end)
        if end != len(data):
            raise StreamsError(f"A record of the internal topic {topic} is damaged.")
        return self._values.deserialize(topic, new), self._values.deserialize(topic, old)


def _sized(data: bytes | None) -> bytes:
    return _SIZE.pack(_ABSENT) if data is None else _SIZE.pack(len(data)) + data


def _read(data: bytes, start: int) -> tuple[bytes | None, int]:
    (size,) = _SIZE.unpack_from(data, start)
    start += _SIZE.size
    return (None, start) if size == _ABSENT else (data[start : start + size], start + size)
