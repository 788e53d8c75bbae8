"""The Avro schema of a Spark type, as in Spark's to_avro, with one difference: null is the first branch of a union, and
the default. So the schema of a query to which a column was added can read older records."""

import json
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kaspar.spark.kafka_settings import InvalidOption

RECORD_NAME = "topLevelRecord"  # Spark's


def avro_schema_of(data_type: DataType, *, record_name: str = RECORD_NAME) -> str:
    """The schema as JSON. Raises InvalidOption for types that Avro does not have."""
    return json.dumps(_schema(data_type, record_name))


def _schema(data_type: DataType, name: str) -> Any:
    match data_type:
        case StructType():
            fields = [_field(field, name) for field in data_type.fields]
            return {"type": "record", "name": name, "fields": fields}
        case ArrayType():
            return {"type": "array", "items": _nullable(data_type.elementType, name, data_type.containsNull)}
        case MapType() if isinstance(data_type.keyType, StringType):
            return {"type": "map", "values": _nullable(data_type.valueType, name, data_type.valueContainsNull)}
        case DecimalType():
            digits = {"precision": data_type.precision, "scale": data_type.scale}
            return {"type": "bytes", "logicalType": "decimal", **digits}
        case DateType():
            return {"type": "int", "logicalType": "date"}
        case TimestampType():
            return {"type": "long", "logicalType": "timestamp-micros"}
        case TimestampNTZType():
            return {"type": "long", "logicalType": "local-timestamp-micros"}
        case BooleanType():
            return "boolean"
        case ByteType() | ShortType() | IntegerType():
            return "int"
        case LongType():
            return "long"
        case FloatType():
            return "float"
        case DoubleType():
            return "double"
        case StringType():
            return "string"
        case BinaryType():
            return "bytes"
    raise InvalidOption(f"Avro has no type for {data_type.simpleString()}: cast the column, or give a schema.")


def _field(field: StructField, record_name: str) -> dict[str, Any]:
    # The name of a nested record starts with the names of the records around it, as its namespace.
    schema = _nullable(field.dataType, f"{record_name}.{field.name}", field.nullable)
    return {"name": field.name, "type": schema, **({"default": None} if field.nullable else {})}


def _nullable(data_type: DataType, name: str, nullable: bool) -> Any:
    schema = _schema(data_type, name)
    return ["null", schema] if nullable else schema
