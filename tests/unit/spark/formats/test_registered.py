"""Records with the ids of registered schemas, by a registry in this process."""

import io
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import RegistryUnavailable
from kaspar.serialization.mock_registry import drop_mock_registry
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient, SchemaText
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.wire_format import guid_header, id_prefix
from kaspar.spark.formats.data_types import arrow_type_of, data_type_of
from kaspar.spark.formats.declared import Field, FormatOptions
from kaspar.spark.formats.decoder import Decoded
from kaspar.spark.formats.encoding_options import EncodingOptions
from kaspar.spark.formats.registered import planned, registered_decoder
from kaspar.spark.formats.registered_encoder import UnwritableValue, encoder_of, planned_encoding
from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.registry_options import registry_of
from kaspar.spark.security_options import REDACTED

Records = list[bytes | None]


def record(name: str, *fields: tuple[Any, ...]) -> dict[str, Any]:
    """A field is its name, its type, and its default if it has one."""
    listed = [{"name": each[0], "type": each[1], **({"default": each[2]} if len(each) > 2 else {})} for each in fields]
    return {"type": "record", "name": name, "fields": listed}


ORDER = record("Order", ("id", "int"), ("city", "string"))
NEWER = record("Order", ("id", "long"), ("paid", "boolean", False))


class Registry:
    def __init__(self) -> None:
        self.scope = f"{uuid.uuid4()}"
        self.url = f"mock://{self.scope}"
        self.client = RegistryClient(registry_config({"schema.registry.url": self.url}))

    def add(self, subject: str, schema: Any, kind: SchemaType = SchemaType.AVRO) -> RegisteredSchema:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self.client.register(subject, SchemaText(kind, text))

    def record(self, subject: str, schema: Any, value: Any) -> bytes:
        found = self.add(subject, schema).id
        assert found is not None
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
        return id_prefix(found) + out.getvalue()

    def reader(self, topics: tuple[str, ...] = ("orders",), /, field: Field = "value", **options: str) -> FormatOptions:
        given = {f"{field}.{name.replace('_', '.')}": text for name, text in options.items()}
        declared = FormatOptions.of({f"{field}.format": "avro", "schema.registry.url": self.url, **given}, field)
        return planned(declared, field, topics)

    def decoded(self, records: Records, **options: str) -> Decoded:
        return registered_decoder(self.reader(("orders",), field="value", **options)).decode(
            pa.array(records, pa.binary())
        )

    def options(self, **options: str) -> EncodingOptions:
        given = {name.replace("__", "."): text for name, text in options.items()}
        found = EncodingOptions.of({"value.format": "avro", "schema.registry.url": self.url, **given}, "value")
        assert found is not None
        return found


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()
    yield made
    drop_mock_registry(made.scope)


def test_each_record_is_read_by_its_own_schema_as_the_latest(registry: Registry) -> None:
    older = registry.record("orders-value", ORDER, {"id": 1, "city": "Ulm"})
    newer = registry.record("orders-value", NEWER, {"id": 2**40, "paid": True})
    done = registry.decoded([older, None, newer, older])
    assert done.values.to_pylist() == [
        {"id": 1, "paid": False}, None, {"id": 2**40, "paid": True}, {"id": 1, "paid": False},
    ]  # fmt: skip
    assert done.bad == {}


def test_a_version_or_a_subject_or_a_schema_of_its_own_decides_the_columns(registry: Registry) -> None:
    records: Records = [registry.record("orders-value", NEWER, {"id": 5, "paid": True})]
    registry.add("orders-value", record("Order", ("id", "long"), ("paid", "boolean", False), ("more", "int", 7)))
    registry.add("all", record("Order", ("id", "double")))
    own = json.dumps(record("Order", ("paid", "boolean")))
    assert registry.decoded(records).values.to_pylist() == [{"id": 5, "paid": True, "more": 7}]
    assert registry.decoded(records, schema_version="1").values.to_pylist() == [{"id": 5, "paid": True}]
    assert registry.decoded(records, subject="all").values.to_pylist() == [{"id": 5.0}]
    assert registry.decoded(records, readerSchema=own).values.to_pylist() == [{"paid": True}]


def test_what_cannot_be_decoded_has_a_reason_and_spoils_nothing(registry: Registry) -> None:
    good = registry.record("orders-value", ORDER, {"id": 1, "city": "Ulm"})
    refund = registry.record("refunds", record("Refund", ("id", "int")), {"id": 1})
    proto = registry.add("proto", 'syntax = "proto3"; message M {}', SchemaType.PROTOBUF).id
    assert proto is not None
    done = registry.decoded([b"", b"\0\0\0", b"{}", id_prefix(77), refund, id_prefix(proto), good[:-1], good])
    assert done.values.to_pylist() == [None] * 7 + [{"id": 1, "city": "Ulm"}]
    assert list(done.bad.values()) == [
        "the value is empty: no schema id is in front of it",
        "the value has 3 bytes: a magic byte and a schema id are 5",
        "unknown magic byte 123 in the value: it was not written by a serializer of a schema registry",
        "the registry does not know its schema 77 (schema 77 not found)",
        f"its schema {int.from_bytes(refund[1:5], 'big')} cannot be read as the reader's schema: the record Refund "
        "cannot be read as the record Order",
        f"its schema {proto} is of the type PROTOBUF, and not AVRO",
        "it is not Avro data of the given schema (it ends too early)",
    ]


