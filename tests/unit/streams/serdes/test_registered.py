"""Serdes by the schemas of a registry, which is one in this process."""

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.timestamp_pb2 import Timestamp

from kaspar.base.errors import InvalidSetting
from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import RegistryUnavailable
from kaspar.serialization.mock_registry import drop_mock_registry
from kaspar.serialization.registry_client import SchemaText, shared_client
from kaspar.serialization.registry_config import registry_config
from kaspar.streams import StreamsBuilder, TopologyTestDriver, serdes
from kaspar.streams.serdes import Serde, SerializationError

TRADE = {"type": "record", "name": "shop.Trade", "fields": [{"name": "size", "type": "long"}]}
WITH_NOTE = {
    **TRADE,
    "fields": [*TRADE["fields"], {"name": "note", "type": "string", "default": "-"}],
}
JSON_SCHEMA = {"title": "Trade", "type": "object", "properties": {"size": {"type": "integer"}}}


@pytest.fixture
def url() -> Iterator[str]:
    yield "mock://serdes"
    drop_mock_registry("serdes")


def subjects(url: str) -> list[str]:
    return shared_client(registry_config({"schema.registry.url": url})).subjects()


@pytest.mark.parametrize(("is_key", "subject"), [(False, "t-value"), (True, "t-key")])
def test_id_of_the_schema_is_in_front(url: str, is_key: bool, subject: str) -> None:
    serde = serdes.avro(TRADE, registry=url, is_key=is_key)
    assert serde.serialize("t", {"size": 1}) == b"\0\0\0\0\1\x02"
    assert serde.deserialize("t", b"\0\0\0\0\1\x02") == {"size": 1}
    assert subjects(url) == [subject]


def test_each_topic_has_its_subject_and_null_has_none(url: str) -> None:
    serde = serdes.avro(TRADE, registry=url)
    assert serde.serialize("nothing", None) is None
    assert serde.deserialize("nothing", None) is None
    for topic in ("a", "b"):
        serde.serialize(topic, {"size": 1})
    assert subjects(url) == ["a-value", "b-value"]


def test_values_are_read_as_the_schema_of_the_serde(url: str) -> None:
    old, new = serdes.avro(TRADE, registry=url), serdes.avro(WITH_NOTE, registry=url)
    written = old.serialize("t", {"size": 1})
    assert new.deserialize("t", written) == {"size": 1, "note": "-"}
    assert old.deserialize("t", new.serialize("t", {"size": 2, "note": "x"})) == {"size": 2}


def test_values_are_read_as_they_were_written(url: str) -> None:
    reads = serdes.avro(None, registry=url)
    for schema, value in ((TRADE, {"size": 1}), (WITH_NOTE, {"size": 2, "note": "x"}), ("bytes", b"\0x")):
        text = schema if isinstance(schema, dict) else json.dumps(schema)
        assert reads.deserialize("t", serdes.avro(text, registry=url).serialize("t", value)) == value
    with pytest.raises(SerializationError, match="it has no schema to write with"):
        reads.serialize("t", {"size": 1})


def test_json_is_checked_when_it_is_written(url: str) -> None:
    serde = serdes.json_schema(JSON_SCHEMA, registry=url)
    assert serde.serialize("t", {"size": 1}) == b'\0\0\0\0\1{"size":1}'
    assert serde.deserialize("t", b'\0\0\0\0\1{"size":"x"}') == {"size": "x"}
    with pytest.raises(SerializationError, match=r"json_schema serde cannot write a dict to topic t: .*#/size"):
        serde.serialize("t", {"size": "x"})


def _order_class() -> Any:
    """A class such as protoc generates: the second message of a file that imports another."""
    pool = descriptor_pool.DescriptorPool()
    line = descriptor_pb2.FileDescriptorProto(name="shop/line.proto", package="shop", syntax="proto3")
    line.message_type.add(name="Line").field.add(name="count", number=1, type=3, label=1)
    order = descriptor_pb2.FileDescriptorProto(
        name="shop/order.proto", package="shop", syntax="proto3", dependency=["shop/line.proto"]
    )
    order.message_type.add(name="Other")
    order.message_type.add(name="Order").field.add(name="line", number=1, type=11, label=1, type_name=".shop.Line")
    pool.Add(line)
    pool.Add(order)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf_has_message_indexes_and_registers_imports(url: str) -> None:
    order_class = _order_class()
    message = order_class(line={"count": 1})
    serde: Serde[Any] = serdes.protobuf(order_class, registry=url)
    written = serde.serialize("t", message)
    assert written == b"\0\0\0\0\2" + b"\x02\x02" + b"\x0a\x02\x08\x01"
    assert serde.deserialize("t", written) == message
    assert subjects(url) == ["shop/line.proto", "t-value"]


