"""Keys of windowed results, byte-equal to Java's TimeWindowedSerde and SessionWindowedSerde.

The inner key's bytes are followed by the window's start (8 bytes), or for sessions by its end and its start. The size
of a time window is not in the bytes, so the reader has to know it.
"""

import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kaspar.base.named_tuples import new_tuple
from kaspar.streams.serdes.errors import SerializationError, unreadable, unwritable, wrong_type
from kaspar.streams.serdes.serde import Serde
from kaspar.streams.windows import Window, Windowed

K = TypeVar("K")

_TIME = struct.Struct(">q")
_TIMES = struct.Struct(">qq")
_LONG_MAX = 2**63 - 1


class _TimeWindowed(Generic[K]):
    __slots__ = ("_deserialize", "_inner", "_serialize", "_size")

    def __init__(self, inner: Serde[K], window_size_ms: int) -> None:
        self._inner = inner
        self._size = window_size_ms
        self._serialize = inner.serialize
        self._deserialize = inner.deserialize

    def serialize(self, topic: str, value: Windowed[K] | None) -> bytes | None:
        if value is None:
            return None
        try:
            key, window = value
            return self._serialize(topic, key) + _TIME.pack(window[0])  # type: ignore[operator]  # handled below
        except (TypeError, ValueError, struct.error) as error:
            raise _unwritable("windowed", topic, value) from error

    def deserialize(self, topic: str, data: bytes | None) -> Windowed[K] | None:
        if not data:
            return None
        if len(data) < 8:
            raise unreadable("windowed", topic, data, "a windowed key ends with the 8 bytes of its window's start")
        start = _TIME.unpack(data[-8:])[0]
        end = start + self._size
        window = new_tuple(Window, (start, end if end <= _LONG_MAX else _LONG_MAX))
        return new_tuple(Windowed, (self._deserialize(topic, data[:-8]), window))

    def serialize_base_key(self, topic: str, value: Windowed[K]) -> bytes | None:
        """The bytes of the inner key, which determine the partition (WindowedSerializer.serializeBaseKey)."""
        return self._serialize(topic, value[0])

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Serde[K], int]]:
        return windowed, (self._inner, self._size)


class _SessionWindowed(Generic[K]):
    __slots__ = ("_deserialize", "_inner", "_serialize")

    def __init__(self, inner: Serde[K]) -> None:
        self._inner = inner
        self._serialize = inner.serialize
        self._deserialize = inner.deserialize

    def serialize(self, topic: str, value: Windowed[K] | None) -> bytes | None:
        if value is None:
            return None
        try:
            key, (start, end) = value
            return self._serialize(topic, key) + _TIMES.pack(end, start)  # type: ignore[operator]  # handled below
        except (TypeError, ValueError, struct.error) as error:
            raise _unwritable("session_windowed", topic, value) from error

    def deserialize(self, topic: str, data: bytes | None) -> Windowed[K] | None:
        if not data:
            return None
        if len(data) < 16:
            reason = "a session's key ends with the 16 bytes of its end and its start"
            raise unreadable("session_windowed", topic, data, reason)
        end, start = _TIMES.unpack(data[-16:])
        return new_tuple(Windowed, (self._deserialize(topic, data[:-16]), new_tuple(Window, (start, end))))

    def serialize_base_key(self, topic: str, value: Windowed[K]) -> bytes | None:
        return self._serialize(topic, value[0])

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Serde[K]]]:
        return session_windowed, (self._inner,)


def windowed(inner: Serde[K], window_size_ms: int) -> Serde[Windowed[K]]:
    """Keys of tumbling, hopping and sliding windows; `inner` is the serde of the key itself."""
    if window_size_ms <= 0:
        raise SerializationError(f"The size of a window must be larger than zero, not {window_size_ms} ms.")
    return _TimeWindowed(inner, window_size_ms)


def session_windowed(inner: Serde[K]) -> Serde[Windowed[K]]:
    """Keys of session windows; `inner` is the serde of the key itself."""
    return _SessionWindowed(inner)


def _unwritable(serde: str, topic: str, value: object) -> SerializationError:
    if not isinstance(value, Windowed):
        return wrong_type(serde, topic, value, "Windowed(key, Window(start, end))")
    reason = "its key is null" if value.key is None else f"its window is {value.window!r}"
    return unwritable(serde, topic, value, reason)
