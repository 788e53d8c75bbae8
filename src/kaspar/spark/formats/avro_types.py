"""The Spark type of an Avro schema, as in Spark's from_avro.

A union of a type and null is that type, of int and long a long, of float and double a double. Other unions and
recursive records are rejected, because no column can hold them.
"""

from collections.abc import Mapping
from typing import cast

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

from kaspar.schemas.avro import parse
from kaspar.schemas.avro.logical import logical_type
from kaspar.schemas.avro.types import Array, AvroType, Enumeration, Fixed, Map, Primitive, Record, Union
from kaspar.schemas.schema import InvalidSchema
from kaspar.spark.kafka_settings import InvalidOption

MOST_DIGITS = 38
TIMES: Mapping[str, DataType] = {
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-millis": TimestampNTZType(),
    "local-timestamp-micros": TimestampNTZType(),
}
_PRIMITIVES: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
}
_WIDER = {frozenset(("int", "long")): LongType(), frozenset(("float", "double")): DoubleType()}


def parsed(text: str, references: Mapping[str, str] | None = None) -> AvroType:
    """Parse a schema. `references` are the texts of the schemas that it refers to. Raises InvalidOption."""
    try:
        return parse(text, references or {}, validate_defaults=False).root
    except InvalidSchema as problem:
        raise InvalidOption(f"the Avro schema is invalid ({problem}).") from problem


def spark_type(node: AvroType, within: frozenset[AvroType] = frozenset()) -> DataType:
    """The Spark type of an Avro type. `within` are the records around it. Raises InvalidOption."""
    match node:
        case Union():
            branches = values_of(node)
            wider = _WIDER.get(frozenset(branch.kind for branch in branches))
            if len(branches) != 1 and (wider is None or any(map(logical_type, branches))):
                names = ", ".join(branch.union_name for branch in node.branches)
                raise InvalidOption(f"no column can hold the Avro union of {names}.")
            return wider if len(branches) > 1 and wider is not None else spark_type(branches[0], within)
        case Record():
            if node in within:
                raise InvalidOption(f"the Avro record {node.name.full} is recursive, which no column can hold.")
            around = within | {node}
            return StructType([StructField(field.name, spark_type(field.type, around)) for field in node.fields])
        case Array():
            return ArrayType(spark_type(node.items, within))
        case Map():
            return MapType(StringType(), spark_type(node.values, within))
        case Enumeration():
            return StringType()
        case Fixed():
            return _decimal(node) or BinaryType()
    return _primitive(cast(Primitive, node))


def values_of(union: Union) -> list[AvroType]:
    """The branches of a union other than null."""
    return [branch for branch in union.branches if branch.kind != "null"]


def decimal_digits(node: AvroType) -> tuple[int, int] | None:
    """The precision and scale of a decimal; None for any other type."""
    if logical_type(node) != "decimal":
        return None
    return cast(int, node.properties["precision"]), cast(int, node.properties.get("scale", 0))


def _primitive(node: Primitive) -> DataType:
    match logical_type(node):
        case "date":
            return DateType()
        case "decimal":
            return _decimal(node) or BinaryType()
        case str(name) if name in TIMES:
            return TIMES[name]
    if node.name not in _PRIMITIVES:
        raise InvalidOption(f"no column can hold the Avro type {node.name}.")
    return _PRIMITIVES[node.name]


def _decimal(node: AvroType) -> DataType | None:
    digits = decimal_digits(node)
    if digits is None:
        return None
    if digits[0] > MOST_DIGITS:
        raise InvalidOption(f"an Avro decimal of {digits[0]} digits exceeds Spark's limit of {MOST_DIGITS}.")
    return DecimalType(*digits)