def test_subject_by_the_name_of_the_record(url: str) -> None:
    strategy = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    properties = {"schema.registry.url": url, "value.subject.name.strategy": strategy}
    serdes.avro(TRADE, registry=properties).serialize("t", {"size": 1})
    serdes.json_schema(JSON_SCHEMA, registry=properties).serialize("t", {"size": 1})
    order_class = _order_class()
    serdes.protobuf(order_class, registry=properties).serialize("t", order_class())
    assert set(subjects(url)) == {"shop.Trade", "Trade", "shop.Order", "shop/line.proto"}


def test_schema_that_may_not_be_registered(url: str) -> None:
    properties = {"schema.registry.url": url, "auto.register.schemas": "false"}
    serde = serdes.avro(TRADE, registry=properties)
    with pytest.raises(SerializationError, match=r"no id for its schema \(Subject 't-value' not found\)"):
        serde.serialize("t", {"size": 1})
    registry = shared_client(registry_config({"schema.registry.url": url}))
    registry.register("t-value", SchemaText(SchemaType.AVRO, json.dumps(TRADE)))
    assert serde.serialize("t", {"size": 1}) == b"\0\0\0\0\1\x02"


def test_latest_version_is_used_if_it_is_asked_for(url: str) -> None:
    registry = shared_client(registry_config({"schema.registry.url": url}))
    registry.register("t-value", SchemaText(SchemaType.AVRO, json.dumps(TRADE)))
    properties = {"schema.registry.url": url, "auto.register.schemas": "false", "use.latest.version": "true"}
    written = serdes.avro({**TRADE, "doc": "newer"}, registry=properties).serialize("t", {"size": 1})
    assert written == b"\0\0\0\0\1\x02"


def use_latest(url: str, kind: SchemaType, text: str) -> dict[str, str]:
    """Settings for a subject whose latest schema is `text`."""
    registry = shared_client(registry_config({"schema.registry.url": url}))
    registry.register("t-value", SchemaText(kind, text))
    return {"schema.registry.url": url, "auto.register.schemas": "false", "use.latest.version": "true"}


def test_latest_avro_schema_is_the_one_that_is_written(url: str) -> None:
    note = {"name": "note", "type": "string", "default": "-"}
    latest = {**TRADE, "fields": [note, *TRADE["fields"]]}
    written = serdes.avro(TRADE, registry=use_latest(url, SchemaType.AVRO, json.dumps(latest))).serialize(
        "t", {"size": 1}
    )
    assert written == b"\0\0\0\0\1\x02-\x02"
    assert serdes.avro(None, registry=url).deserialize("t", written) == {"note": "-", "size": 1}


def test_value_that_is_not_of_the_latest_schema_is_refused(url: str) -> None:
    latest = {**TRADE, "fields": [*TRADE["fields"], {"name": "price", "type": "long"}]}
    serde = serdes.avro(TRADE, registry=use_latest(url, SchemaType.AVRO, json.dumps(latest)))
    with pytest.raises(SerializationError, match="it does not match the schema"):
        serde.serialize("t", {"size": 1})


def test_latest_schema_of_another_kind_is_refused(url: str) -> None:
    serde = serdes.avro(TRADE, registry=use_latest(url, SchemaType.JSON, json.dumps(JSON_SCHEMA)))
    with pytest.raises(SerializationError, match="the latest schema of the subject is of JSON, not AVRO"):
        serde.serialize("t", {"size": 1})


def test_json_is_checked_by_the_latest_schema(url: str) -> None:
    latest = {**JSON_SCHEMA, "required": ["price"]}
    serde = serdes.json_schema(JSON_SCHEMA, registry=use_latest(url, SchemaType.JSON, json.dumps(latest)))
    assert serde.serialize("t", {"price": 1}) == b'\0\0\0\0\1{"price":1}'
    with pytest.raises(SerializationError, match="price"):
        serde.serialize("t", {"size": 1})


