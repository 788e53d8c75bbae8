"""Kafka's deserializers, and the texts that Java prints for their results."""

import codecs
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.tools.java_numbers import format_double, format_float

Deserializer = Callable[[bytes], bytes]
"""From the bytes in a record to the bytes that are printed. Raises DeserializationFailed."""

_PACKAGE: Final = "org.apache.kafka.common.serialization."
_SERIALIZATION_EXCEPTION: Final = "org.apache.kafka.common.errors.SerializationException"


class DeserializationFailed(KasparError):
    pass


def deserializer(class_name: str, encoding: str = "UTF-8") -> Deserializer | None:
    """The deserializer of this class; None if it is not one of Kafka's, or if the string encoding is unknown."""
    name = class_name.strip()
    if not name.startswith(_PACKAGE):
        return None
    name = name.removeprefix(_PACKAGE)
    if name == "StringDeserializer":
        try:
            codecs.lookup(encoding)
        except LookupError:
            return None
        return lambda data: data.decode(encoding, "replace").encode()
    return _DESERIALIZERS.get(name)


def _number(name: str, layout: str, text: Callable[[float], str] = str) -> Deserializer:
    form = struct.Struct(layout)

    def deserialize(data: bytes) -> bytes:
        if len(data) != form.size:
            sentence = f"Size of data received by {name} is not {form.size}"
            raise DeserializationFailed(f"{_SERIALIZATION_EXCEPTION}: {sentence}")
        return text(form.unpack(data)[0]).encode()

    return deserialize


def _boolean(data: bytes) -> bytes:
    if len(data) != 1:
        sentence = "Size of data received by BooleanDeserializer is not 1"
        raise DeserializationFailed(f"{_SERIALIZATION_EXCEPTION}: {sentence}")
    if data not in (b"\0", b"\1"):
        raise DeserializationFailed(
            f"{_SERIALIZATION_EXCEPTION}: Unexpected byte received by BooleanDeserializer: {data[0]}"
        )
    return b"true" if data == b"\1" else b"false"


def _uuid(data: bytes) -> bytes:
    try:
        return str(uuid.UUID(data.decode())).encode()
    except ValueError:
        raise DeserializationFailed(f"{_SERIALIZATION_EXCEPTION}: Error parsing data into UUID") from None


def _escaped(data: bytes) -> bytes:
    """The format of Kafka's Bytes."""
    return b"".join(_ESCAPED[each] for each in data)


def _void(data: bytes) -> bytes:
    del data
    raise DeserializationFailed("java.lang.IllegalArgumentException: Data should be null for a VoidDeserializer.")


_ESCAPED: Final[Mapping[int, bytes]] = {
    each: bytes((each,)) if 0x20 <= each < 0x7F and each != 0x5C else f"\\x{each:02X}".encode() for each in range(256)
}

_DESERIALIZERS: Final[Mapping[str, Deserializer]] = {
    "ByteArrayDeserializer": lambda data: data,
    "BooleanDeserializer": _boolean,
    "BytesDeserializer": _escaped,
    "DoubleDeserializer": _number("DoubleDeserializer", ">d", format_double),
    "FloatDeserializer": _number("FloatDeserializer", ">f", format_float),
    "IntegerDeserializer": _number("IntegerDeserializer", ">i"),
    "LongDeserializer": _number("LongDeserializer", ">q"),
    "ShortDeserializer": _number("ShortDeserializer", ">h"),
    "UUIDDeserializer": _uuid,
    "VoidDeserializer": _void,
}
"""Java prints a byte array as the address of an object; here its bytes are printed."""
