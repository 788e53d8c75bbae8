"""Lists, byte-equal to Java's ListSerde.

    00, count of nulls, the index of each, count of entries, their bytes        entries of constant size
    01, count of entries, for each its size (-1 for null) and its bytes         all others

Counts, indexes and sizes have 4 bytes.
"""

import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kaspar.streams.serdes.errors import unreadable, wrong_type
from kaspar.streams.serdes.numbers import DOUBLE, INTEGER, LONG, SHORT, SINGLE
from kaspar.streams.serdes.plain import UUID_TEXT
from kaspar.streams.serdes.serde import Serde

T = TypeVar("T")

_CONSTANT_SIZE, _VARIABLE_SIZE = b"\x00", b"\x01"
_NULL = -1
_INT = struct.Struct(">i")
_CONSTANT_SIZES: dict[object, int] = {  # those of Java's ListSerializer, which has none for booleans
    **{number: number.size for number in (SHORT, INTEGER, LONG)},
    **{number: number.size for number in (SINGLE, DOUBLE)},
    UUID_TEXT: 36,
}


class _ListOf(Generic[T]):
    __slots__ = ("_inner", "_size")

    def __init__(self, inner: Serde[T]) -> None:
        self._inner = inner
        self._size = next((size for serde, size in _CONSTANT_SIZES.items() if serde is inner), None)

    def serialize(self, topic: str, value: list[T | None] | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            raise wrong_type("list_of", topic, value, "list")
        entries = [self._inner.serialize(topic, entry) for entry in value]
        count = _INT.pack(len(entries))
        if self._size is None:
            sized = (_INT.pack(_NULL) if entry is None else _INT.pack(len(entry)) + entry for entry in entries)
            return _VARIABLE_SIZE + count + b"".join(sized)
        nulls = [index for index, entry in enumerate(entries) if entry is None]
        null_indexes = b"".join(map(_INT.pack, (len(nulls), *nulls)))
        return _CONSTANT_SIZE + null_indexes + count + b"".join(entry for entry in entries if entry is not None)

    def deserialize(self, topic: str, data: bytes | None) -> list[T | None] | None:
        if data is None:
            return None
        reader = _Reader(data)
        try:
            entries = reader.variable() if self._size is None else reader.constant(self._size)
        except (ValueError, struct.error) as error:
            reason = "they are not a list that Java's ListSerializer or serdes.list_of wrote with this inner serde"
            raise unreadable("list_of", topic, data, reason) from error
        return [self._inner.deserialize(topic, entry) for entry in entries]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Serde[T]]]:
        return list_of, (self._inner,)


class _Reader:
    """Reads the entries of a serialized list. Raises ValueError or struct.error if the bytes are invalid."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 1

    def variable(self) -> list[bytes | None]:
        self._expect(_VARIABLE_SIZE)
        sizes_and_bytes = [self._sized() for _ in range(self._count())]
        return self._whole(sizes_and_bytes)

    def constant(self, size: int) -> list[bytes | None]:
        self._expect(_CONSTANT_SIZE)
        nulls = {self._int() for _ in range(self._count())}
        return self._whole([None if index in nulls else self._take(size) for index in range(self._count())])

    def _expect(self, strategy: bytes) -> None:
        if self._data[:1] != strategy:
            raise ValueError("another form of list")

    def _whole(self, entries: list[bytes | None]) -> list[bytes | None]:
        if self._at != len(self._data):
            raise ValueError("bytes are left over")
        return entries

    def _sized(self) -> bytes | None:
        size = self._int()
        return None if size == _NULL else self._take(size)

    def _count(self) -> int:
        count = self._int()
        if not 0 <= count <= len(self._data):
            raise ValueError("more entries than bytes")
        return count

    def _int(self) -> int:
        number: int = _INT.unpack_from(self._data, self._at)[0]
        self._at += _INT.size
        return number

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise ValueError("an entry ends after the list")
        taken, self._at = self._data[self._at : end], end
        return taken


def list_of(inner: Serde[T]) -> Serde[list[T | None]]:
    """Lists whose entries, which may be null, have the inner serde: Java's ListSerde."""
    return _ListOf(inner)
