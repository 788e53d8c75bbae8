"""Which columns a write takes: the rules and sentences of Spark's own sink, and timestamps."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.writing.schema import check_schema

TEXT, OCTETS, INT = StringType(), BinaryType(), IntegerType()


def columns(**types: DataType) -> StructType:
    return StructType([StructField(name, data_type) for name, data_type in types.items()])


def headers(**types: DataType) -> ArrayType:
    return ArrayType(columns(**types), containsNull=False)


FITTING = [
    columns(value=TEXT),
    columns(value=OCTETS, key=TEXT),
    columns(value=TEXT, key=OCTETS, partition=INT, headers=headers(key=TEXT, value=OCTETS)),
    columns(value=TEXT, headers=headers(Key=TEXT, VALUE=OCTETS)),
    columns(value=TEXT, other=DoubleType(), timestamp=TimestampType()),
]


@pytest.mark.parametrize("schema", FITTING, ids=StructType.simpleString)
def test_columns_that_fit(schema: StructType) -> None:
    check_schema(schema, "t")
    check_schema(StructType([*schema.fields, StructField("topic", TEXT)]), None)


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (columns(key=TEXT), "Required attribute 'value' not found among the columns key"),
        (columns(value=INT), r"value attribute unsupported type int\. value must be a\(n\) string or binary"),
        (columns(value=TEXT, key=INT), r"key attribute unsupported type int\. key must be a\(n\) string or binary"),
        (columns(value=TEXT, partition=LongType()), r"partition attribute unsupported type bigint\. .*a\(n\) int"),
        (columns(value=TEXT, timestamp=LongType()), r"timestamp must be a\(n\) timestamp; cast the column, or drop it"),
        (columns(value=TEXT, timestamp=TimestampNTZType()), "timestamp attribute unsupported type timestamp_ntz"),
        (columns(value=TEXT, headers=MapType(TEXT, OCTETS)), "headers attribute unsupported type map<string,binary>"),
        (
            columns(value=TEXT, headers=headers(key=TEXT, value=TEXT)),
            r"headers must be a\(n\) array<struct<key:string,value:binary>>",
        ),
    ],
)
def test_columns_that_do_not_fit_are_reported(schema: StructType, sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        check_schema(schema, "t")


def test_a_topic_has_to_come_from_somewhere() -> None:
    with pytest.raises(InvalidOption, match="topic option required when no 'topic' attribute is present"):
        check_schema(columns(value=TEXT), None)


def test_a_topic_column_of_another_type_matters_only_where_it_is_used() -> None:
    schema = columns(value=TEXT, topic=INT)
    check_schema(schema, "t")
    with pytest.raises(InvalidOption, match="topic attribute unsupported type int"):
        check_schema(schema, None)
