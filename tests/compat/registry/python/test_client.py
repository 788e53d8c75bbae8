"""Every method of confluent-kafka-python's registry client, and the error that it raises for each refusal."""

import json
from collections.abc import Callable
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryError,
    ServerConfig,
)

from tests.compat.registry.python.flavours import Flavour

BASIC = '{"type": "record", "name": "shop.Basic", "fields": [{"name": "name", "type": "string"}]}'
MORE = json.dumps(
    {
        "type": "record",
        "name": "shop.Basic",
        "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": "int", "default": 0}],
    }
)
INCOMPATIBLE = MORE.replace(', "default": 0', "")
INVALID = '{"type": "record", "name": "Bad", "fields": [{"name": "x", "type": "no such type"}]}'
PRIMITIVES = ['"string"', '"boolean"', '"float"', '"double"']
LOGICAL = json.dumps(
    {
        "type": "record",
        "name": "Dated",
        "fields": [
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "cost", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        ],
    }
)


def avro(text: str, **options: Any) -> Schema:
    return Schema(text, "AVRO", **options)


def refusal(call: Callable[[], object]) -> tuple[int, int, str]:
    """The HTTP status, the error code and the text that the client reports."""
    with pytest.raises(SchemaRegistryError) as caught:
        call()
    return caught.value.http_status_code, caught.value.error_code, str(caught.value)


@pytest.mark.parametrize("text", [BASIC, LOGICAL, *PRIMITIVES])
def test_a_registered_schema_is_found_by_every_key(flavour: Flavour, subject: str, text: str) -> None:
    client = flavour.client
    schema_id = client.register_schema(subject, avro(text))
    assert client.register_schema(subject, avro(text)) == schema_id
    found = client.lookup_schema(subject, avro(text))
    assert (found.schema_id, found.subject, found.version) == (schema_id, subject, 1)
    client.clear_caches()
    full = client.register_schema_full_response(subject, avro(text))
    assert full.schema_id == schema_id
    client.clear_caches()
    assert client.get_schema_by_guid(full.guid) == client.get_schema(schema_id)
    client.clear_caches()
    for version in (1, "latest"):
        stored = client.get_version(subject, version)
        assert (stored.schema_id, stored.version, stored.guid) == (schema_id, 1, full.guid)
        assert fastavro.parse_schema(json.loads(stored.schema.schema_str)) == fastavro.parse_schema(json.loads(text))
    client.clear_caches()
    assert client.get_schema(schema_id, subject_name=subject).schema_str == stored.schema.schema_str


def test_a_normalized_schema_is_one_with_its_other_spellings(flavour: Flavour, subject: str) -> None:
    fields = '[{"type": {"type": "string"}, "name": "name"}]'
    spelled = f'{{"namespace": "shop", "type": "record", "doc": "x", "name": "Basic", "fields": {fields}}}'
    registered = flavour.client.register_schema(subject, avro(spelled), normalize_schemas=True)
    again = '{"doc": "x", "type": "record", "name": "shop.Basic", "fields": [{"name": "name", "type": "string"}]}'
    assert flavour.client.register_schema(subject, avro(again), normalize_schemas=True) == registered
    assert flavour.client.lookup_schema(subject, avro(again), normalize_schemas=True).schema_id == registered


