"""Records with the schemas of a registry, read and written by a real session: the schemas are those of Confluent's
serializers, which read what Spark writes."""

import datetime
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import kaspar.spark
from kaspar.schemas.schema import SchemaType
from kaspar.serialization.registry_client import RegistryClient, SchemaText
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.wire_format import id_prefix, write_indexes
from kaspar.testing.services import Services
from tests.peers.kaspar import KasparProcess
from tests.spark.topics import Topics

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "city", "type": ["null", "string"], "default": None},
    ],
}
NEWER = {**ORDER, "fields": [*ORDER["fields"], {"name": "paid", "type": "boolean", "default": False}]}
REFUND = {"type": "record", "name": "Refund", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}
PROTO = """
    syntax = "proto3"; package shop;
    message Refund { string why = 1; }
    message Order { int64 id = 1; string sku = 2; }
"""
JSON_SCHEMA = {
    "type": "object",
    "title": "Order",
    "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["id"],
}


@pytest.fixture(scope="module")
def registry(shared_broker: KasparProcess) -> Iterator[str]:
    services = Services(registry=True, rest=False)
    services.start(shared_broker.bootstrap, {})
    yield services.url("registry")
    services.stop()


@pytest.fixture
def client(registry: str) -> Iterator[RegistryClient]:
    opened = RegistryClient(registry_config({"schema.registry.url": registry}))
    yield opened
    opened.close()


def registered(client: RegistryClient, subject: str, schema: Any, kind: SchemaType = SchemaType.AVRO) -> int:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    found = client.register(subject, SchemaText(kind, text)).id
    assert found is not None
    return found


def avro(schema_id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return id_prefix(schema_id) + out.getvalue()


def source(spark: SparkSession, broker: KasparProcess, registry: str, topic: str, **options: str) -> Any:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "schema.registry.url": registry}
    return spark.read.format("kaspar").options(**given, **options)


def values(rows: DataFrame) -> list[Any]:
    return [row.asDict() for row in rows.orderBy("offset").select("value.*").collect()]


def test_a_format_and_the_url_are_enough(
    spark: SparkSession, broker: KasparProcess, topics: Topics, registry: str, client: RegistryClient
) -> None:
    topic = topics.create()
    older = registered(client, f"{topic}-value", ORDER)
    newer = registered(client, f"{topic}-value", NEWER)
    records = [
        avro(older, ORDER, {"id": 1, "at": 1500, "city": "Ulm"}),
        avro(newer, NEWER, {"id": 2, "at": 2500, "city": None, "paid": True}),
        None,
        avro(older, ORDER, {"id": 3, "at": 3500, "city": "Köln"}),
    ]
    topics.produce(topic, records)
    rows = source(spark, broker, registry, topic, **{"value.format": "avro"}).load()
    assert rows.schema["value"].dataType.simpleString() == "struct<id:bigint,at:timestamp,city:string,paid:boolean>"
    found = rows.orderBy("offset").select("value.id", "value.city", "value.paid", f.unix_millis("value.at")).collect()
    assert [tuple(row) for row in found] == [
        (1, "Ulm", False, 1500), (2, None, True, 2500), (None, None, None, None), (3, "Köln", False, 3500),
    ]  # fmt: skip


