"""Values that take long are not encoded or decoded where they would hold up others, but in processes with limits."""

import json
import time
from collections.abc import Iterator

import pytest

from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import InvalidValue, TooCostly, UnreadableBytes
from kaspar.serialization.mock_registry import drop_mock_registry
from kaspar.serialization.records import RecordReader, record_writer
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient, SchemaText
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.value_process import ValueSchema
from kaspar.serialization.value_processes import ValueProcesses
from tests.unit.serialization.costly import EXPLODING, NESTED

LOOKAHEAD = '{"type": "string", "pattern": "^(?=(a|a)*$)(a|aa)*b$"}'
FEW_MS = 0.05
"""With room for a machine that is busy."""
R = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
ARRAY = f'{{"type":"array","items":["null",{R}]}}'
UNION = json.dumps([{"type": "record", "name": f"r{number}", "fields": []} for number in range(90)] + ["null"])
FIELDS = " ".join(f"int32 f{number} = {number + 2};" for number in range(250))


@pytest.fixture
def registry() -> Iterator[RegistryClient]:
    yield RegistryClient(registry_config({"schema.registry.url": "mock://costly"}))
    drop_mock_registry("costly")


@pytest.fixture(scope="module")
def processes() -> Iterator[ValueProcesses]:
    processes = ValueProcesses()
    yield processes
    processes.close()


def schema(kind: SchemaType, text: str) -> RegisteredSchema:
    return RegisteredSchema(SchemaText(kind, text), id=1)


COSTLY = [
    (SchemaType.JSON, EXPLODING, NESTED),
    (SchemaType.JSON, LOOKAHEAD, b'"' + b"a" * 100 + b'"'),
    (SchemaType.JSON, '{"type":"array"}', b"[" + b",".join([b"1"] * 4000) + b"]"),
    (SchemaType.AVRO, ARRAY, json.dumps([{"R": {"a": 1}}] * 1000).encode()),
    (SchemaType.AVRO, f'{{"type":"array","items":{UNION}}}', json.dumps([None] * 500).encode()),
    (
        SchemaType.PROTOBUF,
        f'syntax="proto3"; message A {{ repeated A a = 1; {FIELDS} }}',
        b'{"a":[%s{}]}' % (b"{}," * 500),
    ),
]


@pytest.mark.parametrize(("kind", "text", "data"), COSTLY)
def test_a_costly_value_is_given_up_within_milliseconds(kind: SchemaType, text: str, data: bytes) -> None:
    writer = record_writer(schema(kind, text))
    start = time.perf_counter()
    with pytest.raises(TooCostly):
        writer.quickly(data)
    assert time.perf_counter() - start < FEW_MS


@pytest.mark.parametrize(("kind", "text", "data"), COSTLY[2:])
def test_a_process_writes_what_would_be_written_here(
    kind: SchemaType, text: str, data: bytes, processes: ValueProcesses
) -> None:
    writer = record_writer(schema(kind, text), processes=processes)
    assert writer.slowly(data) == record_writer(schema(kind, text)).to_bytes(json.loads(data))


def test_an_ordinary_value_is_encoded_here() -> None:
    assert record_writer(schema(SchemaType.AVRO, R)).quickly(b'{"a": 1}') == b"\0\0\0\0\1\2"
    assert record_writer(schema(SchemaType.JSON, "{}")).quickly(b'{"a": 1}') == b'\0\0\0\0\1{"a":1}'
    proto = 'syntax = "proto3"; message A { int32 a = 1; }'
    assert record_writer(schema(SchemaType.PROTOBUF, proto)).quickly(b'{"a": 1}') == b"\0\0\0\0\1\0\x08\1"


def test_what_a_process_refuses_says_why(processes: ValueProcesses) -> None:
    with pytest.raises(InvalidValue, match="too many steps"):
        record_writer(schema(SchemaType.JSON, EXPLODING), processes=processes).slowly(NESTED)
    avro = record_writer(schema(SchemaType.AVRO, R), processes=processes)
    with pytest.raises(InvalidValue, match="Expected an int, not a string"):
        avro.slowly(b'{"a": "x"}')
    with pytest.raises(InvalidValue):
        avro.slowly(b"{")
    with pytest.raises(UnreadableBytes, match="end too early"):
        processes.decode(ValueSchema(SchemaType.AVRO, R), b"")


def test_a_process_that_takes_too_long_is_ended_and_the_next_value_gets_another() -> None:
    processes = ValueProcesses(deadline_s=0.001)
    try:
        writer = record_writer(schema(SchemaType.AVRO, R), processes=processes)
        with pytest.raises(InvalidValue, match="too much time or memory"):
            writer.slowly(b'{"a": 1}')
        processes._processes.deadline_s = 60.0
        assert writer.slowly(b'{"a": 1}') == b"\0\0\0\0\1\2"
    finally:
        processes.close()


def test_a_large_schema_is_prepared_in_a_process_only(processes: ValueProcesses) -> None:
    fields = [{"name": "a", "type": "int", "doc": "d" * 70_000}]
    large = schema(SchemaType.AVRO, json.dumps({"type": "record", "name": "R", "fields": fields}))
    writer = record_writer(large, processes=processes)
    with pytest.raises(TooCostly):
        writer.quickly(b'{"a": 1}')
    assert writer.slowly(b'{"a": 1}') == b"\0\0\0\0\1\2"


DECODED = [
    (SchemaType.AVRO, ARRAY, [{"R": {"a": 1}}] * 3000),
    (SchemaType.JSON, "{}", [1] * 40_000),
    (SchemaType.PROTOBUF, 'syntax="proto3"; message A { repeated int32 a = 1; }', {"a": [1] * 5000}),
]


@pytest.mark.parametrize(("kind", "text", "value"), DECODED)
def test_a_process_reads_what_would_be_read_here(
    kind: SchemaType, text: str, value: object, registry: RegistryClient, processes: ValueProcesses
) -> None:
    data = record_writer(registry.register("t-value", SchemaText(kind, text))).to_bytes(value)
    asked = []

    class Counted(ValueProcesses):
        def decode(self, schema: ValueSchema, data: bytes) -> bytes:
            asked.append(schema)
            return processes.decode(schema, data)

    reader = RecordReader(registry, Counted())
    assert reader.decode(data).value == RecordReader(registry).decode(data).value == value
    assert json.loads(reader.decode_to_json(data).json) == value
    assert len(asked) == 2


def test_an_ordinary_value_is_decoded_here(registry: RegistryClient) -> None:
    processes = ValueProcesses()
    processes.close()
    with pytest.raises(UnreadableBytes):
        processes.decode(ValueSchema(SchemaType.AVRO, R), b"\2")
    data = record_writer(registry.register("t-value", SchemaText(SchemaType.AVRO, R))).to_bytes({"a": 1})
    reader = RecordReader(registry, processes)
    assert reader.decode(data).value == {"a": 1}
    assert reader.decode_to_json(data).json == b'{"a":1}'
