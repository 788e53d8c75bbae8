"""What fastavro has read by the schema with named branches, completed to Avro's JSON encoding: only bytes, and numbers
that may be infinite, need a second look."""

import math
from collections.abc import Callable
from typing import Any

from kaspar.serialization.avro_schemas import AvroSchema, Node, branch_name

Convert = Callable[[Any], Any]
"""For one node of a schema. Dicts are changed in place: nobody else has them yet."""


class ToJson:
    """The converters of a schema's nodes; None is for a node in which everything is JSON already."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._records: dict[str, Convert] = {}

    def of(self, node: Node) -> Convert | None:
        if not self._has_inexact(node, set()):
            return None
        resolved = self._schema.resolved(node)
        match resolved:
            case list():
                return self._union(resolved)
            case "bytes" | {"type": "fixed"}:
                return _text_of_bytes
            case str():
                return _number
            case {"type": "array", "items": items}:
                return _each_item(self.of(items))
            case {"type": "map", "values": values}:
                return _each_value(self.of(values))
        return self._record(resolved["name"], resolved["fields"])

    def _has_inexact(self, node: Node, seen: set[str]) -> bool:
        resolved = self._schema.resolved(node)
        match resolved:
            case list():
                return any(self._has_inexact(branch, seen) for branch in resolved)
            case str():
                return resolved in ("bytes", "float", "double")
            case {"items": inner} | {"values": inner}:
                return self._has_inexact(inner, seen)
            case {"name": name, "fields": fields}:
                if name in seen:
                    return False
                seen.add(name)
                return any(self._has_inexact(field["type"], seen) for field in fields)
        return bool(resolved["type"] == "fixed")

    def _record(self, name: str, fields: list[dict[str, Any]]) -> Convert:
        if name in self._records:
            return self._records[name]
        converters: list[tuple[str, Convert]] = []

        def convert(value: dict[str, Any]) -> dict[str, Any]:
            for field, convert_field in converters:
                value[field] = convert_field(value[field])
            return value

        self._records[name] = convert
        found = [(field["name"], self.of(field["type"])) for field in fields]
        converters.extend((field, convert_field) for field, convert_field in found if convert_field is not None)
        return convert

    def _union(self, branches: list[Node]) -> Convert:
        found = [(branch_name(self._schema, branch), self.of(branch)) for branch in branches]
        converters = {name: convert for name, convert in found if convert is not None}

        def convert(value: dict[str, Any] | None) -> dict[str, Any] | None:
            if value is not None:
                ((name, inner),) = value.items()
                if name in converters:
                    value[name] = converters[name](inner)
            return value

        return convert


def _each_item(convert: Convert | None) -> Convert:
    assert convert is not None
    return lambda value: [convert(item) for item in value]


def _each_value(convert: Convert | None) -> Convert:
    assert convert is not None
    return lambda value: {key: convert(inner) for key, inner in value.items()}


def _text_of_bytes(value: bytes) -> str:
    return value.decode("latin-1")


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