def test_a_query_that_runs_reads_new_versions_and_puts_the_unreadable_aside(
    spark: SparkSession, broker: KasparProcess, topics: Topics, registry: str, client: RegistryClient, tmp_path: Path
) -> None:
    topic, dead = topics.create(), topics.create()
    older = registered(client, f"{topic}-value", ORDER)
    rows = (
        spark.readStream.format("kaspar")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("value.format", "avro")
        .option("schema.registry.url", registry)
        .option("deadLetterTopic", dead)
        .load()
    )
    # The columns were decided by load(): what is registered after it changes what is written, and not what is read.
    newer = registered(client, f"{topic}-value", NEWER)
    refund = registered(client, f"{topic}-refunds", REFUND)
    good = avro(older, ORDER, {"id": 1, "at": 0, "city": "Ulm"})
    topics.produce(topic, [good, good[:-1], b"plain", id_prefix(99_999) + b"\x02", avro(refund, REFUND, {"id": 7})])
    topics.produce(topic, [avro(newer, NEWER, {"id": 2, "at": 0, "city": None, "paid": True})])
    query = (
        rows.select("value.*").writeStream.format("parquet").option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.columns == ["id", "at", "city"]
    assert sorted(row["id"] for row in found.collect()) == [1, 2]
    reasons = [dict(letter.headers)["__connect.errors.exception.message"] for letter in topics.read(dead)]
    assert [reason.decode() for reason in reasons if reason is not None] == [
        "it is not Avro data of the given schema (it ends too early)",
        "unknown magic byte 112 in the value: it was not written by a serializer of a schema registry",
        "the registry does not know its schema 99999 (schema 99999 not found)",
        f"its schema {refund} cannot be read as the reader's schema: the record shop.Refund cannot be read as the "
        "record shop.Order",
    ]


def test_what_spark_writes_by_the_type_of_a_column_is_registered_and_read_by_others(
    spark: SparkSession, broker: KasparProcess, topics: Topics, registry: str, client: RegistryClient
) -> None:
    topic = topics.create()
    rows = spark.sql(
        "SELECT 7L AS key, named_struct('id', 1, 'at', timestamp'2024-05-01 10:00:00', 'price', 1.25BD, 'm', "
        "map('a', 1L), 'tags', array('x', NULL), 'none', CAST(NULL AS STRING)) AS value"
    )
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "topic": topic,
        "key.format": "avro",
        "value.format": "avro",
        "schema.registry.url": registry,
    }
    rows.write.format("kaspar").options(**options).mode("append").save()
    assert client.latest(f"{topic}-key").schema.text == '"long"'
    (stored,) = topics.read(topic)
    confluent = AvroDeserializer(SchemaRegistryClient({"url": registry}))
    moment = datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC)
    assert confluent(stored.value, SerializationContext(topic, MessageField.VALUE)) == {
        "id": 1, "at": moment, "price": Decimal("1.25"), "m": {"a": 1},
        "tags": ["x", None], "none": None,
    }  # fmt: skip
    back = source(spark, broker, registry, topic, **{"key.format": "avro", "value.format": "avro"}).load()
    assert [(row["key"], row["id"]) for row in back.select("key", "value.id").collect()] == [(7, 1)]


def test_a_write_by_the_latest_schema_takes_no_column_that_it_does_not_have(
    spark: SparkSession, broker: KasparProcess, topics: Topics, registry: str, client: RegistryClient
) -> None:
    topic = topics.create()
    registered(client, f"{topic}-value", ORDER)
    options = {
        "kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "value.format": "avro",
        "schema.registry.url": registry, "use.latest.version": "true",
    }  # fmt: skip

    def write(struct: str) -> None:
        rows = spark.sql(f"SELECT named_struct({struct}) AS value")
        rows.write.format("kaspar").options(**options).mode("append").save()

    write("'id', 5L, 'at', timestamp'1970-01-01 00:00:01.5'")
    for struct, sentence in (
        ("'id', 5L, 'at', timestamp'2024-05-01', 'more', 1", "has no field for the column value.more"),
        ("'id', 5L", "needs a column value.at"),
    ):
        with pytest.raises(PySparkException, match=sentence):
            write(struct)
    assert values(source(spark, broker, registry, topic, **{"value.format": "avro"}).load()) == [
        {"id": 5, "at": datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000), "city": None}
    ]


