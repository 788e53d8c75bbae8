"""The Spark type of a JSON Schema, for records whose schemas are in the registry.

A JSON Schema is a set of conditions on values rather than a type, so only a schema that leaves no choice has a type:
objects with properties, arrays with one kind of items, numbers, text, null beside another type, and references within
the document. For all others the option readerSchema defines the columns.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from kaspar.spark.kafka_settings import InvalidOption

_SCALARS: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "integer": LongType(),
    "number": DoubleType(),
    "string": StringType(),
}
_NULL = {"type": "null"}


def spark_type_of(text: str) -> DataType:
    """The type of a schema: a struct, map or array. Raises InvalidOption."""
    document = json.loads(text)
    found = _of(document, document, ())
    if not isinstance(found, StructType | MapType | ArrayType):
        raise _undecided("the whole value", "it is neither an object nor an array")
    return found


def _of(schema: Any, document: Any, path: tuple[str, ...]) -> DataType:
    where = ".".join(path) or "the whole value"
    if not isinstance(schema, dict):
        raise _undecided(where, "its schema allows everything")
    if isinstance(schema.get("$ref"), str):
        return _of(_referenced(schema["$ref"], document, where), document, _deeper(path, where))
    for keyword in ("oneOf", "anyOf"):
        if isinstance(schema.get(keyword), list):
            return _of(_only([each for each in schema[keyword] if each != _NULL], where), document, path)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = _only([each for each in kind if each != "null"], where)
    if kind is None and isinstance(schema.get("enum"), list) and all(isinstance(each, str) for each in schema["enum"]):
        kind = "string"
    if isinstance(kind, str) and kind in _SCALARS:
        return _SCALARS[kind]
    if kind == "array" and "items" in schema:
        return ArrayType(_of(schema["items"], document, _deeper(path, "[]")))
    if kind == "object" or "properties" in schema:
        return _object(schema, document, path, where)
    raise _undecided(where, "its schema has no type that a column could have")


def _object(schema: Mapping[str, Any], document: Any, path: tuple[str, ...], where: str) -> DataType:
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        fields = [(name, _of(each, document, _deeper(path, name))) for name, each in properties.items()]
        return StructType([StructField(name, data_type) for name, data_type in fields])
    if isinstance(schema.get("additionalProperties"), dict):
        return MapType(StringType(), _of(schema["additionalProperties"], document, _deeper(path, "*")))
    raise _undecided(where, "its schema is an object without properties")


def _deeper(path: tuple[str, ...], step: str) -> tuple[str, ...]:
    if len(path) > 50:
        raise _undecided(".".join(path[:5]), "its schema is recursive")
    return (*path, step)


def _referenced(reference: str, document: Any, where: str) -> Any:
    if not reference.startswith("#"):
        raise _undecided(where, f"its schema is in another document, {reference}")
    found = document
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def _only(choices: Sequence[Any], where: str) -> Any:
    if len(choices) != 1:
        raise _undecided(where, f"its schema allows {len(choices)} types")
    return choices[0]


def _undecided(where: str, why: str) -> InvalidOption:
    return InvalidOption(f"the JSON Schema leaves the type of {where} open, since {why}: name the columns instead.")
