"""What the serializers of one registry client write, those of every other read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.compat.registry.clients.api import Call, Definition, RegistryClient, Written
from tests.compat.registry.clients.registry import able
from tests.compat.registry.passing import Pass
from tests.compat.registry.protoc import descriptor_set

Clients = Callable[[str], RegistryClient]

AVRO = json.dumps(
    {
        "type": "record",
        "name": "shop.Order",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "name", "type": "string"},
            {"name": "price", "type": "double"},
            {"name": "open", "type": "boolean"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
)
JSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string"},
            "price": {"type": "number"},
            "open": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id"],
        "additionalProperties": False,
    }
)
PROTO = """syntax = "proto3";
package shop;
message Unused { string x = 1; }
message Order {
  message Line { string article = 1; }
  int32 id = 1;
  string name = 2;
  double price = 3;
  bool open = 4;
  repeated string tags = 5;
}
"""
VALUE = {"id": 7, "name": "Jämtland", "price": 12.5, "open": True, "tags": ["a", "b"]}
KINDS = {"AVRO": able(), "JSON": able(), "PROTOBUF": able(Call.MESSAGE_INDEXES)}
PAIRS = [(kind, writer, reader) for kind, names in KINDS.items() for writer in names for reader in names]
HEADER_PAIRS = [(writer, reader) for writer in able(Call.HEADER) for reader in able(Call.HEADER)]


@pytest.fixture(scope="session")
def order_proto(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return descriptor_set(tmp_path_factory.mktemp("proto"), {"order.proto": PROTO}, "order.proto")


@pytest.fixture
def definition(kind: str, order_proto: bytes) -> Definition:
    match kind:
        case "AVRO":
            return Definition(kind, AVRO)
        case "JSON":
            return Definition(kind, JSON)
        case _:
            return Definition(kind, PROTO, message="shop.Order", descriptors=order_proto)


@pytest.fixture(scope="session")
def written(clients: Clients, through_kafka: Pass) -> Callable[[str, Definition], tuple[str, Written]]:
    """The topic and the record of a client, written once for all its readers."""
    done: dict[tuple[str, str], tuple[str, Written]] = {}

    def write(writer: str, definition: Definition) -> tuple[str, Written]:
        key = (writer, definition.type)
        if key not in done:
            topic = f"{definition.type}-by-{writer}"
            record = clients(writer).serialize(topic, definition, VALUE)
            data, _ = through_kafka(record.data)
            assert data is not None
            done[key] = topic, Written(data)
        return done[key]

    return write


@pytest.mark.parametrize(("kind", "writer", "reader"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_what_one_client_writes_another_reads(
    url: str,
    clients: Clients,
    written: Callable[[str, Definition], tuple[str, Written]],
    definition: Definition,
    writer: str,
    reader: str,
) -> None:
    topic, record = written(writer, definition)
    assert clients(reader).deserialize(topic, definition, record) == VALUE


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_all_clients_write_the_same_id(
    url: str, clients: Clients, topic: str, definition: Definition, kind: str
) -> None:
    """Also those that send descriptors for a .proto file, where others send its text."""
    ids = {name: clients(name).serialize(topic, definition, VALUE).data[:5] for name in KINDS[kind]}
    assert len(set(ids.values())) == 1, ids


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
@pytest.mark.parametrize(("writer", "reader"), HEADER_PAIRS, ids=["-".join(pair) for pair in HEADER_PAIRS])
def test_the_schema_can_be_named_in_a_header(
    url: str,
    clients: Clients,
    topic: str,
    through_kafka: Pass,
    definition: Definition,
    writer: str,
    reader: str,
) -> None:
    record = clients(writer).serialize(topic, definition, VALUE, header=True)
    data, headers = through_kafka(record.data, record.headers)
    assert data is not None
    assert [name for name, _ in headers] == ["__value_schema_id"]
    assert clients(reader).deserialize(topic, definition, Written(data, headers)) == VALUE


HELD_URI = "http://example.com/held.json"
HELD = {
    "AVRO": ("shop.Held", '{"type": "record", "name": "shop.Held", "fields": [{"name": "id", "type": "int"}]}'),
    "JSON": (HELD_URI, f'{{"$id": "{HELD_URI}", "type": "object", "properties": {{"id": {{"type": "integer"}}}}}}'),
    "PROTOBUF": ("common/held.proto", 'syntax = "proto3"; package common; message Held { int32 id = 1; }'),
}
HOLDER = {
    "AVRO": '{"type": "record", "name": "shop.Holder", "fields": [{"name": "held", "type": "shop.Held"}]}',
    "JSON": f'{{"type": "object", "properties": {{"held": {{"$ref": "{HELD_URI}"}}}}}}',
    "PROTOBUF": 'syntax = "proto3"; import "common/held.proto"; message Holder { common.Held held = 1; }',
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in names])
def test_readers_fetch_what_a_schema_refers_to(
    url: str, clients: Clients, topic: str, through_kafka: Pass, tmp_path: Path, kind: str, name: str
) -> None:
    client, (referred, held) = clients(name), HELD[kind]
    client.register(
        referred, Definition(kind, held)
    )  # the subject under which clients register imports of .proto files
    references = [{"name": referred, "subject": referred, "version": 1}]
    if kind == "PROTOBUF":
        compiled = descriptor_set(tmp_path, {referred: held, "holder.proto": HOLDER[kind]}, "holder.proto")
        holder = Definition(kind, HOLDER[kind], references, message="Holder", descriptors=compiled)
    else:
        holder = Definition(kind, HOLDER[kind], references)
    value: dict[str, Any] = {"held": {"id": 3}}
    data, _ = through_kafka(client.serialize(topic, holder, value).data)
    assert data is not None
    assert client.deserialize(topic, holder, Written(data)) == value
