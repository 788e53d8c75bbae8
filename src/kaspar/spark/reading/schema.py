"""The columns of a read as Spark types: those of Spark's own Kafka source, with key and value in their formats."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kaspar.spark.formats import Field, decoder_of
from kaspar.spark.reading.options import InvalidOption, ReadOptions

_FIELDS: dict[str, Field] = {"key": "key", "value": "value"}
_TYPES: dict[str, DataType] = {
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headerBytes": BinaryType(),
    "keyPartition": IntegerType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}


def schema_of(options: ReadOptions) -> StructType:
    return StructType([StructField(column, _type_of(column, options)) for column in options.columns])


def _type_of(column: str, options: ReadOptions) -> DataType:
    field = _FIELDS.get(column)
    return _TYPES[column] if field is None else decoder_of(options, field).data_type


def refuse_other_schema(options: ReadOptions, given: StructType) -> None:
    """Refuse a schema that is not ours: Spark passes the one given to .schema() instead."""
    if given.fieldNames() != list(options.columns):
        raise InvalidOption(
            "The columns of a topic are fixed: leave out .schema(), and name the columns with the option 'columns'."
        )
