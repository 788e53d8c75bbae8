"""Completes what fastavro has read, with the schema of named branches, to Avro's JSON encoding: only bytes, and numbers
that may be infinite, have to be converted."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from kaspar.schemas.avro.types import Array, AvroType, Fixed, Map, Primitive, Record, Union
from kaspar.serialization.avro_schemas import types_with

Convert = Callable[[Any], Any]
"""The converter for one node of a schema. It may change dicts in place, because nothing else uses them yet."""

_INEXACT: Final = frozenset(("bytes", "fixed", "float", "double"))


class ToJson:
    """The converters of a schema's nodes; None for a node whose values are already JSON."""

    def __init__(self, root: AvroType) -> None:
        self._inexact = types_with(root, _INEXACT)
        self._records: dict[Record, Convert] = {}

    def of(self, node: AvroType) -> Convert | None:
        if node not in self._inexact:
            return None
        match node:
            case Primitive():
                return _text_of_bytes if node.name == "bytes" else _number
            case Fixed():
                return _text_of_bytes
            case Array():
                return _each_item(self.of(node.items))
            case Map():
                return _each_value(self.of(node.values))
            case Union():
                return self._union(node.branches)
            case Record():
                return self._records.get(node) or self._record(node)
        raise AssertionError(f"{node.kind} has nothing to convert")

    def _record(self, node: Record) -> Convert:
        converters: list[tuple[str, Convert]] = []

        def convert(value: dict[str, Any]) -> dict[str, Any]:
            for field, convert_field in converters:
                value[field] = convert_field(value[field])
            return value

        self._records[node] = convert  # before its fields, whose type may be this record
        found = [(field.name, self.of(field.type)) for field in node.fields]
        converters.extend((field, convert_field) for field, convert_field in found if convert_field is not None)
        return convert

    def _union(self, branches: Sequence[AvroType]) -> Convert:
        found = [(branch.union_name, self.of(branch)) for branch in branches]
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
