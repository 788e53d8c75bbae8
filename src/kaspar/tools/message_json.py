"""Messages as JSON, in the format of Kafka's generated converters: the names of Kafka's definitions, the fields of one
version, tagged fields only if they differ from their default, bytes in base 64.
"""

import base64
import dataclasses
import functools
import json
import uuid
from typing import Any

from kaspar.protocol.schema import NO_TAG, Message, VersionRange
from kaspar.tools.java_numbers import format_double

JsonObject = dict[str, Any]


def message_json(message: Message, version: int) -> JsonObject:
    kind: Any = type(message)
    return {
        name: _value(value, version)
        for attribute, name, tagged, default in _fields(kind, version)
        if (value := getattr(message, attribute)) != default or not tagged
    }


def json_line(value: object) -> str:
    """JSON as Kafka's commands print it: compact, without unnecessary escapes, and with Java's number format."""
    match value:
        case dict():
            return "{" + ",".join(f"{json_line(name)}:{json_line(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(json_line, value)) + "]"
        case float():
            return format_double(value)
    return json.dumps(value, ensure_ascii=False)


@functools.lru_cache(maxsize=128)
def _fields(kind: Any, version: int) -> tuple[tuple[str, str, bool, object], ...]:
    """For each field of the version: the attribute, Kafka's name, whether it is tagged, and its default."""
    defaults = {each.name: each.default for each in dataclasses.fields(kind)}
    return tuple(
        (each.name, _camel_case(each.name), each.tag != NO_TAG, defaults[each.name])
        for each in kind.SCHEMA.fields
        if version in VersionRange.parse(each.versions)
    )


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _value(value: object, version: int) -> object:
    match value:
        case Message():
            return message_json(value, version)
        case tuple():
            return [_value(each, version) for each in value]
        case bytes():
            return base64.b64encode(value).decode()
        case uuid.UUID():
            return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return value
