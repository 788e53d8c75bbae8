"""Values in Avro's JSON encoding, checked and converted to what fastavro writes: a value of a union is a tuple with the
name of its branch."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kaspar.schemas.avro.types import Array, AvroType, Enumeration, Fixed, Map, Primitive, Record, Union
from kaspar.serialization.avro_schemas import FastavroSchema
from kaspar.serialization.errors import InvalidValue

Convert = Callable[[Any], Any]
"""The converter for one node of a schema. Raises InvalidValue."""

_BITS: Final = {"int": 32, "long": 64}
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_MAX_FLOAT: Final = 3.4028235677973366e38
"""A 32-bit float from here on is infinite."""
_MISSING: Final = object()


class FromJson:
    """The converters of a schema's nodes. `written` is the schema with which fastavro writes."""

    def __init__(self, written: FastavroSchema) -> None:
        self._written = written
        self._records: dict[Record, Convert] = {}

    def of(self, node: AvroType) -> Convert:
        match node:
            case Primitive():
                return _PRIMITIVES[node.name]
            case Array():
                return _array(self.of(node.items))
            case Map():
                return _map(self.of(node.values))
            case Union():
                return self._union(node.branches)
            case Enumeration():
                return _enum(node.name.full, frozenset(node.symbols))
            case Fixed():
                return _fixed(node.name.full, node.size)
            case Record():
                return self._records.get(node) or self._record(node)
        raise AssertionError(f"{node.kind} is no type of a parsed schema")

    def _record(self, node: Record) -> Convert:
        name = node.name.full
        converters: list[tuple[str, tuple[str, ...], Convert]] = []

        def convert(value: Any) -> dict[str, Any]:
            if type(value) is not dict:
                raise _expected(f"an object, a record {name}", value)
            converted = {}
            for field, aliases, convert_field in converters:
                given = value.get(field, _MISSING)
                if given is _MISSING:
                    given = next((value[alias] for alias in aliases if alias in value), _MISSING)
                    if given is _MISSING:
                        raise InvalidValue(f"The field {field} of the record {name} is missing.")
                try:
                    converted[field] = convert_field(given)
                except InvalidValue as problem:
                    raise _within(field, problem) from None
            return converted

        self._records[node] = convert  # before its fields, whose type may be this record
        converters.extend((field.name, tuple(field.aliases), self.of(field.type)) for field in node.fields)
        return convert

    def _union(self, branches: Sequence[AvroType]) -> Convert:
        converters = {branch.union_name: (self._written.branch_name(branch), self.of(branch)) for branch in branches}
        has_null = "null" in converters
        shown = ", ".join(name if name == "null" else f'{{"{name}": ...}}' for name in converters)

        def convert(value: Any) -> Any:
            if value is None and has_null:
                return None
            if type(value) is not dict or len(value) != 1:
                raise _expected(f"a value of a union, as one of {shown}", value)
            ((name, inner),) = value.items()
            branch = converters.get(name)
            if branch is None:
                raise InvalidValue(f"Unknown union branch {name}: it is one of {shown}.")
            written_name, convert_branch = branch
            try:
                converted = convert_branch(inner)
            except InvalidValue as problem:
                raise _within(name, problem) from None
            return None if name == "null" else (written_name, converted)

        return convert


def _array(convert_item: Convert) -> Convert:
    def convert(value: Any) -> list[Any]:
        if type(value) is not list:
            raise _expected("an array", value)
        try:
            return [convert_item(item) for item in value]
        except InvalidValue as problem:
            raise _within(_first_invalid(convert_item, value), problem) from None

    return convert


def _map(convert_value: Convert) -> Convert:
    def convert(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _expected("an object, a map", value)
        converted = {}
        for key, inner in value.items():
            try:
                converted[key] = convert_value(inner)
            except InvalidValue as problem:
                raise _within(key, problem) from None
        return converted

    return convert


def _first_invalid(convert: Convert, items: list[Any]) -> int:
    """The index of the invalid item. It is computed only after a failure, so that it costs nothing otherwise."""
    for index, item in enumerate(items):
        try:
            convert(item)
        except InvalidValue:
            return index
    raise AssertionError("one of them is invalid")


def _enum(name: str, symbols: frozenset[str]) -> Convert:
    def convert(value: Any) -> str:
        if type(value) is not str:
            raise _expected(f"a symbol of the enum {name}", value)
        if value not in symbols:
            raise InvalidValue(f"Unknown symbol in enum {name}: {value}.")
        return value

    return convert


def _fixed(name: str, size: int) -> Convert:
    def convert(value: Any) -> bytes:
        converted = _bytes(value)
        if len(converted) != size:
            raise InvalidValue(f"The fixed {name} has {size} bytes, not {len(converted)}.")
        return converted

    return convert


def _whole(kind: str) -> Convert:
    low, high = -(1 << _BITS[kind] - 1), (1 << _BITS[kind] - 1) - 1

    def convert(value: Any) -> int:
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int:
            raise _expected(f"{'an int' if kind == 'int' else 'a long'}", value)
        if not low <= value <= high:
            raise InvalidValue(f"{value} is out of range of {kind} ({low} to {high}).")
        return value

    return convert


def _real(kind: str) -> Convert:
    def convert(value: Any) -> float:
        if type(value) is str and value in _NOT_FINITE:
            return _NOT_FINITE[value]
        if type(value) is not float and type(value) is not int:
            raise _expected(f"a {kind}", value)
        try:
            number = float(value)
        except OverflowError:
            number = math.copysign(math.inf, value)
        if kind == "float" and abs(number) >= _MAX_FLOAT:
            return math.copysign(math.inf, number)
        return number

    return convert


def _bytes(value: Any) -> bytes:
    if type(value) is not str:
        raise _expected("bytes, as text of the characters U+0000 to U+00FF", value)
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError as problem:
        raise InvalidValue(f"Bytes have no character U+{ord(value[problem.start]):04X}: U+00FF is the last.") from None


def _exactly(kind: type, expected: str) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is not kind:
            raise _expected(expected, value)
        return value

    return convert


_PRIMITIVES: Final[Mapping[str, Convert]] = {
    "null": _exactly(type(None), "null"),
    "boolean": _exactly(bool, "a boolean"),
    "int": _whole("int"),
    "long": _whole("long"),
    "float": _real("float"),
    "double": _real("double"),
    "bytes": _bytes,
    "string": _exactly(str, "a string"),
}


def _expected(what: str, value: Any) -> InvalidValue:
    return InvalidValue(f"Expected {what}, not {_kind(value)}.")


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "a string"
        case int() | float():
            return f"the number {value}"
        case list():
            return "an array"
        case dict():
            return "an object"
    return f"a {type(value).__name__}"


def _within(step: str | int, problem: InvalidValue) -> InvalidValue:
    return InvalidValue(problem.reason, (step, *problem.path))
