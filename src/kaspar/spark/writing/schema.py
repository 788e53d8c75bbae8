"""The columns of a write, as in Spark's own sink, and `timestamp`: checked on the driver before anything is written.

`value` is required, and `topic` unless the option names one; `key`, `headers`, `partition` and `timestamp` are
optional. Any other column is ignored. Key and value have any type that their schema allows if they are encoded.
"""

from dataclasses import replace

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
from kaspar.spark.writing.options import WriteOptions

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


def planned(options: WriteOptions, schema: StructType) -> WriteOptions:
    """Check that rows of that schema can be written, and find the schemas of the columns that are encoded by the
    registry. Raises InvalidOption."""
    check_schema(schema, options.topic, encoded=frozenset(each.field for each in options.declared))
    columns = {field.name: field.dataType for field in reversed(schema.fields)}
    declared = [each for each in options.declared if each.field in columns]
    if not declared:
        return options
    from kaspar.spark.formats.registered_encoder import planned_encoding  # most writes have no registry

    encodings = tuple(planned_encoding(each, columns[each.field], options.topic) for each in declared)
    return replace(options, encodings=encodings)


def check_schema(schema: StructType, topic: str | None, *, encoded: frozenset[str] = frozenset()) -> None:
    """Raises InvalidOption if rows of that schema cannot be written. `encoded` are columns that may have any type."""
    columns = {field.name: field.dataType for field in reversed(schema.fields)}
    if topic is None and "topic" not in columns:
        raise InvalidOption(
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
        )
    if "value" not in columns:
        raise InvalidOption(f"Required attribute 'value' not found among the columns {', '.join(columns) or '(none)'}")
    for name, allowed in _TYPES.items():
        if name not in columns or name in encoded or (name == "topic" and topic is not None):
            continue
        if not any(_same_type(columns[name], one) for one in allowed):
            names = " or ".join(one.simpleString() for one in allowed)
            raise InvalidOption(
                f"{name} attribute unsupported type {columns[name].simpleString()}. {name} must be a(n) {names}"
                + _REMEDIES.get(name, "")
            )


def _same_type(given: DataType, wanted: DataType) -> bool:
    """Whether the types are the same except for nullability and the case of field names."""
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
