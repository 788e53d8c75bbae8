"""Plans how records of one Avro schema are read as another, by Avro's rules of schema resolution: fields by name or
alias, defaults for those that the writer does not have, promoted numbers, symbols of enums, branches of unions.

The plan is a tree of steps in the order of the writer's bytes, and a tree of columns in the order of the reader's
fields. avro_columns.py runs it. What the reader cannot represent, such as a string for its int, is a Mismatch: it makes
the whole schema unreadable or, in a branch of a union, the records that use this branch.

Two rules go beyond Avro's: a timestamp in milliseconds is converted if the reader has microseconds, and decimals of
another scale are rejected instead of shifted by powers of ten.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kaspar.schemas.avro.logical import logical_type
from kaspar.schemas.avro.types import Array, AvroType, Enumeration, Field, Fixed, Map, Primitive, Record, Union
from kaspar.serialization.avro_schemas import has_empty_items
from kaspar.serialization.core import avro_steps as steps
from kaspar.spark.formats.avro_defaults import encoded_default
from kaspar.spark.formats.avro_types import TIMES, decimal_digits, values_of


class Mismatch(Exception):
    """Data of the writer's schema cannot be read as the reader's. The text is the end of a sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPlan:
    storage: int
    inner: tuple["ColumnPlan", ...] = ()
    symbols: tuple[str, ...] = ()
    """The symbols of an enum, whose column contains their numbers."""


@dataclass(slots=True, eq=False)
class StepPlan:
    """A step of the plan. It can contain itself only if it skips a recursive record."""

    op: int
    column: ColumnPlan | None = None
    number: int = 0
    inner: list["StepPlan"] = field(default_factory=list)
    table: tuple[int, ...] = ()
    default: bytes = b""


@dataclass(frozen=True, slots=True)
class Program:
    column: ColumnPlan
    step: StepPlan


def plan(writer: AvroType, reader: AvroType, *, has_bare_bytes: bool = False) -> Program:
    """Plan how to read data of the writer's schema. The reader's type must be one that a column can hold
    (avro_types.py). `has_bare_bytes`: a record whose whole schema is `bytes` is not encoded, as in Confluent's
    KafkaAvroSerializer. Raises Mismatch."""
    if has_empty_items(writer):
        raise Mismatch("it may have arrays of items without bytes, of which a few bytes can be any number")
    column = _column(reader)
    if has_bare_bytes and writer.kind == reader.kind == "bytes" and column.storage == steps.OCTETS:
        return Program(column, StepPlan(steps.REST, column))
    return Program(column, _step(writer, reader, column))


# --- Columns ----------------------------------------------------------------------------------------------------------

_STORAGE = {
    "boolean": steps.BITS,
    "int": steps.INTS,
    "long": steps.LONGS,
    "float": steps.FLOATS,
    "double": steps.DOUBLES,
    "bytes": steps.OCTETS,
    "string": steps.OCTETS,
}
_OPS = {
    "boolean": steps.BOOLEAN,
    "int": steps.INT,
    "long": steps.LONG,
    "float": steps.FLOAT,
    "double": steps.DOUBLE,
    "bytes": steps.BYTES,
    "string": steps.STRING,
}
_PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def _column(reader: AvroType) -> ColumnPlan:
    match reader:
        case Union():
            # The storage numbers are ordered so that long is above int, and double above float.
            return max(map(_column, values_of(reader)), key=lambda column: column.storage)
        case Record():
            return ColumnPlan(steps.STRUCTS, tuple(_column(each.type) for each in reader.fields))
        case Array():
            return ColumnPlan(steps.LISTS, (_column(reader.items),))
        case Map():
            return ColumnPlan(steps.LISTS, (ColumnPlan(steps.OCTETS), _column(reader.values)))
        case Enumeration():
            return ColumnPlan(steps.INTS, symbols=tuple(reader.symbols))
        case _ if decimal_digits(reader) is not None:
            return ColumnPlan(steps.DECIMALS)
        case Fixed():
            return ColumnPlan(steps.OCTETS)
    return ColumnPlan(_STORAGE[reader.kind])


# --- Steps ------------------------------------------------------------------------------------------------------------


def _step(writer: AvroType, reader: AvroType, column: ColumnPlan) -> StepPlan:
    if isinstance(writer, Union):
        return _written_union(writer, reader, column)
    if isinstance(reader, Union):
        return _read_union(writer, reader, column)
    match writer, reader:
        case Record(), Record() if _is_named(writer, reader):
            return _record(writer, reader, column)
        case Array(), Array():
            return StepPlan(steps.ARRAY, column, inner=[_step(writer.items, reader.items, column.inner[0])])
        case Map(), Map():
            return StepPlan(steps.MAP, column, inner=[_step(writer.values, reader.values, column.inner[1])])
        case Enumeration(), Enumeration() if _is_named(writer, reader):
            return StepPlan(steps.ENUM, column, table=tuple(_symbols(writer, reader)))
        case Fixed(), Fixed() if _is_named(writer, reader) and writer.size == reader.size:
            if (digits := decimal_digits(reader)) is None:
                return StepPlan(steps.FIXED, column, writer.size)
            return StepPlan(steps.DECIMAL_FIXED, column, writer.size, table=_bound(writer, reader, digits))
        case Primitive(), Primitive():
            return _primitive(writer, reader, column)
    raise _mismatch(writer, reader)


