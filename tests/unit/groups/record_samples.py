"""Random records of internal topics, made from the tables of their fields, and the same as JSON in Kafka's form."""

import base64
import random
import re
import sys
import uuid
from typing import Any

from kaspar.base.ids import ZERO_UUID, uuid_to_text
from kaspar.protocol.schema import Field, Message, VersionRange

_INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXTS = ("", "a", "group-1", "größe", "話題", "🦊", "x" * 130)
_BYTES = (b"", b"\0", b"bytes", b"\xff" * 200)


def random_message(message_class: type[Message], version: int, randomness: random.Random) -> Any:
    """Random values in the fields of this version, and defaults in all others."""
    values: dict[str, Any] = {}
    for field in _fields(message_class, version):
        element = field.type.removeprefix("[]")
        if version in VersionRange.parse(field.nullable) and randomness.random() < 0.3:
            values[field.name] = None
        elif element != field.type:
            count = randomness.choice((0, 1, 3))
            values[field.name] = tuple(_random_value(message_class, element, version, randomness) for _ in range(count))
        else:
            values[field.name] = _random_value(message_class, element, version, randomness)
    return message_class(**values)


def as_kafka_json(message: Message, version: int) -> dict[str, Any]:
    """As Kafka's own classes print it: without tagged fields that have their default."""
    shown = {}
    for field in _fields(type(message), version):
        value = getattr(message, field.name)
        if field.tag < 0 or value != type(message).__dataclass_fields__[field.name].default:  # type: ignore[attr-defined]
            shown[_camel_case(field.name)] = _as_json(value, version)
    return shown


def _fields(message_class: type[Message], version: int) -> list[Field]:
    return [field for field in message_class.SCHEMA.fields if version in VersionRange.parse(field.versions)]


def _random_value(owner: type[Message], element: str, version: int, randomness: random.Random) -> Any:
    if element in _INTEGER_BITS:
        limit = 1 << (_INTEGER_BITS[element] - 1)
        return randomness.choice((0, 1, -1, limit - 1, -limit, randomness.randint(-limit, limit - 1)))
    match element:
        case "string":
            return randomness.choice(_TEXTS)
        case "bytes":
            return randomness.choice(_BYTES)
        case "uuid":
            return ZERO_UUID if randomness.random() < 0.3 else uuid.UUID(int=randomness.getrandbits(128) | 1)
    return random_message(vars(sys.modules[owner.__module__])[element], version, randomness)


def _as_json(value: Any, version: int) -> Any:
    match value:
        case tuple():
            return [_as_json(element, version) for element in value]
        case Message():
            return as_kafka_json(value, version)
        case uuid.UUID():
            return uuid_to_text(value)
        case bytes():
            return base64.b64encode(value).decode()
    return value


def _camel_case(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)
