"""JSON values: dicts, lists, text, numbers, booleans.

They are written in UTF-8 without spaces, with keys in the order of the dict. Numbers have the shortest form that is
read back as the same number (1e16, not 1e+16); NaN and the infinities, which JSON does not have, are written as null.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from kaspar.streams.serdes.errors import reason_of, unreadable, unwritable, wrong_type
from kaspar.streams.serdes.serde import Serde

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class _Json:
    __slots__ = ()

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            return _encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            if isinstance(value, (dict, list, tuple, str)):
                raise unwritable("json", topic, value, reason_of(error)) from error
            raise wrong_type("json", topic, value, "dicts, lists, text and numbers") from error

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        try:
            return _decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise unreadable("json", topic, data, reason_of(error)) from error

    def __reduce__(self) -> str:
        return "JSON"


JSON = _Json()


def json() -> Serde[Any]:
    """Any JSON value. To read instances of a class, use `structured`."""
    return JSON


def json_schema(
    schema: Mapping[str, Any] | str, *, registry: str | Mapping[str, str], is_key: bool = False
) -> Serde[Any]:
    """JSON values of a JSON Schema, which is given as a dict or as text. They are prefixed with its id in a registry.

    `registry` is a URL, or a dict of Confluent's properties. `is_key` is for serdes of keys: the subjects of keys and
    values differ.
    """
    from kaspar.streams.serdes.registered_json import registered_json

    return registered_json(schema if isinstance(schema, str) else _encode(schema).decode(), registry, is_key)
