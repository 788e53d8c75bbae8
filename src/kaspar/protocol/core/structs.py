"""Reads and writes any message of kaspar/protocol/messages at any of its versions. Part of the compiled core.

For each class and version a plan is created once, from the class's SCHEMA: which fields are on the wire, in which order
and encoding. Reading and writing follow the plan. Reading raises MalformedBytes and nothing else, whatever the bytes.
"""

import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import Any, TypeVar

import cython

from kaspar.base.errors import MalformedBytes
from kaspar.protocol.core import wire
from kaspar.protocol.schema import Field, Message, VersionRange

AnyMessage = TypeVar("AnyMessage", bound=Message)

INT32 = cython.declare(cython.int, 0)
STRING = cython.declare(cython.int, 1)
STRUCT = cython.declare(cython.int, 2)
INT16 = cython.declare(cython.int, 3)
INT64 = cython.declare(cython.int, 4)
BOOL = cython.declare(cython.int, 5)
INT8 = cython.declare(cython.int, 6)
UUID = cython.declare(cython.int, 7)
BYTES = cython.declare(cython.int, 8)
UINT16 = cython.declare(cython.int, 9)
UINT32 = cython.declare(cython.int, 10)
FLOAT64 = cython.declare(cython.int, 11)
RECORDS = cython.declare(cython.int, 12)

# For each of Kafka's types: its number here and its smallest size in bytes (for strings and bytes: in compact form).
_KINDS = {
    "int32": (INT32, 4),
    "string": (STRING, 1),
    "int16": (INT16, 2),
    "int64": (INT64, 8),
    "bool": (BOOL, 1),
    "int8": (INT8, 1),
    "uuid": (UUID, 16),
    "bytes": (BYTES, 1),
    "records": (RECORDS, 1),
    "uint16": (UINT16, 2),
    "uint32": (UINT32, 4),
    "float64": (FLOAT64, 8),
}
RELEASE_GIL_EVERY = cython.declare(cython.int, wire.RELEASE_GIL_EVERY)

_pack_int8 = struct.Struct(">b").pack
_pack_int16 = struct.Struct(">h").pack
_pack_uint16 = struct.Struct(">H").pack
_pack_int32 = struct.Struct(">i").pack
_pack_uint32 = struct.Struct(">I").pack
_pack_int64 = struct.Struct(">q").pack
_pack_float64 = struct.Struct(">d").pack


@cython.cclass
class FieldPlan:
    """How one field is read and written at one version."""

    name = cython.declare(str)
    kind = cython.declare(cython.int)
    is_array = cython.declare(cython.bint)
    nullable = cython.declare(cython.bint)
    tag = cython.declare(cython.longlong)
    default: Any
    smallest = cython.declare(cython.Py_ssize_t)  # bytes of one element
    struct_plan = cython.declare("StructPlan")
    store: Any  # sets the field of a frozen message that is being read

    def __init__(self, message_class: type[Message], field: Field, version: int) -> None:
        element = field.type.removeprefix("[]")
        self.name = field.name
        self.is_array = element != field.type
        self.nullable = version in VersionRange.parse(field.nullable)
        self.tag = field.tag
        self.default = _default_of(message_class, field.name)
        self.store = message_class.__dict__[field.name].__set__
        self.struct_plan = None
        if version not in VersionRange.parse(field.versions):
            return
        if element in _KINDS:
            self.kind, self.smallest = _KINDS[element]
        else:
            self.kind = STRUCT
            self.struct_plan = plan_of(vars(sys.modules[message_class.__module__])[element], version)
            self.smallest = max(1, self.struct_plan.smallest)


