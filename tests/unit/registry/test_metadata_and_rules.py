"""Metadata and rules are kept, merged and returned; the registry runs none."""

import json
from typing import Any

import pytest

from tests.unit.registry.memory import MemoryRegistry, avro_record

STRING = '"string"'


def rules(*names: str, expr: str = "true") -> dict[str, Any]:
    return {"domainRules": [{"name": name, "kind": "CONDITION", "type": "CEL", "expr": expr} for name in names]}


def test_metadata_and_rules_are_part_of_the_identity(registry: MemoryRegistry) -> None:
    plain = registry.register("a", STRING)
    described = registry.register("b", STRING, metadata={"properties": {"owner": "x"}})
    ruled = registry.register("c", STRING, ruleSet=rules("check"))
    assert len({each["id"] for each in (plain, described, ruled)}) == 3
    assert len({each["guid"] for each in (plain, described, ruled)}) == 3


def test_metadata_and_rules_are_returned(registry: MemoryRegistry) -> None:
    metadata = {"tags": {"**.ssn": ["PII"]}, "properties": {"owner": "x"}, "sensitive": ["owner"]}
    registry.register("orders", STRING, metadata=metadata, ruleSet=rules("check"))
    stored = registry.get("/subjects/orders/versions/1")
    assert stored["metadata"] == metadata
    assert stored["ruleSet"]["domainRules"] == [
        {"name": "check", "kind": "CONDITION", "mode": "WRITEREAD", "type": "CEL", "expr": "true", "disabled": False}
    ]
    by_id = registry.get("/schemas/ids/1")
    assert (by_id["metadata"], by_id["ruleSet"]) == (stored["metadata"], stored["ruleSet"])


def test_order_of_metadata_does_not_matter(registry: MemoryRegistry) -> None:
    one = registry.register("orders", STRING, metadata={"properties": {"a": "1", "b": "2"}, "sensitive": ["b", "a"]})
    other = registry.register("orders", STRING, metadata={"properties": {"b": "2", "a": "1"}, "sensitive": ["a", "b"]})
    assert one == other


def test_new_version_inherits_metadata_and_rules(registry: MemoryRegistry) -> None:
    registry.register("orders", avro_record("a"), metadata={"properties": {"owner": "x"}}, ruleSet=rules("check"))
    stored = registry.register("orders", avro_record("a", optional=["b"]))
    assert stored["metadata"] == {"properties": {"owner": "x"}}
    assert [rule["name"] for rule in stored["ruleSet"]["domainRules"]] == ["check"]


def test_same_schema_without_its_metadata_is_found_again(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING, metadata={"properties": {"owner": "x"}})
    assert registry.register("orders", STRING)["version"] == 1
    assert registry.request("POST", "/subjects/orders", {"schema": STRING}).json["version"] == 1


def test_config_has_defaults_and_overrides(registry: MemoryRegistry) -> None:
    registry.request(
        "PUT",
        "/config/orders",
        {
            "defaultMetadata": {"properties": {"owner": "default", "tier": "default"}},
            "overrideMetadata": {"properties": {"domain": "override", "owner2": "override"}},
            "defaultRuleSet": rules("one", "two"),
            "overrideRuleSet": rules("three"),
        },
    )
    stored = registry.register(
        "orders", STRING, metadata={"properties": {"owner": "x", "domain": "x"}}, ruleSet=rules("two", expr="false")
    )
    assert stored["metadata"]["properties"] == {
        "owner": "x",
        "tier": "default",
        "domain": "override",
        "owner2": "override",
    }
    assert [(rule["name"], rule["expr"]) for rule in stored["ruleSet"]["domainRules"]] == [
        ("one", "true"),
        ("two", "false"),
        ("three", "true"),
    ]
    again = registry.register("orders", STRING, metadata={"properties": {"owner": "x", "domain": "x"}})
    assert again["version"] == stored["version"]


def test_confluent_version_is_kept_up_to_date(registry: MemoryRegistry) -> None:
    metadata = {"properties": {"confluent:version": "1"}}
    registry.register("orders", avro_record("a"), metadata=metadata)
    stored = registry.register("orders", avro_record("a", optional=["b"]))
    assert stored["metadata"]["properties"]["confluent:version"] == "2"


def test_schemas_can_be_listed_by_the_type_of_their_rules(registry: MemoryRegistry) -> None:
    registry.register("a", STRING, ruleSet=rules("check"))
    registry.register("b", STRING)
    assert [each["subject"] for each in registry.get("/schemas?ruleType=CEL")] == ["a"]


