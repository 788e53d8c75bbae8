"""The defaults of fields in Avro's binary encoding, so that they are read as if the writer had written them."""

import struct
from typing import Any

from kaspar.base.varints import varlong
from kaspar.schemas.avro.types import Array, AvroType, Enumeration, Field, Fixed, Map, Record, Union
from kaspar.spark.kafka_settings import InvalidOption

_RANGES = {"int": 1 << 31, "long": 1 << 63}
_STRUCTS = {"float": "<f", "double": "<d"}


class _Unfit(Exception):
    """The JSON value is not of the type."""


def encoded_default(field: Field) -> bytes:
    """The default of the field. Raises InvalidOption if it is not of the field's type, which no registry accepts."""
    try:
        return _encoded(field.type, field.default)
    except _Unfit:
        raise InvalidOption(f"the default of the Avro field {field.name} is not of its type.") from None


def _encoded(node: AvroType, value: Any) -> bytes:
    match node:
        case Union():
            return _branch(node, value)
        case Record() if isinstance(value, dict):
            return b"".join(_encoded(each.type, _of_field(each, value)) for each in node.fields)
        case Array() if isinstance(value, list):
            return _block(len(value), b"".join(_encoded(node.items, item) for item in value))
        case Map() if isinstance(value, dict):
            pairs = (_sized(key.encode()) + _encoded(node.values, each) for key, each in value.items())
            return _block(len(value), b"".join(pairs))
        case Enumeration() if value in node.symbols:
            return varlong(node.symbols.index(value))
        case Fixed() if isinstance(value, str) and len(value) == node.size:
            return _latin(value)
    return _primitive(node.kind, value)


def _primitive(kind: str, value: Any) -> bytes:
    match kind:
        case "null" if value is None:
            return b""
        case "boolean" if isinstance(value, bool):
            return bytes((value,))
        case "int" | "long" if type(value) is int and -_RANGES[kind] <= value < _RANGES[kind]:
            return varlong(value)
        case "float" | "double" if type(value) in (int, float):
            return struct.pack(_STRUCTS[kind], value)
        case "string" if isinstance(value, str):
            return _sized(value.encode())
        case "bytes" if isinstance(value, str):
            return _sized(_latin(value))
    raise _Unfit


def _branch(union: Union, value: Any) -> bytes:
    """The value as the first branch that it fits. This is usually the first one, as older versions of Avro require."""
    for number, branch in enumerate(union.branches):
        try:
            return varlong(number) + _encoded(branch, value)
        except _Unfit:
            continue
    raise _Unfit


def _of_field(field: Field, value: dict[str, Any]) -> Any:
    if field.name in value:
        return value[field.name]
    if not field.has_default:
        raise _Unfit
    return field.default


def _block(count: int, items: bytes) -> bytes:
    return (varlong(count) + items if count else b"") + b"\0"


def _sized(data: bytes) -> bytes:
    return varlong(len(data)) + data


def _latin(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise _Unfit from None