def _written_union(writer: Union, reader: AvroType, column: ColumnPlan) -> StepPlan:
    """The step for a writer's union. A branch that the reader cannot read makes only the records that use it
    unreadable, unless this holds for all branches."""
    branches: list[StepPlan] = []
    mismatches: list[Mismatch] = []
    for branch in writer.branches:
        try:
            branches.append(_step(branch, reader, column))
        except Mismatch as mismatch:
            mismatches.append(mismatch)
            branches.append(StepPlan(steps.REFUSED))
    if len(mismatches) == len(branches):
        raise mismatches[0] if mismatches else Mismatch("a union has no branches")
    return StepPlan(steps.UNION, inner=branches)


def _read_union(writer: AvroType, reader: Union, column: ColumnPlan) -> StepPlan:
    """The step for a reader's union: reads the branch of the same type, or else the first that can be read."""
    if writer.kind == "null":
        if any(branch.kind == "null" for branch in reader.branches):
            return StepPlan(steps.NULL, column)
        raise _mismatch(writer, reader)
    mismatches: list[Mismatch] = []
    for branch in sorted(values_of(reader), key=lambda branch: branch.union_name != writer.union_name):
        try:
            return _step(writer, branch, column)
        except Mismatch as mismatch:
            mismatches.append(mismatch)
    raise mismatches[0]


def _record(writer: Record, reader: Record, column: ColumnPlan) -> StepPlan:
    columns = dict(zip((each.name for each in reader.fields), column.inner, strict=True))
    left = {each.name: each for each in reader.fields}
    found: list[StepPlan] = []
    written = {each.name for each in writer.fields}
    for each in writer.fields:
        target = left.get(each.name) or _by_alias(each.name, left.values(), written)
        if target is None:
            found.append(_skip(each.type, {}))
            continue
        del left[target.name]
        try:
            found.append(_step(each.type, target.type, columns[target.name]))
        except Mismatch as mismatch:
            raise Mismatch(f"its field {each.name}: {mismatch}") from None
    for missing in left.values():
        if not missing.has_default:
            raise Mismatch(f"it has no field {missing.name}, for which the reader's schema has no default")
        inner = _step(missing.type, missing.type, columns[missing.name])
        found.append(StepPlan(steps.DEFAULT, inner=[inner], default=encoded_default(missing)))
    return StepPlan(steps.RECORD, column, inner=found)


def _by_alias(name: str, fields: Iterable[Field], written: set[str]) -> Field | None:
    """The reader's field that has the writer's name as an alias, unless the writer also has a field of its own name."""
    return next((each for each in fields if name in each.aliases and each.name not in written), None)


def _primitive(writer: Primitive, reader: Primitive, column: ColumnPlan) -> StepPlan:
    if writer.name != reader.name and reader.name not in _PROMOTIONS.get(writer.name, ()):
        raise _mismatch(writer, reader)
    if (digits := decimal_digits(reader)) is not None:
        return StepPlan(steps.DECIMAL_BYTES, column, table=_bound(writer, reader, digits))
    if column.storage == steps.OCTETS:
        return StepPlan(_OPS[reader.name], column)
    times = [logical_type(each) for each in (writer, reader)]
    meant = times[0] if times[0] in TIMES else times[1]
    if times[1] in TIMES and meant is not None and meant.endswith("-millis"):
        return StepPlan(steps.MILLIS, column)
    return StepPlan(_OPS[writer.name], column)


def _bound(writer: AvroType, reader: AvroType, digits: tuple[int, int]) -> tuple[int, int]:
    written = decimal_digits(writer)
    if written is not None and written[1] != digits[1]:
        raise Mismatch(f"a decimal of scale {written[1]} is not one of scale {digits[1]}")
    bound = 10 ** digits[0]
    return _signed(bound >> 64), _signed(bound & (1 << 64) - 1)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _symbols(writer: Enumeration, reader: Enumeration) -> Iterable[int]:
    numbers = {symbol: number for number, symbol in enumerate(reader.symbols)}
    otherwise = -1 if reader.default is None else numbers.get(reader.default, -1)
    return (numbers.get(symbol, otherwise) for symbol in writer.symbols)


def _is_named(writer: Record | Enumeration | Fixed, reader: Record | Enumeration | Fixed) -> bool:
    """Whether the names match: without their namespace, as in Avro's specification, or by an alias of the reader."""
    names = {reader.name.simple, *(alias.simple for alias in reader.aliases)}
    return writer.name.simple in names


def _mismatch(writer: AvroType, reader: AvroType) -> Mismatch:
    return Mismatch(f"{_shown(writer)} cannot be read as {_shown(reader)}")


def _shown(node: AvroType) -> str:
    if isinstance(node, Union):
        return f"a union of {', '.join(branch.union_name for branch in node.branches)}"
    return node.kind if isinstance(node, Primitive | Array | Map) else f"the {node.kind} {node.union_name}"


def _skip(writer: AvroType, records: dict[AvroType, StepPlan]) -> StepPlan:
    """The step that skips a value. `records` has the steps of the records seen so far, perhaps incomplete."""
    match writer:
        case Union():
            return StepPlan(steps.UNION, inner=[_skip(branch, records) for branch in writer.branches])
        case Record():
            if writer not in records:
                records[writer] = StepPlan(steps.RECORD)
                records[writer].inner.extend(_skip(each.type, records) for each in writer.fields)
            return records[writer]
        case Array():
            return StepPlan(steps.ARRAY, inner=[_skip(writer.items, records)])
        case Map():
            return StepPlan(steps.MAP, inner=[_skip(writer.values, records)])
        case Enumeration():
            return StepPlan(steps.ENUM, table=(0,) * len(writer.symbols))
        case Fixed():
            return StepPlan(steps.FIXED, number=writer.size)
    return StepPlan(steps.NULL if writer.kind == "null" else _OPS[writer.kind])