def test_a_registry_that_does_not_respond_is_no_matter_of_the_records(registry: Registry) -> None:
    reader = FormatOptions.of(
        {
            "value.format": "avro", "value.readerSchema": json.dumps(ORDER),
            "schema.registry.url": "http://127.0.0.1:1", "max.retries": "0",
        },
        "value",
    )  # fmt: skip
    with pytest.raises(RegistryUnavailable, match="cannot be reached"):
        registered_decoder(reader).decode(pa.array([id_prefix(1)], pa.binary()))


def test_a_guid_may_stand_in_front(registry: Registry) -> None:
    framed = registry.record("orders-value", ORDER, {"id": 1, "city": "Ulm"})
    guid = registry.add("orders-value", ORDER).guid
    assert guid is not None
    done = registry.decoded([guid_header(guid) + framed[5:], framed])
    assert (done.values.to_pylist(), done.bad) == ([{"id": 1, "city": "Ulm"}] * 2, {})


def test_a_slice_of_a_column_is_decoded_as_the_column_itself(registry: Registry) -> None:
    records = [registry.record("orders-value", ORDER, {"id": number, "city": "x" * number}) for number in range(6)]
    column = pa.array([b"junk", *records, None], pa.binary()).slice(2, 5)
    done = registered_decoder(registry.reader()).decode(column)
    assert [value and value["id"] for value in done.values.to_pylist()] == [1, 2, 3, 4, 5]


def test_bytes_are_written_without_an_encoding_of_their_own(registry: Registry) -> None:
    schema_id = registry.add("orders-value", '"bytes"').id
    assert schema_id is not None
    assert registry.decoded([id_prefix(schema_id) + b"\xff\0"]).values.to_pylist() == [b"\xff\0"]


def test_topics_must_agree_on_their_schema_or_name_one(registry: Registry) -> None:
    registry.add("a-value", ORDER)
    registry.add("b-value", ORDER)
    registry.add("c-value", NEWER)
    assert registry.reader(("a", "b")).reader_schema is not None
    with pytest.raises(InvalidOption, match=r"a-value and c-value differ.*option 'value\.subject'"):
        registry.reader(("a", "b", "c"))
    assert registry.reader(("a", "c"), subject="a-value").reader_schema is not None
    with pytest.raises(InvalidOption, match=r"'value\.subject' must be given"):
        registry.reader(())
    with pytest.raises(InvalidOption, match=r"Subject 'd-key' not found\. Option 'key\.subject' names"):
        registry.reader(("d",), field="key")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"value.readerSchema": '"int"', "value.subject": "x"}, "give one or the other"),
        ({"value.schema.version": "none"}, "must be an integer"),
        ({"value.message": "shop.Order"}, "has no effect while 'value.format' is avro by the schema registry"),
        ({"schema.registry.url": "ftp://me:word@host"}, "http://HOST:PORT"),
        ({"schema.registry.url": "http://me:word@host:port"}, "it is no URL"),
    ],
)
def test_options_that_make_no_sense_are_refused_without_secrets(options: dict[str, str], sentence: str) -> None:
    given = {"value.format": "avro", "schema.registry.url": "mock://none", **options}
    with pytest.raises(InvalidOption, match=sentence) as refused:
        FormatOptions.of(given, "value")
    assert "word" not in str(refused.value)


def test_without_a_registry_a_schema_must_be_given() -> None:
    with pytest.raises(InvalidOption, match=r"'value\.schema' must be given, or 'schema\.registry\.url'"):
        FormatOptions.of({"value.format": "avro"}, "value")
    declared = FormatOptions.of(
        {"value.format": "avro", "value.schema": '"int"', "schema.registry.url": "mock://none"}, "value"
    )
    assert declared.registry is None, "a field with a schema of its own has no ids"


def test_names_of_properties_may_be_prefixed_and_secrets_are_kept() -> None:
    given = {
        "Schema.Registry.URL": "https://host",
        "schema.registry.basic.auth.credentials.source": "USER_INFO",
        "basic.auth.user.info": "me:word",
    }
    config = registry_of(given)
    assert config is not None
    assert config.credentials == (("me", "word"),)
    assert "word" not in repr(config)
    for name in ("basic.auth.user.info", "bearer.auth.token", "bearer.auth.client.secret", "schema.registry.url"):
        assert re.search(REDACTED, name), name


# --- JSON and Protobuf ------------------------------------------------------------------------------------------------


