"""Registry clients of several languages, unchanged: each registers, fetches, evolves and is refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.compat.drivers.api import ClientError
from tests.compat.registry.clients.api import Call, Definition, RegistryClient
from tests.compat.registry.clients.registry import able

Clients = Callable[[str], RegistryClient]


def _record(*fields: dict[str, Any], name: str = "shop.Order") -> str:
    return json.dumps({"type": "record", "name": name, "fields": fields})


ID = {"name": "id", "type": "int"}
FIRST = {
    "AVRO": _record(ID),
    "JSON": '{"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": false}',
    "PROTOBUF": 'syntax = "proto3"; package shop; message Order { int32 id = 1; }',
}
SECOND = {
    "AVRO": _record(ID, {"name": "note", "type": ["null", "string"], "default": None}),
    "JSON": json.dumps(
        {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
            "additionalProperties": False,
        }
    ),
    "PROTOBUF": 'syntax = "proto3"; package shop; message Order { int32 id = 1; string note = 2; }',
}
INCOMPATIBLE = {
    "AVRO": _record({"name": "id", "type": "string"}),
    "JSON": '{"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": false}',
    "PROTOBUF": 'syntax = "proto3"; package shop; message Order { string id = 1; }',
}
INVALID = {
    "AVRO": '{"type": "record", "name": "Order", "fields": [{"name": "x", "type": "nonsense"}]}',
    "JSON": '{"type": "nonsense"}',
    "PROTOBUF": 'syntax = "proto3"; message Order { Unknown x = 1; }',
}
# KafkaJS's client hides the registry's codes.
INCOMPATIBLE_CODES = {"kafkajs": "ResponseError 409"}
NOT_FOUND_CODES = {"kafkajs": "ConfluentSchemaRegistryError"}
FORMATS = ["AVRO", "JSON", "PROTOBUF"]


@pytest.fixture
def client(request: pytest.FixtureRequest, url: str, clients: Clients) -> RegistryClient:
    return clients(request.param)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ClientError) as caught:
        call()
    return caught.value.code


@pytest.mark.parametrize("client", able(), indirect=True)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_schema_evolves_and_an_incompatible_one_is_refused(client: RegistryClient, subject: str, kind: str) -> None:
    first = client.register(subject, Definition(kind, FIRST[kind]))
    assert client.register(subject, Definition(kind, FIRST[kind])) == first
    second = client.register(subject, Definition(kind, SECOND[kind]))
    assert second != first
    assert client.lookup(subject, Definition(kind, FIRST[kind])) == first
    code = refusal(lambda: client.register(subject, Definition(kind, INCOMPATIBLE[kind])))
    assert code == INCOMPATIBLE_CODES.get(client.name, "409")


@pytest.mark.parametrize("client", able(), indirect=True)
@pytest.mark.parametrize("kind", FORMATS)
def test_an_unknown_subject_or_schema_is_not_found(client: RegistryClient, subject: str, kind: str) -> None:
    not_found = NOT_FOUND_CODES.get(client.name)
    assert refusal(lambda: client.lookup(subject, Definition(kind, FIRST[kind]))) == (not_found or "40401")
    client.register(subject, Definition(kind, FIRST[kind]))
    assert refusal(lambda: client.lookup(subject, Definition(kind, SECOND[kind]))) == (not_found or "40403")


@pytest.mark.parametrize("client", able(Call.ADMINISTER), indirect=True)
@pytest.mark.parametrize("kind", FORMATS)
def test_an_invalid_schema_is_refused(client: RegistryClient, subject: str, kind: str) -> None:
    assert refusal(lambda: client.register(subject, Definition(kind, INVALID[kind]))) == "42201"


@pytest.mark.parametrize("client", able(Call.ADMINISTER), indirect=True)
@pytest.mark.parametrize("kind", FORMATS)
def test_compatibility_is_checked_and_its_level_set(client: RegistryClient, subject: str, kind: str) -> None:
    client.register(subject, Definition(kind, FIRST[kind]))
    assert client.compatible(subject, Definition(kind, SECOND[kind]))
    assert not client.compatible(subject, Definition(kind, INCOMPATIBLE[kind]))
    assert client.set_level(subject, "NONE") == "NONE"
    assert client.compatible(subject, Definition(kind, INCOMPATIBLE[kind]))
    client.register(subject, Definition(kind, INCOMPATIBLE[kind]))
    assert client.versions(subject) == [1, 2]


@pytest.mark.parametrize("client", able(Call.ADMINISTER), indirect=True)
def test_subjects_are_listed_and_deleted(client: RegistryClient, subject: str) -> None:
    client.register(subject, Definition("AVRO", FIRST["AVRO"]))
    assert subject in client.subjects()
    assert refusal(lambda: client.delete(subject, permanent=True)) == "40405"
    assert client.delete(subject) == [1]
    assert subject not in client.subjects()
    assert refusal(lambda: client.versions(subject)) == "40401"
    assert client.delete(subject, permanent=True) == [1]


@pytest.mark.parametrize("client", able(Call.SCHEMA), indirect=True)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_schema_is_fetched_by_its_id(client: RegistryClient, subject: str, kind: str) -> None:
    client.register(f"{subject}-held", Definition(kind, _HELD[kind]))
    reference = {"name": _NAMES[kind], "subject": f"{subject}-held", "version": 1}
    schema_id = client.register(subject, Definition(kind, _HOLDER[kind], [reference]))
    found = client.schema(subject, schema_id)
    assert found["references"] == [reference]
    assert (found["type"] or "AVRO") == kind
    assert "Holder" in found["schema"]
    assert refusal(lambda: client.schema(subject, 99_999_999)) == "40403"


_NAMES = {"AVRO": "shop.Held", "JSON": "held.json", "PROTOBUF": "held.proto"}
_HELD = {
    "AVRO": _record(ID, name="shop.Held"),
    "JSON": '{"title": "Held", "type": "object"}',
    "PROTOBUF": 'syntax = "proto3"; package shop; message Held { int32 id = 1; }',
}
_HOLDER = {
    "AVRO": _record({"name": "held", "type": "shop.Held"}, name="shop.Holder"),
    "JSON": '{"title": "Holder", "type": "object", "properties": {"held": {"$ref": "held.json"}}}',
    "PROTOBUF": 'syntax = "proto3"; package shop; import "held.proto"; message Holder { Held held = 1; }',
}