@cython.cclass
class StructPlan:
    """How a struct is read and written at one version."""

    message_class: Any
    flexible = cython.declare(cython.bint)
    fields = cython.declare(list)
    tagged = cython.declare(dict)  # by tag, in order
    absent = cython.declare(list)  # the fields that this version lacks
    smallest = cython.declare(cython.Py_ssize_t)

    def __init__(self, message_class: type[Message], version: int) -> None:
        schema = message_class.SCHEMA
        if version not in VersionRange.parse(schema.versions):
            raise ValueError(f"{message_class.__name__} has no version {version}: it has {schema.versions}")
        self.message_class = message_class
        self.flexible = version in VersionRange.parse(schema.flexible)
        self.fields = []
        self.absent = []
        self.smallest = 1 if self.flexible else 0
        tagged = []
        for field in schema.fields:
            plan = FieldPlan(message_class, field, version)
            if version not in VersionRange.parse(field.versions):
                self.absent.append(plan)
            elif field.tag >= 0:
                tagged.append((field.tag, plan))
            else:
                self.fields.append(plan)
                self.smallest += 1 if plan.is_array or plan.nullable else plan.smallest
        self.tagged = dict(sorted(tagged, key=lambda entry: entry[0]))


def _default_of(message_class: type[Message], name: str) -> object:
    default = vars(message_class)["__dataclass_fields__"][name].default
    return None if default is MISSING else default


_plans: dict[tuple[type[Message], int], StructPlan] = {}


def plan_of(message_class: type[Message], version: int) -> StructPlan:
    plan = _plans.get((message_class, version))
    if plan is None:
        plan = _plans[message_class, version] = StructPlan(message_class, version)
    return plan


def read(
    message_class: type[AnyMessage],
    version: int,
    buffer: wire.Buffer,
    position: int = 0,
    *,
    max_elements: int = wire.MAX_ELEMENTS,
    records_in_place: bool = False,
) -> tuple[AnyMessage, int]:
    """Read the message at that position of the buffer. Returns it and the position after it. Record batches in it are
    bytes, or views of the buffer if they are read in place."""
    reader = wire.Reader(buffer, position, max_elements, records_in_place)
    message = _read_struct(reader, plan_of(message_class, version))
    return message, reader.position


@cython.cfunc
def _read_struct(reader: Any, plan: StructPlan) -> Any:
    message: Any = object.__new__(plan.message_class)
    field: FieldPlan
    for field in plan.fields:
        field.store(message, _read_field(reader, field, plan.flexible))
    for field in plan.absent:
        field.store(message, field.default)
    if plan.flexible:
        _read_tagged_fields(reader, plan, message)
    return message


@cython.cfunc
def _read_tagged_fields(reader: Any, plan: StructPlan, message: Any) -> object:
    field: FieldPlan
    for field in plan.tagged.values():
        field.store(message, field.default)
    for tag, start, end in reader.tagged_fields():
        if tag not in plan.tagged:  # sent by a newer client: Kafka skips it too
            continue
        field = plan.tagged[tag]
        part = reader.part(start, end)
        field.store(message, _read_field(part, field, True))
        part.expect_end()
        reader.elements_left = part.elements_left
    return None


@cython.cfunc
def _read_field(reader: Any, field: FieldPlan, flexible: cython.bint) -> Any:
    if not field.is_array:
        return _read_value(reader, field, flexible, field.nullable)
    count: cython.Py_ssize_t = reader.array_length(flexible, field.smallest)
    if count < 0:
        return _null(field)
    elements = []
    index: cython.Py_ssize_t
    for index in range(count):
        elements.append(_read_value(reader, field, flexible, False))
        if index % RELEASE_GIL_EVERY == RELEASE_GIL_EVERY - 1:
            wire.release_gil()
    return tuple(elements)


@cython.cfunc
def _null(field: FieldPlan) -> object:
    if not field.nullable:
        raise MalformedBytes(f"{field.name} is null, but not nullable in this version")
    return None


@cython.cfunc
def _is_null_struct(marker: cython.int, field: FieldPlan) -> cython.bint:
    """Whether a nullable struct is null: -1 if it is, 1 before its fields if not; in a tagged field 0 if it is."""
    return marker < 0 or (marker == 0 and field.tag >= 0)


@cython.cfunc
def _read_value(reader: Any, field: FieldPlan, flexible: cython.bint, nullable: cython.bint) -> Any:
    kind: cython.int = field.kind
    if kind == INT32:
        return reader.int32()
    if kind == STRING:
        return reader.nullable_string(flexible) if nullable else reader.string(flexible)
    if kind == STRUCT:
        if nullable and _is_null_struct(reader.int8(), field):
            return None
        return _read_struct(reader, field.struct_plan)
    if kind == INT16:
        return reader.int16()
    if kind == INT64:
        return reader.int64()
    if kind == BOOL:
        return reader.boolean()
    if kind == INT8:
        return reader.int8()
    if kind == UUID:
        return reader.uuid()
    if kind == BYTES:
        value = reader.nullable_bytes(flexible)
        return _null(field) if value is None and not nullable else value
    if kind == RECORDS:
        records = reader.nullable_records(flexible)
        return _null(field) if records is None and not nullable else records
    if kind == UINT16:
        return reader.uint16()
    if kind == UINT32:
        return reader.uint32()
    return reader.float64()


