"""A serde that consists of two functions."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kaspar.streams.serdes.errors import kind_of, reason_of, unreadable, unwritable
from kaspar.streams.serdes.serde import Serde

T = TypeVar("T")


class _Functions(Generic[T]):
    __slots__ = ("_deserializer", "_name", "_serializer")

    def __init__(self, serializer: Callable[[T], bytes], deserializer: Callable[[bytes], T]) -> None:
        self._serializer = serializer
        self._deserializer = deserializer
        self._name = f"of({_name_of(serializer)}, {_name_of(deserializer)})"

    def serialize(self, topic: str, value: T | None) -> bytes | None:
        if value is None:
            return None
        try:
            written: object = self._serializer(value)
        except Exception as error:  # a user's function may raise anything
            reason = f"{type(error).__name__}: {reason_of(error)}"
            raise unwritable(self._name, topic, value, reason) from error
        if not isinstance(written, bytes):
            raise unwritable(self._name, topic, value, f"its serializer must return bytes, not {kind_of(written)}")
        return written

    def deserialize(self, topic: str, data: bytes | None) -> T | None:
        if data is None:
            return None
        try:
            return self._deserializer(data)
        except Exception as error:  # a user's function may raise anything
            raise unreadable(self._name, topic, data, f"{type(error).__name__}: {reason_of(error)}") from error

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Callable[..., Any], Callable[..., Any]]]:
        return of, (self._serializer, self._deserializer)


def of(serializer: Callable[[T], bytes], deserializer: Callable[[bytes], T]) -> Serde[T]:
    """A serde of two functions: `serializer(value)` returns bytes, `deserializer(data)` the value. Neither is called
    for null."""
    return _Functions(serializer, deserializer)


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