def test_latest_with_metadata_is_the_latest_that_has_all_properties(registry: MemoryRegistry) -> None:
    registry.register("orders", avro_record("a"), metadata={"properties": {"major": "1", "x": "y"}})
    registry.register("orders", avro_record("a", optional=["b"]), metadata={"properties": {"major": "1"}})
    registry.register("orders", avro_record("a", optional=["c"]), metadata={"properties": {"major": "2"}})
    assert registry.get("/subjects/orders/metadata?key=major&value=1")["version"] == 2
    assert registry.get("/subjects/orders/metadata?key=major&value=1&key=x&value=y")["version"] == 1
    registry.request("DELETE", "/subjects/orders/versions/2")
    assert registry.get("/subjects/orders/metadata?key=major&value=1")["version"] == 1
    assert registry.get("/subjects/orders/metadata?key=major&value=1&deleted=true")["version"] == 2


def test_compatibility_is_checked_within_a_group(registry: MemoryRegistry) -> None:
    registry.request("PUT", "/config/orders", {"compatibilityGroup": "major"})
    registry.register("orders", STRING, metadata={"properties": {"major": "1"}})
    registry.register("orders", '"int"', metadata={"properties": {"major": "2"}})
    assert registry.try_register("orders", '"boolean"', metadata={"properties": {"major": "2"}}).status == 409
    assert registry.register("orders", '"long"', metadata={"properties": {"major": "2"}})["version"] == 3


def test_reserved_fields_are_protected_where_fields_are_validated(registry: MemoryRegistry) -> None:
    registry.request("PUT", "/config/orders", {"validateFields": True, "compatibility": "NONE"})
    reserved = {"properties": {"confluent:reserved": "b, c"}}
    registry.register("orders", avro_record("a"), metadata=reserved)
    status, _, message = registry.try_register("orders", avro_record("a", "b"), metadata=reserved).error
    assert status == 409
    assert "conflicts with the reserved field b." in message
    removed = registry.try_register("orders", avro_record("d"), metadata={"properties": {"confluent:reserved": "b"}})
    assert "has reserved field c removed" in removed.json["message"]


def test_reserved_fields_of_protobuf_are_those_of_every_top_level_message(registry: MemoryRegistry) -> None:
    registry.request("PUT", "/config/orders", {"validateFields": True, "compatibility": "NONE"})
    reserved = {"properties": {"confluent:reserved": "b"}}
    text = 'syntax = "proto3"; message First {{ string a = 1; }} message Second {{ string {field} = 1; }}'
    registry.register("orders", text.format(field="c"), schemaType="PROTOBUF", metadata=reserved)
    refused = registry.try_register("orders", text.format(field="b"), schemaType="PROTOBUF", metadata=reserved)
    assert "conflicts with the reserved field b." in refused.json["message"]


@pytest.mark.parametrize(
    ("rule_set", "message"),
    [
        ({"domainRules": [{"name": "a", "type": "t"}, {"name": "a", "type": "t"}]}, "duplicate name 'a'"),
        ({"domainRules": [{"type": "t"}]}, "Missing rule name"),
        ({"domainRules": [{"name": "", "type": "t"}]}, "Empty rule name"),
        ({"domainRules": [{"name": "1a", "type": "t"}]}, "Illegal initial character in rule name: 1a"),
        ({"domainRules": [{"name": "a b", "type": "t"}]}, "Illegal character in rule name: a b"),
        ({"domainRules": [{"name": "a"}]}, "Missing rule type"),
        ({"migrationRules": [{"name": "a", "type": "t"}]}, "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN"),
        ({"domainRules": [{"name": "a", "type": "t", "mode": "UPDOWN"}]}, "Domain rules can only be"),
    ],
)
def test_invalid_rules_are_refused(registry: MemoryRegistry, rule_set: Any, message: str) -> None:
    status, code, found = registry.try_register("orders", STRING, ruleSet=rule_set).error
    assert (status, code) == (422, 42210)
    assert message in found


def test_body_of_a_schema_with_unknown_kinds_of_rules_is_refused(registry: MemoryRegistry) -> None:
    body = json.dumps({"schema": STRING, "ruleSet": {"domainRules": [{"name": "a", "kind": "MAGIC"}]}}).encode()
    assert registry.request("POST", "/subjects/orders/versions", content=body).status == 400
