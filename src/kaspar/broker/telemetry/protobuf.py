"""Reads the fields of an untrusted protobuf message.

Nothing here recurses, unknown fields are for the caller to skip, and malformed bytes raise MalformedBytes.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from kaspar.base.errors import MalformedBytes
from kaspar.base.varints import read_uvarint

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES: Final = 10
_DOUBLE: Final = struct.Struct("<d")
_SIGNED: Final = struct.Struct("<q")

Value: TypeAlias = int | bytes
"""The value of a field: a varint as a number, anything else as bytes."""


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """The number and value of each field."""
    position, end = 0, len(message)
    while position < end:
        tag, position = _varint(message, position)
        wire_type = tag & 7
        if wire_type == _VARINT:
            number, position = _varint(message, position)
            yield tag >> 3, number
            continue
        if wire_type == _BYTES:
            size, position = _varint(message, position)
        elif wire_type == _FIXED64:
            size = 8
        elif wire_type == _FIXED32:
            size = 4
        else:
            raise MalformedBytes(f"unsupported protobuf wire type {wire_type}")
        if size > end - position:
            raise MalformedBytes("a protobuf field is longer than its message")
        yield tag >> 3, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """The number, and the position after it."""
    read = read_uvarint(message, position, _MAX_VARINT_BYTES)
    if read is None:
        raise MalformedBytes("a protobuf varint is not terminated")
    number, position = read
    return number & 0xFFFF_FFFF_FFFF_FFFF, position


def messages(message: bytes, number: int) -> Iterator[bytes]:
    return (octets_of(value) for field, value in fields(message) if field == number)


def number_in(message: bytes, number: int) -> int:
    found = 0
    for field, value in fields(message):
        if field == number and isinstance(value, int):
            found = value
    return found


def octets_of(value: Value) -> bytes:
    if isinstance(value, int):
        raise MalformedBytes("a protobuf number was found instead of a message")
    return value


def text_of(value: Value) -> str:
    return octets_of(value).decode(errors="replace")


def _eight(value: Value) -> bytes:
    octets = octets_of(value)
    if len(octets) != 8:
        raise MalformedBytes(f"a protobuf number has {len(octets)} bytes, not 8")
    return octets


def double_of(value: Value) -> float:
    number: float = _DOUBLE.unpack(_eight(value))[0]
    return number


def _packed(value: Value, kind: str) -> tuple[Any, ...]:
    octets = octets_of(value)
    if len(octets) % 8:
        raise MalformedBytes(f"protobuf numbers of 8 bytes take {len(octets)}")
    return struct.unpack(f"<{len(octets) // 8}{kind}", octets)


def doubles_of(value: Value) -> tuple[float, ...]:
    """One number, or several packed ones."""
    return _packed(value, "d")


def counts_of(value: Value) -> tuple[int, ...]:
    return _packed(value, "Q")


def signed_of(value: Value) -> int:
    number: int = _SIGNED.unpack(_eight(value))[0]
    return number
