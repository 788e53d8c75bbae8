"""The types of keys and values: deserializes bytes, and serializes text that users type.

Numbers are encoded like those of Kafka's serializers: big-endian, long with 8 bytes, int with 4, short with 2, double
and float as IEEE 754. A UUID is its text, as in Kafka's UUIDSerializer.
"""

import base64
import binascii
import struct
import uuid
from enum import StrEnum
from typing import Any, Final, assert_never

from kaspar.cli.records.json_text import read_json


class RecordType(StrEnum):
    AUTO = "auto"
    """JSON if it parses, otherwise text, otherwise bytes."""
    STRING = "string"
    JSON = "json"
    LONG = "long"
    INT = "int"
    SHORT = "short"
    DOUBLE = "double"
    FLOAT = "float"
    UUID = "uuid"
    HEX = "hex"
    BASE64 = "base64"


READABLE: Final = tuple(RecordType)
WRITABLE: Final = tuple(each for each in RecordType if each is not RecordType.AUTO)
_NUMBERS: Final = {
    RecordType.LONG: struct.Struct(">q"),
    RecordType.INT: struct.Struct(">i"),
    RecordType.SHORT: struct.Struct(">h"),
    RecordType.DOUBLE: struct.Struct(">d"),
    RecordType.FLOAT: struct.Struct(">f"),
}


class CannotRead(ValueError):
    """The bytes do not have this type."""


def deserialize(data: bytes | None, kind: RecordType) -> Any:
    """Deserialize to a JSON value, or with `auto` to bytes if they are not text. None stays None. Raises CannotRead
    with a message for users.
    """
    if data is None:
        return None
    match kind:
        case RecordType.AUTO:
            return _guess(data)
        case RecordType.STRING:
            try:
                return data.decode()
            except UnicodeDecodeError:
                raise CannotRead(f"{_shown(data)} is not UTF-8 text: try hex or base64") from None
        case RecordType.JSON:
            try:
                return read_json(data)
            except ValueError as problem:
                raise CannotRead(f"{_shown(data)} is not JSON: {problem}") from None
        case RecordType.LONG | RecordType.INT | RecordType.SHORT | RecordType.DOUBLE | RecordType.FLOAT:
            number = _NUMBERS[kind]
            if len(data) != number.size:
                article = "an" if kind is RecordType.INT else "a"
                raise CannotRead(
                    f"{_shown(data)} is not {article} {kind}: it has {len(data)} bytes and not {number.size}"
                )
            return number.unpack(data)[0]
        case RecordType.UUID:
            try:
                return str(uuid.UUID(data.decode("ascii")))
            except ValueError:
                raise CannotRead(f"{_shown(data)} is not the text of a UUID") from None
        case RecordType.HEX:
            return data.hex()
        case RecordType.BASE64:
            return base64.b64encode(data).decode()
        case _:
            assert_never(kind)


def _guess(data: bytes) -> Any:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    try:
        return read_json(text)
    except ValueError:
        return text


def serialize(text: str, kind: RecordType) -> bytes:
    """Serialize text that was typed. Raises ValueError with a message for users."""
    match kind:
        case RecordType.AUTO | RecordType.STRING:
            return text.encode()
        case RecordType.JSON:
            try:
                read_json(text)
            except ValueError as problem:
                raise ValueError(f"'{_short(text)}' is not JSON: {problem}") from None
            return text.encode()
        case RecordType.LONG | RecordType.INT | RecordType.SHORT:
            try:
                return _NUMBERS[kind].pack(int(text))
            except (ValueError, struct.error):
                raise ValueError(f"'{_short(text)}' is not a number of type {kind}") from None
        case RecordType.DOUBLE | RecordType.FLOAT:
            try:
                return _NUMBERS[kind].pack(float(text))
            except (ValueError, OverflowError):
                raise ValueError(f"'{_short(text)}' is not a number of type {kind}") from None
        case RecordType.UUID:
            try:
                return str(uuid.UUID(text.strip())).encode()
            except ValueError:
                raise ValueError(f"'{_short(text)}' is not a UUID") from None
        case RecordType.HEX:
            try:
                return bytes.fromhex(text)
            except ValueError:
                raise ValueError(f"'{_short(text)}' is not hexadecimal") from None
        case RecordType.BASE64:
            try:
                return base64.b64decode(text.strip(), validate=True)
            except binascii.Error:
                raise ValueError(f"'{_short(text)}' is not base64") from None
        case _:
            assert_never(kind)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


def _shown(data: bytes) -> str:
    return _short(ascii(data)[1:])
