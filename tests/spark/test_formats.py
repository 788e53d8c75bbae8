"""Keys and values decoded while they are read: as Spark's own functions do, and nothing lost where they do not fit."""

import base64
import io
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from kaspar.spark.formats.data_types import data_type_of
from kaspar.spark.formats.json_columns import JsonDecoder
from kaspar.spark.formats.protobuf import message_of_descriptor_set
from tests.peers.kaspar import KasparProcess
from tests.spark.topics import Message, Stored, Topics

ORDER = "id BIGINT, name STRING, price DECIMAL(8,2), at TIMESTAMP, day DATE, tags ARRAY<STRING>"
COMPARED = (
    f"{ORDER}, x DOUBLE, small SMALLINT, ok BOOLEAN, place STRUCT<lat: DOUBLE, city: STRING>, local TIMESTAMP_NTZ"
)
SCALARS = (
    "null", "true", "false", "0", "-1", "7", "32768", "9223372036854775808", "1.5", "-0.005", "2.50", "1e3", "1e300",
    "123456.785", "999999.995", '"x"', '""', '"7"', '"1.25"', '"NaN"', '"-Infinity"', '"2024-05-01"', '"2024-02-30"',
    '"2024-5-1"', '"2024-05-01T10:20:30Z"', '"2024-05-01 10:20:30.123456789"', '"2024-05-01T10:20:30+05:30"', "[]",
    '["a", null]', "[1]", "{}", '{"lat": 1, "city": "Ulm", "more": []}', '{"lat": "north"}', '"caf\\u00e9"',
)  # fmt: skip


def read(spark: SparkSession, broker: KasparProcess, topic: str, **options: str) -> DataFrame:
    named = {name.replace("_", "."): value for name, value in options.items()}
    source = spark.read.format("kaspar").option("kafka.bootstrap.servers", broker.bootstrap)
    return source.options(**named).option("subscribe", topic).load()


def generated_records(count: int) -> Iterable[str]:
    """Objects whose members fit their types more often than not, and now and then no object at all."""
    rng = random.Random(7)
    fits = {
        "id": ("1", "-7", "null"), "name": ('"x"', '"caf\\u00e9"'), "price": ("1.5", '"2.25"', "3"), "x": ("1", "0.1"),
        "at": ('"2024-05-01T10:20:30Z"', '"2024-05-01"'), "day": ('"2024-05-01"',), "tags": ('["a", null]', "[]"),
        "small": ("5",), "ok": ("true",), "place": ('{"lat": 1, "city": "Ulm"}',), "local": ('"2024-05-01T10:20:30"',),
    }  # fmt: skip
    for _ in range(count):
        members = []
        for name in rng.sample(sorted(fits), rng.randint(0, 4)):
            usual = rng.random() < 0.8
            # Spark writes numbers in a string column its own way (1e3 as 1000.0); here they stay as they were.
            odd = [text for text in SCALARS if name != "name" or text[0] in '"ntf']
            members.append(f'"{name}": {rng.choice(fits[name] if usual else odd)}')
        broken = rng.choice(("", "[1]", '"x"', "{", '{"id": 1', '{"id": }', "7", " ")) if rng.random() < 0.05 else None
        yield "{" + ", ".join(members) + "}" if broken is None else broken


def as_spark_rows(spark: SparkSession, values: pa.Array) -> list[Any]:
    table = pa.table({"row": pa.array(range(len(values))), "decoded": values})
    return [row["decoded"] for row in spark.createDataFrame(table).orderBy("row").collect()]