def write(message: Message, version: int, encoded: Mapping[str, Sequence[bytes]] | None = None) -> bytes:
    """Write a message, or a struct inside one, without fields that the version lacks.

    `encoded` has the elements of some of the message's arrays as bytes that this function wrote before, at this
    version. They replace those of the message.
    """
    out = bytearray()
    write_into(out, message, version, encoded)
    return bytes(out)


def write_into(
    out: bytearray, message: Message, version: int, encoded: Mapping[str, Sequence[bytes]] | None = None
) -> None:
    """Append a message to `out`, like write()."""
    _write_struct(out, message, plan_of(type(message), version), encoded)


@cython.cfunc
def _write_struct(out: bytearray, message: Any, plan: StructPlan, encoded: Any) -> object:
    field: FieldPlan
    for field in plan.fields:
        if encoded is not None and field.name in encoded:
            wire.write_array_length(out, len(encoded[field.name]), plan.flexible)
            out += b"".join(encoded[field.name])
        else:
            _write_field(out, getattr(message, field.name), field, plan.flexible)
    if not plan.flexible:
        return None
    given: list[Any] = []
    for field in plan.tagged.values():
        value = getattr(message, field.name)
        if value != field.default:
            given.append((field, value))
    wire.write_uvarint(out, len(given))
    for entry in given:
        field, value = entry
        content = bytearray()
        _write_field(content, value, field, True)
        wire.write_uvarint(out, field.tag)
        wire.write_uvarint(out, len(content))
        out += content
    return None


@cython.cfunc
def _write_field(out: bytearray, value: Any, field: FieldPlan, flexible: cython.bint) -> object:
    if value is None and not field.nullable:
        raise ValueError(f"{field.name} may not be null in this version")
    if not field.is_array:
        return _write_value(out, value, field, flexible, field.nullable)
    if value is None:
        wire.write_array_length(out, -1, flexible)
        return None
    wire.write_array_length(out, len(value), flexible)
    index: cython.Py_ssize_t
    for index in range(len(value)):
        _write_value(out, value[index], field, flexible, False)
        if index % RELEASE_GIL_EVERY == RELEASE_GIL_EVERY - 1:
            wire.release_gil()
    return None


@cython.cfunc
def _write_value(out: bytearray, value: Any, field: FieldPlan, flexible: cython.bint, nullable: cython.bint) -> object:
    kind: cython.int = field.kind
    if kind == INT32:
        out += _pack_int32(value)
    elif kind == STRING:
        wire.write_string(out, value, flexible)
    elif kind == STRUCT:
        if value is None:
            out += b"\xff" if field.tag < 0 else b"\0"
        else:
            if nullable:
                out += b"\x01"
            _write_struct(out, value, field.struct_plan, None)
    elif kind == INT16:
        out += _pack_int16(value)
    elif kind == INT64:
        out += _pack_int64(value)
    elif kind == BOOL:
        out += b"\x01" if value else b"\0"
    elif kind == INT8:
        out += _pack_int8(value)
    elif kind == UUID:
        out += value.bytes
    elif kind in (BYTES, RECORDS):
        wire.write_bytes(out, value, flexible)
    elif kind == UINT16:
        out += _pack_uint16(value)
    elif kind == UINT32:
        out += _pack_uint32(value)
    else:
        out += _pack_float64(value)
    return None


def array_length(count: int | None, flexible: bool) -> bytes:
    """The bytes before an array's elements; None is a null array."""
    out = bytearray()
    wire.write_array_length(out, -1 if count is None else count, flexible)
    return bytes(out)


def is_flexible(message_class: type[Message], version: int) -> bool:
    return version in VersionRange.parse(message_class.SCHEMA.flexible)
