"""The bytes of `_schemas`: as Confluent's registry writes them, and what others have written."""

import pytest

from kaspar.registry import records
from kaspar.registry.entities import Metadata, Rule, RuleSet, SchemaReference
from kaspar.registry.interfaces import LogRecord
from kaspar.registry.records import ConfigValue, SchemaValue
from kaspar.registry.state import State

WRITTEN: list[tuple[LogRecord, bytes, bytes | None]] = [
    (
        records.schema_record(SchemaValue("orders", 1, 7, schema='"string"')),
        b'{"keytype":"SCHEMA","subject":"orders","version":1,"magic":1}',
        b'{"subject":"orders","version":1,"id":7,"schema":"\\"string\\"","deleted":false}',
    ),
    (
        records.schema_record(
            SchemaValue(
                "orders",
                2,
                8,
                schema_type="PROTOBUF",
                references=(SchemaReference("money.proto", "money", 3),),
                schema="syntax",
                deleted=True,
            )
        ),
        b'{"keytype":"SCHEMA","subject":"orders","version":2,"magic":1}',
        b'{"subject":"orders","version":2,"id":8,"schemaType":"PROTOBUF","references":[{"name":"money.proto",'
        b'"subject":"money","version":3}],"schema":"syntax","deleted":true}',
    ),
    (
        records.schema_record(
            SchemaValue(
                "orders",
                3,
                9,
                metadata=Metadata({"**.ssn": ("PII",)}, {"owner": "data"}, ("owner",)),
                rule_set=RuleSet(domain_rules=(Rule(name="check", type="CEL", expr="x > 1", kind="CONDITION"),)),
                schema='"int"',
            )
        ),
        b'{"keytype":"SCHEMA","subject":"orders","version":3,"magic":1}',
        b'{"subject":"orders","version":3,"id":9,"metadata":{"tags":{"**.ssn":["PII"]},"properties":{"owner":"data"},'
        b'"sensitive":["owner"]},"ruleSet":{"domainRules":[{"name":"check","kind":"CONDITION","mode":"WRITEREAD",'
        b'"type":"CEL","expr":"x > 1","disabled":false}]},"schema":"\\"int\\"","deleted":false}',
    ),
    (records.schema_tombstone("orders", 1), b'{"keytype":"SCHEMA","subject":"orders","version":1,"magic":1}', None),
    (
        records.config_record(None, ConfigValue(compatibility_level="FULL")),
        b'{"keytype":"CONFIG","magic":0}',
        b'{"compatibilityLevel":"FULL"}',
    ),
    (
        records.config_record("orders", ConfigValue("orders", alias="o", normalize=True, compatibility_level="NONE")),
        b'{"keytype":"CONFIG","subject":"orders","magic":0}',
        b'{"subject":"orders","alias":"o","normalize":true,"compatibilityLevel":"NONE"}',
    ),
    (records.config_record("orders", None), b'{"keytype":"CONFIG","subject":"orders","magic":0}', None),
    (records.mode_record(None, "READONLY"), b'{"keytype":"MODE","magic":0}', b'{"mode":"READONLY"}'),
    (
        records.mode_record("orders", "IMPORT"),
        b'{"keytype":"MODE","subject":"orders","magic":0}',
        b'{"subject":"orders","mode":"IMPORT"}',
    ),
    (
        records.delete_subject_record("orders", 2),
        b'{"keytype":"DELETE_SUBJECT","subject":"orders","magic":0}',
        b'{"subject":"orders","version":2}',
    ),
    (
        records.clear_subject_record("orders"),
        b'{"keytype":"CLEAR_SUBJECT","subject":"orders","magic":0}',
        b'{"subject":"orders"}',
    ),
    (records.clear_subject_record(None), b'{"keytype":"CLEAR_SUBJECT","magic":0}', b"{}"),
    (
        records.context_record(".eu"),
        b'{"keytype":"CONTEXT","tenant":"default","context":".eu","magic":0}',
        b'{"tenant":"default","context":".eu"}',
    ),
    (
        records.context_tombstone(".eu"),
        b'{"keytype":"CONTEXT","tenant":"default","context":".eu","magic":0}',
        None,
    ),
    (records.noop_record(), b'{"keytype":"NOOP","magic":0}', None),
]


