"""Rust's schema_registry_converter, both ways beside confluent-kafka-python. Its program takes minutes to build."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compat.drivers.api import ClientError
from tests.compat.registry.clients.api import Definition, RegistryClient, Written
from tests.compat.registry.clients.foreign import RustConverter
from tests.compat.registry.clients.python import ConfluentPython
from tests.compat.registry.passing import Pass
from tests.compat.registry.protoc import descriptor_set

pytestmark = pytest.mark.long

Clients = Callable[[str], RegistryClient]

VALUE = {"id": 7, "name": "Jämtland", "tags": ["a", "b"]}
PROTO = """syntax = "proto3";
package shop;
message Unused { string x = 1; }
message Order { int32 id = 1; string name = 2; repeated string tags = 3; }
"""
NEWER_PROTO = PROTO.replace("tags = 3;", "tags = 3; string note = 4;")
FIELDS = [
    {"name": "id", "type": "int"},
    {"name": "name", "type": "string"},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
]
PROPERTIES = {"id": {"type": "integer"}, "name": {"type": "string"}, "tags": {"type": "array"}}


@pytest.fixture(params=["AVRO", "JSON", "PROTOBUF"])
def definition(request: pytest.FixtureRequest, tmp_path: Path) -> Definition:
    match request.param:
        case "AVRO":
            return Definition("AVRO", json.dumps({"type": "record", "name": "shop.Order", "fields": FIELDS}))
        case "JSON":
            closed = {"type": "object", "properties": PROPERTIES, "additionalProperties": False}
            return Definition("JSON", json.dumps(closed))
        case _:
            compiled = descriptor_set(tmp_path, {"order.proto": PROTO}, "order.proto")
            return Definition("PROTOBUF", PROTO, message="shop.Order", descriptors=compiled)


@pytest.fixture(params=[RustConverter.name])
def rust(request: pytest.FixtureRequest, url: str, clients: Clients) -> RegistryClient:
    return clients(request.param)


@pytest.fixture
def python(url: str, clients: Clients) -> RegistryClient:
    return clients(ConfluentPython.name)


@pytest.mark.parametrize("header", [False, True])
def test_records_pass_both_ways(
    rust: RegistryClient,
    python: RegistryClient,
    topic: str,
    through_kafka: Pass,
    definition: Definition,
    header: bool,
) -> None:
    for writer, reader in ((rust, python), (python, rust)):
        written = writer.serialize(topic, definition, VALUE, header=header)
        data, headers = through_kafka(written.data, written.headers)
        assert data is not None
        assert reader.deserialize(topic, definition, Written(data, headers)) == VALUE
    assert python.versions(f"{topic}-value") == [1]


def test_a_schema_evolves_and_an_incompatible_one_is_refused(rust: RegistryClient, subject: str) -> None:
    first = rust.register(subject, Definition("PROTOBUF", PROTO))
    assert rust.compatible(subject, Definition("PROTOBUF", NEWER_PROTO))
    assert rust.register(subject, Definition("PROTOBUF", NEWER_PROTO)) != first
    changed = Definition("PROTOBUF", PROTO.replace("string name", "int64 name"))
    assert not rust.compatible(subject, changed)
    with pytest.raises(ClientError, match="incompatible with an earlier schema"):
        rust.register(subject, changed)
    assert rust.versions(subject) == [1, 2]
    assert subject in rust.subjects()
    assert rust.schema(subject, first)["type"] == "PROTOBUF"


def test_a_reader_fetches_what_a_schema_refers_to(rust: RegistryClient, python: RegistryClient, topic: str) -> None:
    held = {"type": "record", "name": "shop.Held", "fields": [{"name": "id", "type": "int"}]}
    python.register(f"{topic}-held", Definition("AVRO", json.dumps(held)))
    references = [{"name": "shop.Held", "subject": f"{topic}-held", "version": 1}]
    holder = {"type": "record", "name": "shop.Holder", "fields": [{"name": "held", "type": "shop.Held"}]}
    definition = Definition("AVRO", json.dumps(holder), references)
    written = python.serialize(topic, definition, {"held": {"id": 3}})
    assert rust.deserialize(topic, definition, written) == {"held": {"id": 3}}
