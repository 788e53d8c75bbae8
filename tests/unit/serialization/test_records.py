"""Keys and values of records, by schemas of a registry in this process."""

import json
import sys
from collections.abc import Iterator
from uuid import UUID

import pytest

from kaspar.base.errors import KasparError
from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import InvalidValue, RegistryError, SerializationError, UnreadableBytes
from kaspar.serialization.mock_registry import drop_mock_registry
from kaspar.serialization.records import RecordReader, record_writer
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient, SchemaText
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.values import values_of
from kaspar.serialization.wire_format import VALUE_HEADER, id_prefix

AVRO = SchemaText(
    SchemaType.AVRO, json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
)
PROTOBUF = SchemaText(
    SchemaType.PROTOBUF, 'syntax = "proto3"; message A { message In { int32 z = 1; } } message B { string s = 1; }'
)


@pytest.fixture
def registry() -> Iterator[RegistryClient]:
    yield RegistryClient(registry_config({"schema.registry.url": "mock://records"}))
    drop_mock_registry("records")


def test_value_has_the_id_of_its_schema_in_front(registry: RegistryClient) -> None:
    writer = record_writer(registry.register("t-value", AVRO))
    assert writer.to_bytes({"a": 1}) == id_prefix(1) + b"\x02"
    decoded = RecordReader(registry).decode(writer.to_bytes({"a": 1}))
    assert (decoded.value, decoded.schema.id) == ({"a": 1}, 1)


@pytest.mark.parametrize(
    ("message", "value", "data"),
    [(None, {}, b"\0"), ("B", {"s": "x"}, b"\x02\x02\x0a\x01x"), ("A.In", {"z": 1}, b"\x04\0\0\x08\x01")],
)
def test_message_indexes_follow_the_id(
    registry: RegistryClient, message: str | None, value: dict[str, object], data: bytes
) -> None:
    writer = record_writer(registry.register("t-value", PROTOBUF), message)
    assert writer.to_bytes(value) == id_prefix(1) + data
    assert RecordReader(registry).decode(id_prefix(1) + data).value == value


@pytest.mark.parametrize(("schema", "value"), [(AVRO, {"a": 1}), (PROTOBUF, {})])
def test_guid_in_a_header(registry: RegistryClient, schema: SchemaText, value: dict[str, object]) -> None:
    registry.register("t-value", schema)
    writer = record_writer(registry.schema_by_id(1))
    data, header = writer.to_bytes_and_header(value)
    assert writer.to_bytes(value).endswith(data)
    assert RecordReader(registry).decode(data, [(VALUE_HEADER, header)]).value == value


def test_registry_without_guids_has_no_header(registry: RegistryClient) -> None:
    schema = RegisteredSchema(AVRO, id=1)
    with pytest.raises(SerializationError, match="no GUIDs"):
        record_writer(schema).to_bytes_and_header({"a": 1})
    with pytest.raises(SerializationError, match="no id"):
        record_writer(RegisteredSchema(AVRO, id=None, guid=UUID(int=1)))


def test_reader_blocks_for_the_first_record_of_a_schema_only(registry: RegistryClient) -> None:
    data = record_writer(registry.register("t-value", AVRO)).to_bytes({"a": 1})
    reader = RecordReader(registry)
    assert reader.blocks_for(data)
    reader.decode(data)
    assert not reader.blocks_for(data)
    assert not reader.blocks_for(b"no schema")


def test_what_cannot_be_written_or_read(registry: RegistryClient) -> None:
    writer = record_writer(registry.register("t-value", AVRO))
    reader = RecordReader(registry)
    with pytest.raises(InvalidValue, match="a: Expected an int"):
        writer.to_bytes({"a": "1"})
    with pytest.raises(UnreadableBytes, match="Unknown magic byte"):
        reader.decode(b"plain text")
    with pytest.raises(RegistryError, match="Schema 7 not found"):
        reader.decode(id_prefix(7))
    with pytest.raises(UnreadableBytes, match="end too early"):
        reader.decode(id_prefix(1))


def test_schema_that_cannot_be_used_is_named() -> None:
    schema = RegisteredSchema(SchemaText(SchemaType.AVRO, "no schema"), id=7)
    with pytest.raises(SerializationError, match="Schema 7 cannot be used"):
        record_writer(schema)


def test_unknown_message_is_refused(registry: RegistryClient) -> None:
    with pytest.raises(SerializationError, match="no message C"):
        record_writer(registry.register("t-value", PROTOBUF), "C")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(KasparError, match=r"AVRO needs fastavro: pip install 'kaspar\[registry\]'"):
        values_of(SchemaType.AVRO, '"string"', {})
