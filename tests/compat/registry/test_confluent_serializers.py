"""What confluent-kafka-python's serializers write is read by ours, and the other way round, for all three formats."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from kaspar.schemas.schema import SchemaType
from kaspar.serialization.records import RecordReader, record_writer
from kaspar.serialization.registry_client import RegistryClient, SchemaText
from kaspar.serialization.registry_config import registry_config
from kaspar.testing import Broker

AVRO = json.dumps(
    {
        "type": "record",
        "name": "shop.Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"]},
            {"name": "raw", "type": "bytes"},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
            {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": "double"}}},
        ],
    }
)
JSON_SCHEMA = json.dumps(
    {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
)
PROTOBUF = (
    'syntax = "proto3"; package shop; message First { } message Order { message Line { int64 count = 1; } '
    "string name = 1; repeated Line lines = 2; }"
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Broker(registry=True) as broker:
        yield broker.registry_url


@pytest.fixture
def ours(url: str) -> Iterator[RegistryClient]:
    client = RegistryClient(registry_config({"schema.registry.url": url}))
    yield client
    client.close()


@pytest.fixture
def theirs(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as client:
        yield client


def values_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, [])


def test_avro(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    value = {"id": 1, "note": {"string": "x"}, "raw": "\u00ff", "price": "\u0004\u00d2", "lines": [{"a": 0.5}]}
    writer = record_writer(ours.register("avro-value", SchemaText(SchemaType.AVRO, AVRO)))
    read: Any = AvroDeserializer(theirs)(writer.to_bytes(value), values_of("avro"))
    assert (read["note"], read["raw"], str(read["price"])) == ("x", b"\xff", "12.34")
    written = AvroSerializer(theirs, AVRO)(read, values_of("avro"))
    assert written == writer.to_bytes(value)
    assert RecordReader(ours).decode(written).value == value


def test_json_schema(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    writer = record_writer(ours.register("json-value", SchemaText(SchemaType.JSON, JSON_SCHEMA)))
    assert JSONDeserializer(JSON_SCHEMA, schema_registry_client=theirs)(
        writer.to_bytes({"id": 1}), values_of("json")
    ) == {"id": 1}
    written = JSONSerializer(JSON_SCHEMA, theirs)({"id": 2}, values_of("json"))
    assert RecordReader(ours).decode(written).value == {"id": 2}


def _message_class(name: str) -> Any:
    """A class such as protoc generates."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.message_type.add(name="First")
    order = file.message_type.add(name="Order")
    line = order.nested_type.add(name="Line")
    line.field.add(name="count", number=1, type=3, label=1)
    order.field.add(name="name", number=1, type=9, label=1)
    order.field.add(name="lines", number=2, type=11, label=3, type_name=".shop.Order.Line")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shop.First", {}),
        ("shop.Order", {"name": "x", "lines": [{"count": "1"}]}),
        ("shop.Order.Line", {"count": "7"}),
    ],
)
def test_protobuf(ours: RegistryClient, theirs: SchemaRegistryClient, name: str, value: dict[str, Any]) -> None:
    message_class = _message_class(name)
    serializer = ProtobufSerializer(message_class, theirs)
    deserializer: Any = ProtobufDeserializer(message_class, schema_registry_client=theirs)
    writer = record_writer(ours.register("protobuf-value", SchemaText(SchemaType.PROTOBUF, PROTOBUF)), name)
    message = deserializer(writer.to_bytes(value), values_of("protobuf"))
    written = serializer(message, values_of("protobuf"))
    assert written[5:] == writer.to_bytes(value)[5:]
    assert RecordReader(ours).decode(written).value == value


def test_guid_in_a_header(ours: RegistryClient, theirs: SchemaRegistryClient) -> None:
    schema = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
    registered = ours.register("guids-value", SchemaText(SchemaType.AVRO, schema))
    serializer = AvroSerializer(theirs, schema, conf={"schema.id.serializer": header_schema_id_serializer})
    context = values_of("guids")
    written = serializer({"a": 1}, context)
    assert written == b"\x02"
    headers: Any = context.headers
    assert RecordReader(ours).decode(written, headers).value == {"a": 1}
    data, header = record_writer(registered).to_bytes_and_header({"a": 1})
    assert (data, [("__value_schema_id", header)]) == (written, headers)
