"""GUIDs are Confluent's: the expected ones come from its own regression test (schema-md5-golden-data.json)."""

import pytest

from kaspar.registry.entities import Metadata, Rule, RuleKind, RuleMode, RuleSet, SchemaReference
from kaspar.registry.fingerprint import fingerprint, guid_of

TEXT = (
    '{"type":"record","name":"Person","namespace":"io.confluent.kafka.example","fields":['
    '{"name":"name","type":"string"},{"name":"age","type":"int"},{"name":"ssn","type":"string"},'
    '{"name":"user","type":"io.confluent.kafka.example.User"},'
    '{"name":"address","type":"io.confluent.kafka.example.Address"}]}'
)
REFERENCES = (
    SchemaReference("io.confluent.kafka.example.User", "User", 1),
    SchemaReference("io.confluent.kafka.example.Address", "Address", 2),
)
METADATA = Metadata(
    {"team": ("data-engineering",), "environment": ("staging", "production")},
    {"version": "1.0.0", "owner": "data-team", "description": "Person schema for user management"},
    ("ssn", "credit-card"),
)


def rule(name: str, doc: str, kind: RuleKind, mode: RuleMode, type_: str, field: str, expr: str) -> Rule:
    return Rule(name, doc, kind, mode, type_, ("PERSON",), {"field": field}, expr, "none", "error")


RULES = RuleSet(
    migration_rules=(
        rule(
            "upgrade-rule-1",
            "Upgrade rule for field changes",
            "TRANSFORM",
            "UPGRADE",
            "FIELD_UPDATE",
            "name",
            "field.name = field.name.toUpperCase()",
        ),
        rule(
            "downgrade-rule-1",
            "Downgrade rule for compatibility",
            "TRANSFORM",
            "DOWNGRADE",
            "FIELD_DELETE",
            "ssn",
            "delete field.ssn",
        ),
    ),
    domain_rules=(
        rule(
            "validation-rule-1",
            "Validate age field",
            "CONDITION",
            "WRITE",
            "FIELD_VALIDATION",
            "age",
            "field.age >= 0 && field.age <= 150",
        ),
        rule(
            "masking-rule-1",
            "Mask sensitive data on read",
            "TRANSFORM",
            "READ",
            "DATA_MASKING",
            "ssn",
            "field.ssn = '***-**-****'",
        ),
    ),
)


@pytest.mark.parametrize(
    ("references", "metadata", "rules", "guid"),
    [
        ((), None, None, "d629bb05-ad85-3d20-fbcb-895de3c459f7"),
        ((), None, RULES, "c0708b8f-65f6-b698-bffe-45c1dfa8987c"),
        ((), METADATA, None, "2034166c-90a8-1166-0ff2-f5f62c80dbe0"),
        ((), METADATA, RULES, "d9877161-cfdf-d8c5-4eb4-ab37ed50e9d5"),
        (REFERENCES, None, None, "5c08d70e-5347-41b2-6369-199425d044eb"),
        (REFERENCES, None, RULES, "96825311-eb10-b7f5-48be-2a023b4c018e"),
        (REFERENCES, METADATA, None, "3619d8e0-2ee8-de51-0d9e-2520d39174d5"),
        (REFERENCES, METADATA, RULES, "589556fb-ad98-e8e0-94fa-e6da3455433a"),
    ],
)
def test_guid_is_the_one_that_confluents_registry_gives(
    references: tuple[SchemaReference, ...], metadata: Metadata | None, rules: RuleSet | None, guid: str
) -> None:
    assert guid_of(fingerprint(TEXT, references, metadata, rules)) == guid


def test_empty_metadata_makes_another_schema() -> None:
    assert fingerprint(TEXT, (), Metadata(), None) != fingerprint(TEXT, (), None, None)