@pytest.mark.parametrize(("record", "key", "value"), WRITTEN, ids=lambda part: str(part)[:40])
def test_records_are_written_as_confluents_registry_writes_them(
    record: LogRecord, key: bytes, value: bytes | None
) -> None:
    assert record == (key, value)


def test_non_ascii_text_is_written_as_utf8() -> None:
    _, value = records.schema_record(SchemaValue("grüße", 1, 1, schema='"ß"'))
    assert value is not None
    assert "grüße".encode() in value


def replayed(*written: tuple[bytes, bytes | None]) -> State:
    state = State()
    for offset, (key, value) in enumerate(written):
        state.replay(key, value, offset, 0)
    return state


def test_a_schema_of_karapace_is_read() -> None:
    """Karapace's older releases write the fields of a key in another order, and those of Avro without a type."""
    state = replayed(
        (
            b'{"subject":"orders","version":1,"magic":1,"keytype":"SCHEMA"}',
            b'{"subject": "orders", "version": 1, "id": 4, "schema": "\\"string\\"", "deleted": false}',
        )
    )
    stored = state.versions("orders").get(1)
    assert stored is not None
    assert (stored.id, stored.value.type, stored.deleted) == (4, "AVRO", False)


def test_a_schema_without_the_field_deleted_is_live() -> None:
    state = replayed(
        (
            b'{"keytype":"SCHEMA","subject":"orders","version":1,"magic":1}',
            b'{"subject":"orders","version":1,"id":4,"schema":"\\"string\\""}',
        )
    )
    assert state.has_subject("orders", deleted=False)


def test_null_fields_and_unknown_fields_are_read() -> None:
    state = replayed(
        (
            b'{"keytype":"SCHEMA","subject":"orders","version":1}',
            b'{"subject":"orders","version":1,"id":4,"md5":null,"schemaType":null,"references":null,"metadata":null,'
            b'"ruleSet":null,"schema":"\\"string\\"","deleted":true,"guid":"x","ts":1}',
        )
    )
    stored = state.versions("orders").get(1)
    assert stored is not None
    assert stored.deleted


def test_a_config_of_an_old_registry_is_read() -> None:
    """Older registries write a null subject into the key, and none into the value."""
    state = replayed(
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
        (b'{"keytype":"CONFIG","subject":"orders","magic":0}', b'{"compatibilityLevel":"NONE"}'),
        (b'{"keytype":"MODE","subject":null,"magic":0}', b'{"mode":"READONLY"}'),
    )
    assert state.config_in_scope("others", "BACKWARD").compatibility_level == "FULL"
    assert state.config_in_scope("orders", "BACKWARD").compatibility_level == "NONE"
    assert state.mode_in_scope("orders") == "READONLY"


STRANGE: list[tuple[bytes | None, bytes | None]] = [
    (None, b"{}"),
    (b"", None),
    (b"not json", b"{}"),
    (b"\xff\xfe", b"\xff"),
    (b"[]", b"[]"),
    (b"{}", b"{}"),
    (b'{"keytype":"DEK","magic":0}', b"{}"),
    (b'{"keytype":"SCHEMA","magic":1}', b"{}"),
    (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', b"{}"),
    (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', b'{"subject":"b","version":1,"id":1,"schema":""}'),
    (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', b'{"subject":"a","version":0,"id":1,"schema":""}'),
    (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', b'{"subject":"a","version":1,"id":-1,"schema":""}'),
    (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', b"[" * 100_000),
    (b'{"keytype":"CONFIG","magic":0}', b"7"),
    (b'{"keytype":"MODE","magic":0}', b'{"mode":"SIDEWAYS"}'),
    (b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}', b"{}"),
    (b'{"keytype":"CONTEXT","magic":0}', None),
]


@pytest.mark.parametrize(("key", "value"), STRANGE)
def test_bytes_that_are_no_record_are_skipped(key: bytes | None, value: bytes | None) -> None:
    state = State()
    state.replay(key, value, 0, 0)
    assert state == State()
    state.replay(*records.schema_record(SchemaValue("orders", 1, 1, schema='"int"')), 1, 0)
    assert state.has_subject("orders", deleted=False)
