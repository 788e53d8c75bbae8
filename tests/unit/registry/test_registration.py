"""Versions and ids that schemas get."""

import asyncio
import json
from typing import Any

import pytest

from kaspar.registry.parsing import Source
from kaspar.registry.records import SchemaValue, schema_record
from kaspar.schemas import ParsedSchema
from tests.unit.registry.memory import MemoryRegistry, avro_record

STRING, INT = '"string"', '"int"'
AVRO_AND_JSON = '{"type":"string","logicalType":"uuid"}'
"""Is a schema in both formats."""


def test_schema_has_one_id_in_all_subjects_of_a_context(registry: MemoryRegistry) -> None:
    first = registry.register("orders", STRING)
    second = registry.register("payments", STRING)
    assert first["id"] == second["id"] == 1
    assert registry.get("/schemas/ids/1/subjects") == ["orders", "payments"]


def test_another_schema_gets_the_next_id(registry: MemoryRegistry) -> None:
    assert registry.register("orders", STRING)["id"] == 1
    assert registry.register("payments", INT)["id"] == 2


def test_registering_again_writes_nothing(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    written = len(registry.log.records)
    assert registry.register("orders", '{"type" : "string"}')["version"] == 1
    assert len(registry.log.records) == written


def test_texts_that_differ_in_white_space_are_one_schema(registry: MemoryRegistry) -> None:
    one = registry.register("orders", json.dumps(avro_record("a")))
    other = registry.register("orders", json.dumps(avro_record("a"), indent=4))
    assert one["guid"] == other["guid"]
    assert other["version"] == 1


def test_response_has_the_text_that_was_sent(registry: MemoryRegistry) -> None:
    """confluent-kafka-python keeps it in its cache, beside the id."""
    sent = '{ "type": "string" }'
    assert registry.register("orders", sent)["schema"] == registry.register("orders", sent)["schema"] == sent
    assert registry.get("/schemas/ids/1")["schema"] == STRING


def test_soft_deleted_schema_comes_back_with_its_id_and_a_new_version(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    registry.request("DELETE", "/subjects/orders/versions/1")
    again = registry.register("orders", STRING)
    assert (again["id"], again["version"]) == (1, 2)
    # The deleted version with the same id is gone, as Confluent's is.
    assert registry.get("/subjects/orders/versions?deleted=true") == [2]


def test_permanently_deleted_schema_gets_a_new_id(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    registry.request("DELETE", "/subjects/orders")
    registry.request("DELETE", "/subjects/orders?permanent=true")
    again = registry.register("orders", STRING)
    assert (again["id"], again["version"]) == (2, 1)
    assert registry.request("GET", "/schemas/ids/1").status == 404


def test_version_after_a_deleted_one_is_higher(registry: MemoryRegistry) -> None:
    registry.register("orders", avro_record("a"))
    registry.register("orders", avro_record("a", optional=["b"]))
    registry.request("DELETE", "/subjects/orders/versions/2")
    assert registry.register("orders", avro_record("a", optional=["c"]))["version"] == 3


def test_deleted_versions_are_not_compared_with(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    registry.request("DELETE", "/subjects/orders")
    assert registry.register("orders", INT)["version"] == 2


def test_expected_version_has_to_be_the_next_one(registry: MemoryRegistry) -> None:
    registry.register("orders", avro_record("a"))
    new = avro_record("a", optional=["b"])
    assert registry.try_register("orders", new, version=4).error == (
        422,
        42201,
        "Version is not one more than previous version",
    )
    stored = registry.register("orders", new, version=2)
    assert stored["version"] == 2
    assert stored["metadata"] == {"properties": {"confluent:version": "2"}}


def test_schema_without_the_stored_confluent_version_is_the_same_schema(registry: MemoryRegistry) -> None:
    registry.register("orders", avro_record("a"), version=1)
    assert registry.register("orders", avro_record("a"))["version"] == 1
    found = registry.request("POST", "/subjects/orders", {"schema": json.dumps(avro_record("a"))})
    assert found.json["version"] == 1


def test_version_minus_one_registers_a_schema_that_is_not_the_latest(registry: MemoryRegistry) -> None:
    registry.request("PUT", "/config", {"compatibility": "NONE"})
    registry.register("orders", STRING)
    registry.register("orders", INT)
    assert registry.register("orders", STRING)["version"] == 1
    assert registry.register("orders", STRING, version=-1)["version"] == 3


def test_empty_schema_is_the_latest_one(registry: MemoryRegistry) -> None:
    """Clients send only metadata or rules, to attach them to the schema that is there."""
    registry.register("orders", STRING)
    response = registry.request("POST", "/subjects/orders/versions", {"metadata": {"properties": {"owner": "data"}}})
    assert response.json["schema"] == STRING
    assert response.json["version"] == 2


def test_other_types_than_those_known_are_refused(registry: MemoryRegistry) -> None:
    assert registry.try_register("orders", STRING, schemaType="THRIFT").error == (
        422,
        42201,
        "Invalid schema type THRIFT",
    )


def test_invalid_schema_is_refused_with_a_reason(registry: MemoryRegistry) -> None:
    status, code, message = registry.try_register("orders", '{"type": "record"}').error
    assert (status, code) == (422, 42201)
    assert message.startswith("Invalid schema of type AVRO, details: ")


def test_normalize_makes_one_schema_of_equivalent_ones(registry: MemoryRegistry) -> None:
    one = '{"type":"record","name":"A","fields":[{"name":"x","type":"string","doc":"","default":"","aliases":[]}]}'
    registry.register("orders", one)
    body = {"schema": one}
    with_parameter = registry.request("POST", "/subjects/normal/versions?normalize=true", body).json
    registry.request("PUT", "/config/configured", {"normalize": True})
    assert registry.register("configured", one)["guid"] == with_parameter["guid"]
    looked_up = registry.request("POST", "/subjects/configured", body)
    assert looked_up.status == 200


@pytest.mark.parametrize(
    ("schema_type", "text"),
    [("JSON", '{"type":"object"}'), ("PROTOBUF", 'syntax = "proto3";\n\nmessage A {\n  string b = 1;\n}\n')],
)
def test_other_formats_are_stored_with_their_type(registry: MemoryRegistry, schema_type: str, text: str) -> None:
    stored = registry.register("orders", text, schemaType=schema_type)
    assert (stored["schemaType"], stored["schema"]) == (schema_type, text)
    assert registry.get("/schemas/ids/1")["schemaType"] == schema_type
    assert registry.get("/subjects/orders/versions/1")["schemaType"] == schema_type


def test_type_of_a_subject_may_not_change(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    status, _, message = registry.try_register("orders", '{"type":"string"}', schemaType="JSON").error
    assert status == 409
    assert "Incompatible because of different schema type" in message


def test_concurrent_registrations_get_different_ids(registry: MemoryRegistry) -> None:
    """The log yields to other tasks while it appends: only the lock keeps two of them from taking one id."""

    async def register(number: int) -> Any:
        body = json.dumps({"schema": json.dumps(avro_record(f"f{number}"))})
        return (await registry.http.post(f"/subjects/s{number % 5}/versions", content=body)).json()

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(register(number) for number in range(40)))

    registry.request("PUT", "/config", {"compatibility": "NONE"})
    responses = registry.runner.run(all_at_once())
    assert sorted(each["id"] for each in responses) == list(range(1, 41))
    assert registry.get("/subjects/s0/versions") == list(range(1, 9))


def test_one_schema_that_many_register_at_once_gets_one_id(registry: MemoryRegistry) -> None:
    async def register(number: int) -> Any:
        return (
            await registry.http.post(f"/subjects/s{number % 3}/versions", content=b'{"schema":"\\"long\\""}')
        ).json()

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(register(number) for number in range(30)))

    assert {(each["id"], each["version"]) for each in registry.runner.run(all_at_once())} == {(1, 1)}
    assert len(registry.log.records) == 3


def test_only_the_latest_of_many_versions_is_parsed(registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay parses none, and a level that is not transitive compares with one."""
    for number in range(1, 3_001):
        text = json.dumps(avro_record("a", optional=[f"f{number}"]), separators=(",", ":"))
        registry.state.replay(*schema_record(SchemaValue("orders", number, number, schema=text)), number, 0)
    parsed: list[str] = []
    parse = registry.service._parser._work.parsed

    def counting(source: Source) -> ParsedSchema:
        parsed.append(source.text)
        return parse(source)

    monkeypatch.setattr(registry.service._parser._work, "parsed", counting)
    assert registry.register("orders", avro_record("a"))["version"] == 3_001
    assert len(set(parsed)) == 2


def test_subject_may_have_any_character(registry: MemoryRegistry) -> None:
    registry.register("a%2Fb%20%C3%BC%3F%25", STRING)
    assert registry.get("/subjects") == ["a/b ü?%"]
    assert registry.get("/subjects/a%2Fb%20%C3%BC%3F%25/versions/latest")["subject"] == "a/b ü?%"


def test_formats_with_the_same_text_have_ids_of_their_own(registry: MemoryRegistry) -> None:
    assert registry.register("avro", AVRO_AND_JSON)["id"] == 1
    assert registry.register("json", AVRO_AND_JSON, schemaType="JSON")["id"] == 2
    assert registry.register("more-avro", AVRO_AND_JSON)["id"] == 1
    assert registry.register("more-json", AVRO_AND_JSON, schemaType="JSON")["id"] == 2
    assert "schemaType" not in registry.get("/schemas/ids/1")
    assert registry.get("/schemas/ids/2")["schemaType"] == "JSON"
    guid = registry.get("/schemas/ids/1")["guid"]
    assert registry.get(f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": 1}, {"context": ".", "id": 2}]


def test_version_of_another_format_is_not_the_same_schema(registry: MemoryRegistry) -> None:
    registry.register("orders", AVRO_AND_JSON)
    body = {"schema": AVRO_AND_JSON, "schemaType": "JSON"}
    assert registry.request("POST", "/subjects/orders", body).error[1] == 40403
    assert registry.request("POST", "/subjects/orders/versions", body).error[1] == 409
    registry.request("PUT", "/config/orders", {"compatibility": "NONE"})
    registered = registry.register("orders", AVRO_AND_JSON, schemaType="JSON")
    assert (registered["id"], registered["version"]) == (2, 2)
    assert registry.request("POST", "/subjects/orders", body).json["version"] == 2
    assert registry.request("POST", "/subjects/orders", {"schema": AVRO_AND_JSON}).json["version"] == 1
    assert registry.register("orders", AVRO_AND_JSON)["version"] == 1


def test_id_that_another_registry_gave_to_two_formats_is_given_to_no_more(registry: MemoryRegistry) -> None:
    """Confluent's registry gives one id to both."""
    for subject, schema_type in (("avro", None), ("json", "JSON")):
        value = SchemaValue(subject, 1, 1, schema_type=schema_type, schema=AVRO_AND_JSON)
        registry.state.replay(*schema_record(value), 0, 0)
    assert registry.register("avro", AVRO_AND_JSON)["version"] == 1
    assert registry.register("json", AVRO_AND_JSON, schemaType="JSON")["version"] == 1
    assert registry.register("more-json", AVRO_AND_JSON, schemaType="JSON")["id"] == 2