@pytest.mark.parametrize(
    ("form", "kind", "schema", "column"),
    [
        ("json", SchemaType.JSON, json.dumps(JSON_SCHEMA), "struct<id:bigint,tags:array<string>>"),
        ("protobuf", SchemaType.PROTOBUF, PROTO, "struct<id:bigint,sku:string>"),
    ],
)
def test_json_and_protobuf_go_through_the_registry_both_ways(
    spark: SparkSession,
    broker: KasparProcess,
    topics: Topics,
    registry: str,
    client: RegistryClient,
    form: str,
    kind: SchemaType,
    schema: str,
    column: str,
) -> None:
    topic, dead = topics.create(), topics.create()
    schema_id = registered(client, f"{topic}-value", schema, kind)
    given = {"value.format": form, **({"value.message": "shop.Order"} if form == "protobuf" else {})}
    fields = "'sku', 'a-1'" if form == "protobuf" else "'tags', array('a', 'b')"
    rows = spark.sql(f"SELECT named_struct('id', 5L, {fields}) AS value")
    servers = {"kafka.bootstrap.servers": broker.bootstrap, "schema.registry.url": registry}
    rows.write.format("kaspar").options(**servers, topic=topic, **given).mode("append").save()
    refund = id_prefix(schema_id) + write_indexes((0,)) + b"\x0a\x01x"  # of the message that is not the reader's
    topics.produce(topic, [refund if form == "protobuf" else id_prefix(schema_id) + b"{"])
    back = source(spark, broker, registry, topic, **given, deadLetterTopic=dead).load()
    assert back.schema["value"].dataType.simpleString() == column
    assert values(back) == [{"id": 5, **({"sku": "a-1"} if form == "protobuf" else {"tags": ["a", "b"]})}]
    assert topics.read(dead)


def test_columns_are_decoded_and_encoded_anywhere_in_a_query(
    spark: SparkSession, topics: Topics, registry: str, client: RegistryClient
) -> None:
    subject = f"{topics.create()}-value"
    schema_id = registered(client, subject, ORDER)
    good = avro(schema_id, ORDER, {"id": 1, "at": 0, "city": "Ulm"})
    rows = spark.createDataFrame([(good,), (None,), (good[:-1],)], "payload binary")
    order = kaspar.spark.from_registry("payload", registry, subject=subject, mode="PERMISSIVE")
    assert [row["order"] and row["order"]["city"] for row in rows.select(order.alias("order")).collect()] == [
        "Ulm", None, None,
    ]  # fmt: skip
    with pytest.raises(PySparkException, match="A record cannot be decoded: it is not Avro data of the given schema"):
        rows.select(kaspar.spark.from_registry("payload", registry, subject=subject)).collect()
    pairs = spark.sql("SELECT 3L AS id, 'x' AS name")
    other = f"{subject}-2"
    written = pairs.select(kaspar.spark.to_registry(f.struct("id", "name"), registry, other).alias("payload"))
    back = written.select(
        kaspar.spark.from_registry("payload", registry, reader_schema=client_schema(written, client, other))
    )
    assert [row[0].asDict() for row in back.collect()] == [{"id": 3, "name": "x"}]


def client_schema(written: DataFrame, client: RegistryClient, subject: str) -> str:
    """The schema that is registered when the first row is written."""
    written.collect()
    return client.latest(subject).schema.text


def test_several_topics_need_one_schema_and_a_pattern_needs_a_subject(
    spark: SparkSession, broker: KasparProcess, topics: Topics, registry: str, client: RegistryClient
) -> None:
    one, other = topics.create(), topics.create()
    schema_id = registered(client, f"{one}-value", ORDER)
    registered(client, f"{other}-value", REFUND)
    topics.produce(one, [avro(schema_id, ORDER, {"id": 1, "at": 0, "city": None})])
    both = source(spark, broker, registry, f"{one},{other}", **{"value.format": "avro"})
    with pytest.raises(PySparkException, match="differ, and a query has one type of value"):
        both.load()
    assert both.option("value.subject", f"{one}-value").load().count() == 1
    with pytest.raises(PySparkException, match="Subject 'nowhere-value' not found"):
        source(spark, broker, registry, "nowhere", **{"value.format": "avro"}).load()


def test_no_secret_of_the_registry_is_shown_in_a_plan(
    spark: SparkSession, broker: KasparProcess, topics: Topics, registry: str, client: RegistryClient
) -> None:
    topic = topics.create()
    registered(client, f"{topic}-value", ORDER)
    secrets = {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "me:hidden-word"}
    rows = source(spark, broker, registry, topic, **{"value.format": "avro"}, **secrets).load()
    plan = rows._jdf.queryExecution().toString()
    assert "hidden-word" not in plan
    broken = source(spark, broker, "http://me:hidden-word@localhost:x", topic, **{"value.format": "avro"})
    with pytest.raises(PySparkException) as refused:
        broken.load()
    assert "hidden-word" not in str(refused.value)