def test_json_has_the_columns_of_its_schema(registry: Registry) -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "price": {"oneOf": [{"type": "null"}, {"type": "number"}]},
            "tags": {"type": "array", "items": {"$ref": "#/definitions/tag"}},
            "more": {"type": "object", "additionalProperties": {"type": ["null", "boolean"]}},
        },
        "definitions": {"tag": {"type": "object", "properties": {"name": {"enum": ["a", "b"]}}}},
    }
    schema_id = registry.add("orders-value", schema, SchemaType.JSON).id
    assert schema_id is not None
    text = b'{"id": 1, "price": 2.5, "tags": [{"name": "a"}], "more": {"x": true}}'
    done = registry.decoded([id_prefix(schema_id) + text, None, b"{}", id_prefix(99) + b"{}"], format="json")
    assert done.values.type == pa.struct(
        [
            ("id", pa.int64()),
            ("price", pa.float64()),
            ("tags", pa.list_(pa.field("element", pa.struct([("name", pa.string())])))),
            ("more", pa.map_(pa.string(), pa.bool_())),
        ]
    )
    assert done.values.to_pylist()[0] == {"id": 1, "price": 2.5, "tags": [{"name": "a"}], "more": [("x", True)]}
    assert sorted(done.bad) == [2, 3]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "object"},
        {"type": "object", "properties": {"x": {}}},
        {"type": "object", "properties": {"x": {"type": ["string", "integer"]}}},
        {"type": "object", "properties": {"x": {"$ref": "#"}}},
    ],
)
def test_a_json_schema_that_leaves_the_columns_open_asks_for_them(registry: Registry, schema: Any) -> None:
    schema_id = registry.add("orders-value", schema, SchemaType.JSON).id
    assert schema_id is not None
    with pytest.raises(InvalidOption, match=r"leaves the type of .* open.*Option 'value\.readerSchema'"):
        registry.reader(format="json")
    done = registry.decoded([id_prefix(schema_id) + b'{"x": "y"}'], format="json", readerSchema="x STRING")
    assert done.values.to_pylist() == [{"x": "y"}]


# --- Writing ----------------------------------------------------------------------------------------------------------


def encoded(registry: Registry, ddl: str, values: list[Any], **options: str) -> list[bytes | None]:
    data_type = data_type_of(ddl)
    planned_one = planned_encoding(registry.options(**options), data_type, "orders")
    done: list[bytes | None] = encoder_of(planned_one).encode(pa.array(values, arrow_type_of(data_type))).to_pylist()
    return done


def test_the_type_of_a_column_is_registered_and_read_back(registry: Registry) -> None:
    ddl = "id INT, name STRING, inner STRUCT<x: DOUBLE>, tags ARRAY<STRING>, m MAP<STRING, BIGINT>, d DECIMAL(5,2)"
    rows = [{"id": 1, "name": None, "inner": {"x": 0.5}, "tags": ["a", None], "m": [("k", 3)], "d": None}, None]
    written = encoded(registry, ddl, rows)
    assert written[1] is None
    assert registry.client.latest("orders-value").schema.type is SchemaType.AVRO
    assert registry.decoded(written).values.to_pylist() == rows


def test_a_schema_that_must_be_registered_already_is_not_registered(registry: Registry) -> None:
    with pytest.raises(InvalidOption, match=r"cannot be used: Subject 'orders-value' not found"):
        encoded(registry, "id INT", [], auto__register__schemas="false")
    encoded(registry, "id INT", [])
    assert encoded(registry, "id INT", [{"id": 1}], auto__register__schemas="false")


def test_a_given_schema_and_the_strategies_of_subjects(registry: Registry) -> None:
    rows = [{"id": 1, "city": "Ulm"}]
    for strategy, subject in (
        ("TopicNameStrategy", "orders-value"),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "Order"),
        ("TopicRecordNameStrategy", "orders-Order"),
    ):
        options = {"value.schema": json.dumps(ORDER), "value.subject.name.strategy": strategy}
        encoded(registry, "id INT, city STRING", rows, **options)
        assert registry.client.latest(subject).subject == subject
    written = encoded(registry, "id INT, city STRING", rows, value__subject="Order", use__latest__version="true")
    assert registry.decoded(written, subject="Order").values.to_pylist() == rows


def test_rows_with_topics_of_their_own_need_a_subject(registry: Registry) -> None:
    data_type = StructType([StructField("id", LongType())])
    with pytest.raises(InvalidOption, match=r"'value\.subject' must be given: the rows name their topics themselves"):
        planned_encoding(registry.options(), data_type, None)
    strategy = {"value.subject.name.strategy": "RecordNameStrategy"}
    assert planned_encoding(registry.options(**strategy), data_type, None).schema_id == 1


def test_columns_and_schema_must_fit_before_anything_is_written(registry: Registry) -> None:
    registry.add("orders-value", ORDER)
    latest = registry.options(use__latest__version="true")
    for data_type, sentence in (
        (data_type_of("id INT"), r"needs a column value\.city"),
        (data_type_of("id INT, city STRING, more INT"), r"has no field for the column value\.more"),
        (StringType(), "is string, and its schema is record"),
    ):
        with pytest.raises(InvalidOption, match=sentence):
            planned_encoding(latest, data_type, "orders")
    with pytest.raises(UnwritableValue, match="A value cannot be encoded by schema 1"):
        encoded(registry, "id INT, city STRING", [{"id": None, "city": "Ulm"}], use__latest__version="true")
