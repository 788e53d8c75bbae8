"""The serde of table changes in internal topics: pairs of new and old value."""

import struct
from typing import Any

from kaspar.streams.errors import StreamsError
from kaspar.streams.serdes import Serde

_SIZE = struct.Struct(">i")
_ABSENT = -1


class ChangeSerde:
    """The format: size of the new value (-1 if it is None), new value, size of the old value, old value."""

    def __init__(self, values: Serde[Any] | None) -> None:
        self._values = values

    def with_defaults(self, key_serde: Serde[Any], value_serde: Serde[Any]) -> "ChangeSerde":
        return self if self._values is not None else ChangeSerde(value_serde)

    def serialize(self, topic: str, value: tuple[Any, Any] | None) -> bytes | None:
        if value is None:
            return None
        write = self._known.serialize
        return b"".join(_sized(write(topic, each)) for each in value)

    def deserialize(self, topic: str, data: bytes | None) -> tuple[Any, Any] | None:
        if data is None:
            return None
        new, end = _read(data, 0)
        old, end = _read(data, end)
        if end != len(data):
            raise StreamsError(f"A record of the internal topic {topic} is damaged.")
        read = self._known.deserialize
        return read(topic, new), read(topic, old)

    @property
    def _known(self) -> Serde[Any]:
        assert self._values is not None, "with_defaults() comes first"
        return self._values


def _sized(data: bytes | None) -> bytes:
    return _SIZE.pack(_ABSENT) if data is None else _SIZE.pack(len(data)) + data


def _read(data: bytes, start: int) -> tuple[bytes | None, int]:
    (size,) = _SIZE.unpack_from(data, start)
    start += _SIZE.size
    return (None, start) if size == _ABSENT else (data[start : start + size], start + size)