def test_json_gives_what_from_json_gives(spark: SparkSession) -> None:
    records = list(generated_records(3000))
    schema = data_type_of(COMPARED)
    assert isinstance(schema, StructType)
    done = JsonDecoder(schema).decode(pa.array(records).cast(pa.binary()))
    ours = as_spark_rows(spark, done.values)

    corrupt = "_corrupt"
    with_corrupt = StructType([*schema.fields, StructField(corrupt, StringType())])
    texts = spark.createDataFrame(pa.table({"row": pa.array(range(len(records))), "text": records}))
    parsed = texts.select(
        "row", f.from_json("text", with_corrupt, {"columnNameOfCorruptRecord": corrupt}).alias("parsed")
    )
    theirs = [row["parsed"] for row in parsed.orderBy("row").collect()]
    assert len(ours) == len(theirs) == len(records)
    bad = 0
    for number, record in enumerate(records):
        expected: Row | None = theirs[number]
        if expected is not None and expected[corrupt] is not None:
            assert number in done.bad, record
            bad += 1
            continue
        assert number not in done.bad, (record, done.bad)
        comparable = None if expected is None else Row(**{name: expected[name] for name in schema.names})
        assert repr(ours[number]) == repr(comparable), record  # repr: NaN is equal to itself
    assert 300 < bad < 2500, "neither all of one kind nor of the other"


def test_strings_and_json_come_as_columns_of_their_types(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    topic = topics.create()
    text = '{"id": 1, "name": "é", "price": 2.5, "at": "2024-05-01T10:00:00+02:00", "day": "2024-05-01", "tags": ["a"]}'
    topics.produce(topic, [Message(text.encode(), key="schlüssel".encode()), Message(None)])
    rows = read(spark, broker, topic, key_format="string", value_format="json", value_schema=ORDER)
    assert rows.schema["key"].dataType.simpleString() == "string"
    assert rows.schema["value"].dataType == data_type_of(ORDER)
    first, tombstone = rows.select("key", "value.*", "value").orderBy("offset").collect()
    assert (first["key"], first["id"], str(first["price"]), first["tags"]) == ("schlüssel", 1, "2.50", ["a"])
    assert (tombstone["key"], tombstone["value"]) == (None, None)
    assert rows.where("value.at = timestamp'2024-05-01T08:00:00Z'").count() == 1


def test_a_schema_may_be_what_spark_writes_as_json(spark: SparkSession, broker: KasparProcess, topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, [b'{"id": 5}'])
    schema = data_type_of("id INT").json()
    assert [
        row[0]
        for row in read(spark, broker, topic, value_format="json", value_schema=schema).select("value.id").collect()
    ] == [5]


def test_avro_is_read_by_the_schema_it_was_written_with_or_as_another(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ]
    written = {"type": "record", "name": "Order", "fields": fields}
    city = {"name": "city", "type": ["null", "string"], "default": None}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(written), {"id": 3, "at": 1500})
    topic = topics.create()
    topics.produce(topic, [out.getvalue()])
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(written))
    evolved = json.dumps({**written, "fields": [*fields, city]})
    rows = read(
        spark, broker, topic, **{"value.format": "avro", "value.schema": str(path), "value.readerSchema": evolved}
    )
    assert rows.schema["value"].dataType.simpleString() == "struct<id:bigint,at:timestamp,city:string>"
    row = rows.selectExpr("value.id", "unix_millis(value.at) AS ms", "value.city").first()
    assert row is not None
    assert row.asDict() == {"id": 3, "ms": 1500, "city": None}


def test_protobuf_is_read_by_a_descriptor_set(spark: SparkSession, broker: KasparProcess, topics: Topics) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    for number, (name, kind) in enumerate((("id", 4), ("sku", 9)), start=1):  # uint64 and string
        message.field.add(name=name, number=number, type=kind, label=1)
    descriptors = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    order: Any = message_of_descriptor_set(descriptors, "shop.Order")
    topic = topics.create()
    topics.produce(topic, [order(id=2**64 - 1, sku="s").SerializeToString()])
    given = base64.b64encode(descriptors).decode()
    rows = read(spark, broker, topic, value_format="protobuf", value_schema=given, value_message="shop.Order")
    assert rows.schema["value"].dataType.simpleString() == "struct<id:decimal(20,0),sku:string>"
    assert [(int(row["id"]), row["sku"]) for row in rows.select("value.*").collect()] == [(2**64 - 1, "s")]


