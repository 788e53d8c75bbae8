"""Text, bytes, booleans and UUIDs (Kafka's StringSerializer, ByteArraySerializer, BooleanSerializer and
UUIDSerializer).

Like Java, `text` replaces invalid text instead of rejecting it: bytes that are not UTF-8 are read as U+FFFD, and half
of a surrogate pair is written as a question mark.
"""

import re
from uuid import UUID

from kaspar.streams.serdes.errors import unreadable, wrong_type
from kaspar.streams.serdes.serde import Serde

_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")  # Java replaces it as a whole, Python byte by byte
_REPLACEMENT = "\ufffd".encode()
_TRUE, _FALSE = b"\x01", b"\x00"


class _Text:
    __slots__ = ()

    def serialize(self, topic: str, value: str | None) -> bytes | None:
        if value is None:
            return None
        try:
            return str.encode(value)
        except UnicodeEncodeError:
            return value.encode(errors="replace")
        except TypeError as error:
            raise wrong_type("text", topic, value, "str") from error

    def deserialize(self, topic: str, data: bytes | None) -> str | None:
        if data is None:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError:
            return _ENCODED_SURROGATE.sub(_REPLACEMENT, data).decode(errors="replace")

    def __reduce__(self) -> str:
        return "TEXT"


class _Raw:
    __slots__ = ()

    def serialize(self, topic: str, value: bytes | None) -> bytes | None:
        if value is None or type(value) is bytes:
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise wrong_type("raw", topic, value, "bytes")

    def deserialize(self, topic: str, data: bytes | None) -> bytes | None:
        return data

    def __reduce__(self) -> str:
        return "RAW"


class _Boolean:
    __slots__ = ()

    def serialize(self, topic: str, value: bool | None) -> bytes | None:
        if value is True:
            return _TRUE
        if value is False:
            return _FALSE
        if value is None:
            return None
        raise wrong_type("boolean", topic, value, "bool")

    def deserialize(self, topic: str, data: bytes | None) -> bool | None:
        if data is None:
            return None
        if data in (_TRUE, _FALSE):
            return data == _TRUE
        raise unreadable("boolean", topic, data, "a boolean is one byte, 01 or 00")

    def __reduce__(self) -> str:
        return "BOOLEAN"


class _Uuid:
    __slots__ = ()

    def serialize(self, topic: str, value: UUID | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, UUID):
            raise wrong_type("uuid", topic, value, "uuid.UUID")
        return str(value).encode()

    def deserialize(self, topic: str, data: bytes | None) -> UUID | None:
        if data is None:
            return None
        try:
            return UUID(data.decode())
        except ValueError as error:
            raise unreadable("uuid", topic, data, "they are not a UUID in its text form") from error

    def __reduce__(self) -> str:
        return "UUID_TEXT"


TEXT = _Text()
RAW = _Raw()
BOOLEAN = _Boolean()
UUID_TEXT = _Uuid()


def text() -> Serde[str]:
    """`str` in UTF-8: Java's String."""
    return TEXT


def raw() -> Serde[bytes]:
    """`bytes`, unchanged: Java's byte[], Bytes and ByteBuffer."""
    return RAW


def boolean() -> Serde[bool]:
    """One byte: Java's Boolean."""
    return BOOLEAN


def uuid() -> Serde[UUID]:
    """UUIDs as text of 36 characters: Java's UUID."""
    return UUID_TEXT
