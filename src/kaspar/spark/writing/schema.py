"""The columns of a write, as in Spark's own sink, and `timestamp`: checked on the driver before anything is written.

`value` is required, and `topic` unless the option names one; `key`, `headers`, `partition` and `timestamp` are
optional. Any other column is ignored.
"""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kaspar.spark.kafka_settings import InvalidOption

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_TYPES: dict[str, tuple[DataType, ...]] = {
    "topic": (StringType(),),
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "headers": (_HEADERS,),
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
}
_REMEDIES = {"timestamp": "; cast the column, or drop it to write records with the time of the write."}


def check_schema(schema: StructType, topic: str | None) -> None:
    """Raises InvalidOption if rows of that schema cannot be written."""
    columns = {field.name: field.dataType for field in reversed(schema.fields)}
    if topic is None and "topic" not in columns:
        raise InvalidOption(
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
        )
    if "value" not in columns:
        raise InvalidOption(f"Required attribute 'value' not found among the columns {', '.join(columns) or '(none)'}")
    for name, allowed in _TYPES.items():
        if name not in columns or (name == "topic" and topic is not None):
            continue
        if not any(_same_type(columns[name], one) for one in allowed):
            names = " or ".join(one.simpleString() for one in allowed)
            raise InvalidOption(
                f"{name} attribute unsupported type {columns[name].simpleString()}. {name} must be a(n) {names}"
                + _REMEDIES.get(name, "")
            )


def _same_type(given: DataType, wanted: DataType) -> bool:
    """Whether they are the same except for nullability and the case of field names."""
    match given, wanted:
        case ArrayType(), ArrayType():
            return _same_type(given.elementType, wanted.elementType)
        case StructType(), StructType():
            return len(given) == len(wanted) and all(
                one.name.lower() == other.name.lower() and _same_type(one.dataType, other.dataType)
                for one, other in zip(given.fields, wanted.fields, strict=True)
            )
        case StringType(), StringType():
            return True
        case _:
            return given == wanted