def test_refusals_of_schemas(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    assert refusal(lambda: client.lookup_schema(subject, avro(BASIC)))[:2] == (404, 40401)
    client.register_schema(subject, avro(BASIC))
    status, code, text = refusal(lambda: client.register_schema(subject, avro(INCOMPATIBLE)))
    assert (status, code) == (409, 409)
    assert "Schema being registered is incompatible with an earlier schema" in text
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in text
    status, code, text = refusal(lambda: client.register_schema(subject, avro(INVALID)))
    assert (status, code) == (422, 42201)
    status, code, text = refusal(lambda: client.lookup_schema(subject, avro(INVALID)))
    assert (status, code) == (422, 42201)
    assert "Invalid schema" in text
    assert refusal(lambda: client.lookup_schema(subject, avro(MORE)))[:2] == (404, 40403)
    status, code, text = refusal(lambda: client.get_schema(999_999))
    assert (status, code) == (404, 40403)
    assert "not found" in text


def test_refusals_of_versions_and_subjects(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    status, code, text = refusal(lambda: client.delete_subject(subject))
    assert (status, code, "not found" in text) == (404, 40401, True)
    assert refusal(lambda: client.get_versions(subject))[:2] == (404, 40401)
    assert refusal(lambda: client.get_latest_version(subject))[:2] == (404, 40401)
    client.register_schema(subject, avro(BASIC))
    status, code, text = refusal(lambda: client.get_version(subject, 3))
    assert (status, code, "Version 3 not found" in text) == (404, 40402, True)
    status, code, text = refusal(lambda: client.get_version(subject, "a"))
    assert (status, code, "The specified version 'a' is not a valid version id" in text) == (422, 42202, True)
    assert refusal(lambda: client.get_schema_by_guid("00000000-0000-0000-0000-000000000000"))[:2] == (404, 40403)


def test_subjects_versions_and_ids_are_listed(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    client.set_compatibility(subject_name=subject, level="NONE")
    ids = [client.register_schema(subject, avro(text)) for text in (BASIC, *PRIMITIVES)]
    assert client.get_versions(subject) == [1, 2, 3, 4, 5]
    assert client.get_versions(subject, offset=1, limit=2) == [2, 3]
    assert [client.lookup_schema(subject, avro(text)).version for text in (BASIC, *PRIMITIVES)] == [1, 2, 3, 4, 5]
    other = f"{subject}-other"
    client.register_schema(other, avro(BASIC))
    assert client.get_subjects(subject_prefix=subject) == [subject, other]
    assert client.get_subjects(subject_prefix=subject, offset=1, limit=1) == [other]
    assert {subject, other} <= set(client.get_subjects_by_schema_id(ids[0]))
    versions = [(each.subject, each.version) for each in client.get_schema_versions(ids[0])]
    assert {(subject, 1), (other, 1)} <= set(versions)
    assert sorted(client.get_schema_types()) == ["AVRO", "JSON", "PROTOBUF"]


def test_a_version_is_deleted_first_softly_then_for_good(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    client.register_schema(subject, avro(BASIC))
    client.register_schema(subject, avro(MORE))
    assert refusal(lambda: client.delete_version(subject, 1, permanent=True))[:2] == (404, 40407)
    assert client.delete_version(subject, 1) == 1
    assert client.get_versions(subject) == [2]
    assert client.get_versions(subject, deleted=True) == [1, 2]
    assert refusal(lambda: client.get_version(subject, 1))[:2] == (404, 40402)
    assert client.get_version(subject, 1, deleted=True).version == 1
    assert refusal(lambda: client.delete_version(subject, 1))[:2] == (404, 40406)
    assert client.lookup_schema(subject, avro(BASIC), deleted=True).version == 1
    assert client.delete_version(subject, 1, permanent=True) == 1
    assert client.get_versions(subject, deleted=True) == [2]


def test_a_subject_is_deleted_first_softly_then_for_good(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    client.register_schema(subject, avro(BASIC))
    assert refusal(lambda: client.delete_subject(subject, permanent=True))[:2] == (404, 40405)
    assert client.delete_subject(subject) == [1]
    assert client.get_subjects(subject_prefix=subject) == []
    assert client.get_subjects(subject_prefix=subject, deleted=True) == [subject]
    assert refusal(lambda: client.delete_subject(subject))[:2] == (404, 40404)
    assert client.delete_subject(subject, permanent=True) == [1]
    assert client.get_subjects(subject_prefix=subject, deleted=True) == []


def test_a_schema_that_was_deleted_gets_its_id_again(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    schema_id = client.register_schema(subject, avro(BASIC))
    client.delete_subject(subject)
    client.clear_caches()
    assert client.register_schema(subject, avro(BASIC)) == schema_id
    assert client.get_versions(subject) == [2]


@pytest.mark.parametrize("level", [level.value for level in ConfigCompatibilityLevel])
def test_a_subject_keeps_its_compatibility_level(flavour: Flavour, subject: str, level: str) -> None:
    assert flavour.client.set_compatibility(subject_name=subject, level=level)
    assert flavour.client.get_compatibility(subject_name=subject) == level
    assert flavour.client.get_config(subject_name=subject).compatibility_level == level


def test_the_global_level(flavour: Flavour) -> None:
    client = flavour.client
    assert client.get_compatibility() == "BACKWARD"
    try:
        for level in ("BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "NONE"):
            client.set_compatibility(level=level)
            assert client.get_compatibility() == level
    finally:
        client.set_compatibility(level="BACKWARD")
    status, code, text = refusal(lambda: client.set_compatibility(level="INVALID"))
    assert (status, code) == (422, 42203)
    assert "Invalid compatibility level" in text


def test_the_settings_of_a_subject(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    assert refusal(lambda: client.get_config(subject_name=subject))[:2] == (404, 40408)
    assert refusal(lambda: client.delete_config(subject_name=subject))[:2] == (404, 40401)
    metadata = Metadata(None, MetadataProperties({"owner": "shop"}), None)
    wanted = ServerConfig(
        compatibility=ConfigCompatibilityLevel.FULL, compatibility_group="version", default_metadata=metadata
    )
    client.set_config(subject_name=subject, config=wanted)
    found = client.get_config(subject_name=subject)
    assert (found.compatibility_level, found.compatibility_group) == ("FULL", "version")
    assert found.default_metadata.properties == metadata.properties
    client.register_schema(subject, avro(BASIC))
    assert client.get_latest_version(subject).schema.metadata.properties.properties == {"owner": "shop"}
    client.delete_config(subject_name=subject)
    assert refusal(lambda: client.get_config(subject_name=subject))[:2] == (404, 40408)


def test_compatibility_is_tested_without_registering(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    client.register_schema(subject, avro(BASIC))
    for version in (1, "latest"):
        assert client.test_compatibility(subject, avro(MORE), version)
        assert not client.test_compatibility(subject, avro(INCOMPATIBLE), version)
    assert client.test_compatibility_all_versions(subject, avro(MORE))
    assert not client.test_compatibility_all_versions(subject, avro(INCOMPATIBLE))
    assert refusal(lambda: client.test_compatibility(subject, avro(MORE), 9))[:2] == (404, 40402)
    assert refusal(lambda: client.test_compatibility(subject, avro(INVALID)))[:2] == (422, 42201)
    assert client.get_versions(subject) == [1]


def test_references(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    client.register_schema(subject, avro(BASIC))
    holder = '{"type": "record", "name": "Holder", "fields": [{"name": "held", "type": "shop.Basic"}]}'
    schema = avro(holder, references=[SchemaReference("shop.Basic", subject, 1)])
    schema_id = client.register_schema(f"{subject}-holder", schema)
    client.clear_caches()
    assert client.get_schema(schema_id).references == [SchemaReference("shop.Basic", subject, 1)]
    assert client.get_referenced_by(subject, 1) == [schema_id]
    assert refusal(lambda: client.delete_version(subject, 1))[:2] == (422, 42206)
    missing = avro(holder, references=[SchemaReference("shop.Basic", f"{subject}-none", 1)])
    assert refusal(lambda: client.register_schema(f"{subject}-holder", missing))[:2] == (422, 42201)
    client.clear_caches()
    inlined = client.get_schema(schema_id, fmt="resolved")
    assert json.loads(inlined.schema_str)["fields"][0]["type"]["name"] == "Basic"


def test_metadata_and_rules_are_kept(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    # Without tags: the client cannot hash a schema that has some.
    metadata = Metadata(None, MetadataProperties({"major": "1"}), ["major"])
    rule = Rule(
        *("mask", "hides names", RuleKind.TRANSFORM, RuleMode.WRITEREAD, "ENCRYPT", ["PII"]),
        *(RuleParams({"encrypt.kek.name": "k"}), None, None, "ERROR,NONE", False),
    )
    migration = Rule(
        *("rename", None, RuleKind.TRANSFORM, RuleMode.UPGRADE, "JSONATA", None, None, "$", None, None, False)
    )
    rules = RuleSet([migration], [rule])
    schema_id = client.register_schema(subject, avro(BASIC, metadata=metadata, rule_set=rules))
    client.clear_caches()
    found = client.get_schema(schema_id)
    assert found.metadata == metadata
    assert [each.to_dict() for each in found.rule_set.domain_rules] == [rule.to_dict()]
    assert [each.to_dict() for each in found.rule_set.migration_rules] == [migration.to_dict()]
    second = Metadata(None, MetadataProperties({"major": "2"}), None)
    client.register_schema(subject, avro(MORE, metadata=second))
    assert client.get_latest_with_metadata(subject, {"major": "1"}).version == 1
    assert client.get_latest_with_metadata(subject, {"major": "2"}).version == 2
    assert refusal(lambda: client.get_latest_with_metadata(subject, {"major": "3"}))[:2] == (404, 40403)


def test_modes(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    assert client.get_global_mode() == "READWRITE"
    assert refusal(lambda: client.get_mode(subject))[:2] == (404, 40409)
    assert client.update_mode(subject, "READONLY") == "READONLY"
    assert client.get_mode(subject) == "READONLY"
    assert refusal(lambda: client.register_schema(subject, avro(BASIC)))[:2] == (422, 42205)
    assert client.delete_mode(subject) == "READONLY"
    client.register_schema(subject, avro(BASIC))
    assert refusal(lambda: client.update_mode(subject, "IMPORT"))[:2] == (422, 42205)
    assert client.update_mode(subject, "IMPORT", force=True) == "IMPORT"
    client.delete_mode(subject)
    assert refusal(lambda: client.update_mode(subject, "SOMETHING"))[:2] == (422, 42204)


def test_contexts(flavour: Flavour, subject: str) -> None:
    client = flavour.client
    inside = f":.{subject}:orders"
    schema_id = client.register_schema(inside, avro('{"type": "fixed", "name": "only.Here", "size": 7}'))
    assert schema_id == 1
    assert f".{subject}" in client.get_contexts()
    assert client.get_versions(inside) == [1]
    assert client.get_subjects(subject_prefix=f":.{subject}:") == [inside]
    client.clear_caches()
    assert '"only"' in client.get_schema(schema_id, subject_name=inside).schema_str


@pytest.mark.parametrize("name", ["with/slash", "with space", "größe-value", "a%2Fb", "a+b", "x:y", "?&#"])
def test_any_name_can_be_a_subject(flavour: Flavour, subject: str, name: str) -> None:
    named = f"{subject}-{name}"
    schema_id = flavour.client.register_schema(named, avro(BASIC))
    assert flavour.client.get_subjects(subject_prefix=f"{subject}-") == [named]
    assert flavour.client.get_latest_version(named).schema_id == schema_id
    assert flavour.client.delete_subject(named) == [1]


def test_a_registry_without_associations_reports_that_it_finds_none(flavour: Flavour, topic: str) -> None:
    assert refusal(lambda: flavour.client.get_associations_by_resource_name(topic, "-"))[0] == 404
