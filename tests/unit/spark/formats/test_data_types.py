"""Schemas from texts, as Spark writes and reads them."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from kaspar.spark.formats.data_types import data_type_of
from kaspar.spark.kafka_settings import InvalidOption

ORDER = StructType(
    [
        StructField("id", LongType()),
        StructField(
            "a `b", ArrayType(StructType([StructField("x", IntegerType()), StructField("y", DecimalType(5, 2))]))
        ),
        StructField("m", MapType(StringType(), TimestampNTZType())),
    ]
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("id BIGINT, `a ``b` array<struct<x:int,y:decimal(5,2)>>, m map<string,timestamp_ntz>", ORDER),
        (" id : LONG not null COMMENT 'what it is' ", StructType([StructField("id", LongType())])),
        ("array<int>", ArrayType(IntegerType())),
        ("map<string, int>", MapType(StringType(), IntegerType())),
        ("struct<a: int>", StructType([StructField("a", IntegerType())])),
        (
            "a decimal, b varchar(10)",
            StructType([StructField("a", DecimalType(10, 0)), StructField("b", StringType())]),
        ),
        (
            "date int, array string",
            StructType([StructField("date", IntegerType()), StructField("array", StringType())]),
        ),
    ],
)
def test_ddl_is_read_as_spark_reads_it(text: str, meant: DataType) -> None:
    assert data_type_of(text) == meant


def test_a_schema_in_json_is_what_spark_writes_but_nullable() -> None:
    strict = StructType(
        [StructField("a", IntegerType(), nullable=False), StructField("b", ArrayType(LongType(), containsNull=False))]
    )
    assert data_type_of(strict.json()) == data_type_of("a int, b array<bigint>")
    assert data_type_of(ORDER.json()) == ORDER


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "a column's name is missing"),
        ("a", "is not a supported type"),
        ("a int,", "a column's name is missing"),
        ("a int b int", "a comma or 'the end' is missing before 'b'"),
        ("a money", "'money' is not a supported type"),
        ("a array<int", "'>' is missing"),
        ("a int, a string", "duplicate column 'a'"),
        ("a decimal(39,2)", "must have 1 to 38 digits"),
        ("a decimal(3,2,1)", "a precision and a scale"),
        ("a int; b int", "is not valid"),
        ("array<int> x", "unexpected 'x'"),
        ('{"type": "strange"}', "not the JSON of a Spark schema"),
    ],
)
def test_what_is_no_schema_is_refused_with_the_place(text: str, complaint: str) -> None:
    with pytest.raises(InvalidOption, match=complaint):
        data_type_of(text)
