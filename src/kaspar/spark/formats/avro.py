"""Avro records (without a file header), by a given schema and optionally a reader schema.

The types are those of Spark's from_avro. Dates and times are read as numbers and converted a column at a time. A union
of a type and null is that type, of int and long a long, of float and double a double; other unions and recursive
schemas are refused, since no column can hold them.
"""

import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kaspar.spark.formats.data_types import arrow_type_of
from kaspar.spark.formats.decoder import Decoded, collector_paused, column_of, fitting
from kaspar.spark.formats.schema_lookup import OneSchema, SchemaLookup
from kaspar.spark.kafka_settings import InvalidOption

_PRIMITIVES: dict[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
}
_LOGICAL: dict[tuple[str, str], DataType] = {
    ("int", "date"): DateType(),
    ("long", "timestamp-millis"): TimestampType(),
    ("long", "timestamp-micros"): TimestampType(),
    ("long", "local-timestamp-millis"): TimestampNTZType(),
    ("long", "local-timestamp-micros"): TimestampNTZType(),
}
_WIDER = {frozenset(("int", "long")): "long", frozenset(("float", "double")): "double"}
_MOST_DIGITS = 38


class AvroDecoder:
    def __init__(self, schema: str, reader_schema: str | None = None, lookup: SchemaLookup[Any] | None = None) -> None:
        read_as = _parsed(reader_schema or schema)
        shape = _Shape(read_as)
        self.data_type = shape.data_type
        self._arrow_type = arrow_type_of(self.data_type)
        self._read_type = shape.read_type
        self._lookup = lookup or OneSchema(_physical(_parsed(schema)))
        self._read_as = _physical(read_as) if reader_schema else None

    @collector_paused()
    def decode(self, column: pa.BinaryArray) -> Decoded:
        bad: dict[int, str] = {}
        values: list[Any] = []
        for row, record in enumerate(column.to_pylist()):
            value = None
            if record is not None:
                try:
                    value = self._read(record)
                except Exception as error:  # fastavro raises many kinds
                    bad[row] = f"it is not Avro of the given schema ({_reason(error)})"
            values.append(value)
        gathered = column_of(values, self._gather, bad)
        return Decoded(gathered, dict(sorted(bad.items())))

    def _gather(self, values: list[Any]) -> pa.Array:
        with fitting("it has a number that its type cannot hold"):
            return pa.array(values, self._read_type).cast(self._arrow_type)

    def _read(self, record: bytes) -> Any:
        schema, start = self._lookup.find(record)
        stream = io.BytesIO(record)
        stream.seek(start)
        value = fastavro.schemaless_reader(stream, schema, self._read_as)
        if stream.tell() != len(record):
            raise ValueError(f"{len(record) - stream.tell()} bytes are left over")
        return value


def _reason(error: Exception) -> str:
    return "it ends too early" if isinstance(error, EOFError) else str(error) or type(error).__name__


def _parsed(text: str) -> Any:
    """The schema with full names, and each named type defined at its first use."""
    try:
        return fastavro.parse_schema(json.loads(text))
    except Exception as error:  # fastavro's own kinds, KeyError and more
        raise InvalidOption(f"the Avro schema is invalid ({type(error).__name__}: {error}).") from error


def _physical(schema: Any) -> Any:
    """The schema without logical types, which Arrow converts a column at a time; decimals are kept."""
    return fastavro.parse_schema(_without_logical_types(schema))


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if not key.startswith("__")}
    if kept.get("logicalType") != "decimal":
        kept.pop("logicalType", None)
    for inner in ("type", "items", "values"):
        if inner in kept:
            kept[inner] = _without_logical_types(kept[inner])
    if "fields" in kept:
        kept["fields"] = [_without_logical_types(field) for field in kept["fields"]]
    return kept


class _Shape:
    """The Spark type of a schema, and the Arrow type in which its numbers are read."""

    def __init__(self, schema: Any) -> None:
        self._named: dict[str, tuple[DataType, pa.DataType]] = {}
        self._open: set[str] = set()
        self.data_type, self.read_type = self._of(schema)

    def _of(self, schema: Any) -> tuple[DataType, pa.DataType]:
        if isinstance(schema, list):
            return self._of(_only_branch(schema))
        if isinstance(schema, str):
            if schema in self._open:
                raise InvalidOption(f"the Avro record {schema} is recursive, which no column can hold.")
            return self._named[schema] if schema in self._named else _plain(_PRIMITIVES, schema)
        match schema["type"]:
            case "record" | "error":
                return self._remember(schema["name"], schema)
            case "enum":
                return self._put(schema["name"], StringType())
            case "fixed":
                return self._put(schema["name"], _decimal_or(BinaryType(), schema))
            case "array":
                element, read = self._of(schema["items"])
                return ArrayType(element), pa.list_(pa.field("element", read))
            case "map":
                value, read = self._of(schema["values"])
                return MapType(StringType(), value), pa.map_(pa.string(), read)
            case "bytes":
                return _both(_decimal_or(BinaryType(), schema))
            case "int" | "long" as primitive:
                return _number(primitive, schema.get("logicalType", ""))
        return self._of(schema["type"])

    def _remember(self, name: str, schema: Mapping[str, Any]) -> tuple[DataType, pa.DataType]:
        self._open.add(name)
        fields = [(field["name"], *self._of(field["type"])) for field in schema["fields"]]
        self._open.remove(name)
        self._named[name] = (
            StructType([StructField(field, data_type) for field, data_type, _ in fields]),
            pa.struct([pa.field(field, read) for field, _, read in fields]),
        )
        return self._named[name]

    def _put(self, name: str, data_type: DataType) -> tuple[DataType, pa.DataType]:
        self._named[name] = _both(data_type)
        return self._named[name]


def _only_branch(branches: list[Any]) -> Any:
    """The one type of a union; several that one column can hold count as one."""
    others = [branch for branch in map(_by_name, branches) if branch != "null"]
    if len(others) == 1:
        return others[0]
    if all(isinstance(branch, str) for branch in others) and frozenset(others) in _WIDER:
        return _WIDER[frozenset(others)]
    raise InvalidOption(f"no column can hold the Avro union {json.dumps(branches)}.")


def _by_name(branch: Any) -> Any:
    """A primitive type in object form, {"type": "int"}, as its name."""
    is_written_out = isinstance(branch, dict) and "logicalType" not in branch
    return branch["type"] if is_written_out and branch["type"] in ("null", *_PRIMITIVES) else branch


def _number(primitive: str, logical: str) -> tuple[DataType, pa.DataType]:
    data_type = _LOGICAL.get((primitive, logical), _PRIMITIVES[primitive])
    read = arrow_type_of(data_type)
    return data_type, pa.timestamp("ms", read.tz) if logical.endswith("timestamp-millis") else read


def _decimal_or(otherwise: DataType, schema: Mapping[str, Any]) -> DataType:
    if schema.get("logicalType") != "decimal":
        return otherwise
    precision, scale = schema["precision"], schema.get("scale", 0)
    if precision > _MOST_DIGITS:
        raise InvalidOption(f"an Avro decimal of {precision} digits exceeds Spark's limit of {_MOST_DIGITS}.")
    return DecimalType(precision, scale)


def _plain(types: Mapping[str, DataType], name: str) -> tuple[DataType, pa.DataType]:
    if name not in types:
        raise InvalidOption(f"no column can hold the Avro type {name}.")
    return _both(types[name])


def _both(data_type: DataType) -> tuple[DataType, pa.DataType]:
    return data_type, arrow_type_of(data_type)
