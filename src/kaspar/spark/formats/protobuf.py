"""Protobuf messages, by a descriptor set and a message's name, or by a generated class.

Messages are parsed one by one, in C, and their fields are gathered into columns, nested ones too, without creating
dicts. Types are those of Spark's from_protobuf, but wider where a value would change otherwise: uint32 is a long,
uint64 a decimal(20,0). A field with presence (optional, message, oneof) is null if it is not set; any other field then
has its default, since the message does not distinguish the two. An enum is its name, or its number if it has no name.
"""

import importlib
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kaspar.spark.formats.data_types import arrow_type_of
from kaspar.spark.formats.decoder import Decoded, collector_paused, column_of, fitting
from kaspar.spark.formats.schema_lookup import OneSchema, SchemaLookup
from kaspar.spark.kafka_settings import InvalidOption

_SCALARS: dict[int, DataType] = {
    FieldDescriptor.CPPTYPE_INT32: IntegerType(),
    FieldDescriptor.CPPTYPE_INT64: LongType(),
    FieldDescriptor.CPPTYPE_UINT32: LongType(),
    FieldDescriptor.CPPTYPE_UINT64: DecimalType(20, 0),
    FieldDescriptor.CPPTYPE_DOUBLE: DoubleType(),
    FieldDescriptor.CPPTYPE_FLOAT: FloatType(),
    FieldDescriptor.CPPTYPE_BOOL: BooleanType(),
    FieldDescriptor.CPPTYPE_ENUM: StringType(),
}
_TIMES: dict[str, DataType] = {
    "google.protobuf.Timestamp": TimestampType(),
    "google.protobuf.Duration": DayTimeIntervalType(),
}


class ProtobufDecoder:
    def __init__(self, message: type[Message], lookup: SchemaLookup[type[Message]] | None = None) -> None:
        self.data_type = _struct_type(message.DESCRIPTOR, ())
        self._descriptor = message.DESCRIPTOR
        self._lookup = lookup or OneSchema(message)

    @collector_paused()
    def decode(self, column: pa.BinaryArray) -> Decoded:
        bad: dict[int, str] = {}
        messages = [self._parse(row, record, bad) for row, record in enumerate(column.to_pylist())]
        values = column_of(messages, lambda some: _struct(some, self._descriptor), bad)
        return Decoded(values.cast(arrow_type_of(self.data_type)), dict(sorted(bad.items())))

    def _parse(self, row: int, record: bytes | None, bad: dict[int, str]) -> Message | None:
        if record is None:
            return None
        try:
            message_class, start = self._lookup.find(record)
            message = message_class()
            message.ParseFromString(record[start:])
            if message.IsInitialized():
                return message
            bad[row] = f"a required field is missing: {', '.join(message.FindInitializationErrors())}"
        except (DecodeError, ValueError) as error:
            bad[row] = f"it is not a {self._descriptor.full_name} in Protobuf ({error})"
        return None


def message_of_descriptor_set(descriptor_set: bytes, name: str) -> type[Message]:
    """The class of a message in a descriptor set, as `protoc --include_imports --descriptor_set_out` writes it."""
    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptor_set).file
        _add_well_known(pool, files)
        for file in files:
            pool.Add(file)
        message: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except DecodeError as error:
        raise InvalidOption(f"it is not a Protobuf descriptor set ({error}).") from error
    except KeyError as error:
        raise InvalidOption(f"the Protobuf descriptor set has no message {name}.") from error
    except TypeError as error:  # usually a file that was not included
        raise InvalidOption(f"the Protobuf descriptor set cannot be used ({error}).") from error
    return message


def message_of_class(path: str) -> type[Message]:
    """A generated class by its import path, such as `orders_pb2.Order`. All of Spark's Pythons must be able to import
    it."""
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidOption(f"the generated class {path} cannot be imported ({error}).") from error
    if not (isinstance(found, type) and issubclass(found, Message)):
        raise InvalidOption(f"{path} is not a generated Protobuf message.")
    return found


def _add_well_known(pool: descriptor_pool.DescriptorPool, files: Sequence[Any]) -> None:
    """Add Protobuf's well-known types, which descriptor sets often omit."""
    given = {file.name for file in files}
    for needed in sorted({name for file in files for name in file.dependency} - given):
        if needed.startswith("google/protobuf/"):
            module = importlib.import_module(needed.removesuffix(".proto").replace("/", ".") + "_pb2")
            pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)


def _struct_type(descriptor: Descriptor, within: tuple[str, ...]) -> StructType:
    if descriptor.full_name in within:
        raise InvalidOption(f"the Protobuf message {descriptor.full_name} is recursive, which no column can hold.")
    around = (*within, descriptor.full_name)
    return StructType([StructField(field.name, _field_type(field, around)) for field in descriptor.fields])


def _field_type(field: FieldDescriptor, within: tuple[str, ...]) -> DataType:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        return MapType(_single_type(entry["key"], within), _single_type(entry["value"], within))
    single = _single_type(field, within)
    return ArrayType(single) if field.is_repeated else single


def _single_type(field: FieldDescriptor, within: tuple[str, ...] = ()) -> DataType:
    if field.message_type is not None:
        return _TIMES.get(field.message_type.full_name) or _struct_type(field.message_type, within)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return BinaryType() if field.type == FieldDescriptor.TYPE_BYTES else StringType()
    return _SCALARS[field.cpp_type]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _struct(messages: Sequence[Message | None], descriptor: Descriptor) -> pa.StructArray:
    missing = [message is None for message in messages]
    columns = [_column(messages, field) for field in descriptor.fields]
    fields = [pa.field(field.name, column.type) for field, column in zip(descriptor.fields, columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=pa.array(missing, pa.bool_()))


def _column(messages: Sequence[Message | None], field: FieldDescriptor) -> pa.Array:
    name = field.name
    if not field.is_repeated:
        if field.has_presence:
            return _values([getattr(m, name) if m is not None and m.HasField(name) else None for m in messages], field)
        return _values([None if m is None else getattr(m, name) for m in messages], field)
    repeated = [() if m is None else getattr(m, name) for m in messages]
    offsets = pa.array([0, *accumulate(map(len, repeated))], pa.int32())
    if _is_map(field):
        entry = field.message_type.fields_by_name
        keys = _values([key for entries in repeated for key in entries], entry["key"])
        values = _values([entries[key] for entries in repeated for key in entries], entry["value"])
        return pa.MapArray.from_arrays(offsets, keys, values)
    elements = _values([element for elements in repeated for element in elements], field)
    return pa.ListArray.from_arrays(offsets, elements, type=pa.list_(pa.field("element", elements.type)))


def _values(values: list[Any], field: FieldDescriptor) -> pa.Array:
    """A column of single values of a field, or of its elements if it is repeated."""
    if field.message_type is not None:
        if field.message_type.full_name in _TIMES:
            with fitting("it has a timestamp or duration that overflows microseconds"):
                return pa.array(_micros(values), arrow_type_of(_TIMES[field.message_type.full_name]))
        return _struct(values, field.message_type)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return pa.array([None if value is None else names.get(value, str(value)) for value in values], pa.string())
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
        return pa.array(values, pa.uint64()).cast(arrow_type_of(_SCALARS[field.cpp_type]))
    with fitting("it has a string that is not UTF-8"):  # proto2 does not check
        return pa.array(values, arrow_type_of(_single_type(field)))


def _micros(times: Iterable[Any]) -> list[int | None]:
    return [None if time is None else time.seconds * 1_000_000 + time.nanos // 1000 for time in times]