def test_a_record_that_does_not_fit_stops_the_query_with_one_sentence(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    topic = topics.create(partitions=2)
    topics.produce(
        topic, [Message(b'{"id": 1}'), Message(b'{"id": 2}', partition=1), Message(b'{"id": "x"}', partition=1)]
    )
    with pytest.raises(PySparkException) as stopped:
        read(spark, broker, topic, value_format="json", value_schema="id INT").collect()
    text = str(stopped.value)
    sentence = (
        f'The value of the record at offset 1 of {topic}-1 cannot be decoded: id is "x", which is not a whole number.'
    )
    assert sentence in text
    assert "Traceback" not in text


HEADERS = (("kept", b"\xff"),)


def reported(letter: Stored) -> dict[str, bytes | None]:
    return {name.removeprefix("__connect.errors."): value for name, value in letter.headers[len(HEADERS) :]}


def test_with_a_dead_letter_topic_bad_records_go_there_whole_and_reading_goes_on(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    topic, dead = topics.create(partitions=2), topics.create(partitions=2)
    bad = Message(b"{", key=b"k", headers=HEADERS, partition=1, timestamp_ms=1_700_000_000_123)
    topics.produce(topic, [Message(b'{"id": 1}'), bad, Message(b'{"id": 2}', partition=1)])
    options = {"value_format": "json", "value_schema": "id INT", "deadLetterTopic": dead, "columns": "value"}
    assert sorted(row[0] for row in read(spark, broker, topic, **options).select("value.id").collect()) == [1, 2]
    (letter,) = topics.read(dead)
    assert (letter.partition, letter.key, letter.value, letter.headers[:1]) == (1, b"k", b"{", HEADERS)
    assert letter.timestamp[1] > 1_700_000_000_123, "retention counts from when it was put there"
    assert reported(letter) == {
        "topic": topic.encode(),
        "partition": b"1",
        "offset": b"0",
        "stage": b"VALUE_CONVERTER",
        "exception.message": (b"it is not JSON (Expecting property name enclosed in double quotes at character 1)"),
        "__kaspar.errors.timestamp": b"1700000000123",
    }


def test_a_stream_puts_bad_records_aside_and_goes_on(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    topic, dead = topics.create(), topics.create()
    rows = (
        spark.readStream.format("kaspar")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("key.format", "string")
        .option("value.format", "json")
        .option("value.schema", "id INT")
        .option("deadLetterTopic", dead)
        .load()
    )
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for round_number in range(2):
        good = [Message(json.dumps({"id": round_number * 10 + number}).encode()) for number in range(3)]
        topics.produce(topic, [*good, Message(b"[]", headers=HEADERS), Message(b"{}", key=b"\xff", headers=HEADERS)])
        query = (
            rows.select("value.id").writeStream.format("parquet").option("path", str(out))
            .option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
    assert sorted(row[0] for row in spark.read.parquet(str(out)).collect()) == [0, 1, 2, 10, 11, 12]
    letters = topics.read(dead)
    assert [reported(letter)["offset"] for letter in letters] == [b"3", b"4", b"8", b"9"]
    assert [reported(letter)["stage"] for letter in letters] == [b"VALUE_CONVERTER", b"KEY_CONVERTER"] * 2


def test_a_dead_letter_topic_that_is_not_there_and_is_not_made_stops_the_query(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    topic = topics.create()
    topics.produce(topic, [b"{"])
    options = {"value_format": "json", "value_schema": "id INT", "deadLetterTopic": "not a topic"}
    with pytest.raises(PySparkException, match="'not a topic' is not a valid topic name"):
        read(spark, broker, topic, **options).collect()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"value_format": "json"},
            "Option 'value.format' is json, so option 'value.schema' must be given, or 'schema.registry.url'",
        ),
        ({"value_format": "json", "value_schema": "id MONEY"}, "'MONEY' is not a supported type"),
        ({"key_format": "xml"}, "Option 'key.format' must be one of bytes, string, json, avro, protobuf"),
        ({"value_format": "avro", "value_schema": "/no/such.avsc"}, "names a file that cannot be read: /no/such.avsc"),
    ],
)
def test_an_unusable_schema_is_reported_when_the_query_is_created(
    spark: SparkSession, broker: KasparProcess, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PySparkException) as refused:
        read(spark, broker, "any", **options)
    assert sentence in str(refused.value)
    assert "Traceback" not in str(refused.value)