def test_protobuf_message_is_the_one_of_the_latest_schema(url: str) -> None:
    latest = 'syntax = "proto3"; package google.protobuf; message Other {} message More {} message Timestamp {}'
    serde: Serde[Any] = serdes.protobuf(Timestamp, registry=use_latest(url, SchemaType.PROTOBUF, latest))
    assert serde.serialize("t", Timestamp(seconds=1)) == b"\0\0\0\0\1" + b"\x02\x04" + b"\x08\x01"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"plain", "Unknown magic byte"),
        (b"\0\0\0\0\7\x02", "Schema 7 not found"),
        (b"\0\0\0\0\1", "not Avro data of schema 1"),
        (b"\0\0\0\0\2", "schema 2 is of JSON, not AVRO"),
    ],
)
def test_bytes_that_cannot_be_read(url: str, data: bytes, reason: str) -> None:
    serde = serdes.avro(TRADE, registry=url)
    serde.serialize("t", {"size": 1})
    serdes.json_schema(JSON_SCHEMA, registry=url).serialize("j", {})
    with pytest.raises(SerializationError, match=reason):
        serde.deserialize("t", data)


def test_endless_nesting_is_refused(url: str) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}
    endless = b"\x02" * 100_000 + b"\0"
    registered = serdes.avro(schema, registry=url)
    registered.serialize("t", {"r": None})
    for serde, data in ((registered, b"\0\0\0\0\1" + endless), (serdes.avro(schema), endless)):
        with pytest.raises(SerializationError, match="recursion"):
            serde.deserialize("t", data)


def test_registry_that_is_away_is_no_bad_record() -> None:
    properties = {"schema.registry.url": "http://127.0.0.1:1", "max.retries": "0"}
    with pytest.raises(RegistryUnavailable):
        serdes.avro(TRADE, registry=properties).serialize("t", {"size": 1})
    with pytest.raises(RegistryUnavailable):
        serdes.avro(TRADE, registry=properties).deserialize("t", b"\0\0\0\0\1\x02")


def test_serdes_travel(url: str) -> None:
    values: list[tuple[Serde[Any], Any]] = [
        (serdes.avro(TRADE, registry=url), {"size": 1}),
        (serdes.json_schema(JSON_SCHEMA, registry={"schema.registry.url": url}), {"size": 1}),
        (serdes.protobuf(Timestamp, registry=url, is_key=True), Timestamp(seconds=1)),
    ]
    for serde, value in values:
        arrived = pickle.loads(pickle.dumps(serde))
        assert arrived.deserialize("t", arrived.serialize("t", value)) == value
    assert "t-key" in subjects(url)


def test_wrong_settings_are_refused_at_once() -> None:
    with pytest.raises(InvalidSetting, match="schema registry url"):
        serdes.avro(TRADE, registry="")
    with pytest.raises(SerializationError, match="The Avro schema is invalid"):
        serdes.avro('{"type": "record", "name": "R"}', registry="mock://x")
    with pytest.raises(SerializationError, match="The JSON Schema is invalid"):
        serdes.json_schema("nonsense", registry="mock://x")
    with pytest.raises(SerializationError, match="needs a schema"):
        serdes.avro(None)


def test_program_under_the_test_driver(url: str) -> None:
    builder = StreamsBuilder()
    trades = builder.stream("trades", key_serde=serdes.text(), value_serde=serdes.avro(TRADE, registry=url))
    trades.map_values(lambda trade: {"size": trade["size"] * 2}).to(
        "doubled", value_serde=serdes.json_schema(JSON_SCHEMA, registry=url)
    )
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.create_input_topic("trades", serdes.text(), serdes.avro(TRADE, registry=url))
        sink = driver.create_output_topic("doubled", serdes.text(), serdes.json_schema(JSON_SCHEMA, registry=url))
        source.pipe_input("k", {"size": 4})
        assert sink.read_key_value() == ("k", {"size": 8})
    assert subjects(url) == ["doubled-value", "trades-value"]
