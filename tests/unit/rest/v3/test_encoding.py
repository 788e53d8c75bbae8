"""What becomes of the keys and values of records, and which combinations of fields are refused."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from kaspar.rest.errors import KAFKA_AUTHORIZATION, RestError
from kaspar.rest.formats.by_schema import Registration, SchemaFormats
from kaspar.rest.json_values import MAX_DEPTH
from kaspar.rest.v3.producing.bodies import RECORD, WrittenData
from kaspar.rest.v3.producing.encoding import EncodedRecord, RecordEncoder
from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import RegistryError
from kaspar.serialization.mock_registry import drop_mock_registry
from kaspar.serialization.registry_client import RegistryClient, SchemaText
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.subject_names import record_name, topic_name

ORDER = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"n","type":"int"}]}'
PROTO = 'syntax = "proto3"; message Order { int32 n = 1; }'


NO_REGISTRATION = Registration(lambda: asyncio.sleep(0), any_subject=False)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Encoder:
    def __init__(self, *, any_subject: bool = True) -> None:
        self.registry = RegistryClient(
            registry_config({"schema.registry.url": "mock://v3", "latest.cache.ttl.sec": "0"})
        )
        self.clock = Clock()
        self.schemas = SchemaFormats(self.registry, key_strategy=topic_name, value_strategy=topic_name)
        self.checks = 0
        self.refusal_to_write: RestError | None = None
        registration = Registration(self._check_writable, any_subject=any_subject)
        self._encoder = RecordEncoder(self.schemas, "orders", registration, monotonic=self.clock)

    async def _check_writable(self) -> None:
        self.checks += 1
        if self.refusal_to_write is not None:
            raise self.refusal_to_write

    def encode(self, record: dict[str, Any]) -> EncodedRecord:
        return asyncio.run(self._encoder.encode(RECORD.decode(msgspec.json.encode(record))))

    def value(self, **fields: Any) -> tuple[bytes | None, WrittenData | None]:
        encoded = self.encode({"value": fields})
        return encoded.record.value, encoded.value

    def refusal(self, record: dict[str, Any]) -> tuple[int, str]:
        with pytest.raises(RestError) as refused:
            self.encode(record)
        return refused.value.kind.code, refused.value.message

    def register(self, subject: str, text: str = ORDER, kind: SchemaType = SchemaType.AVRO) -> int:
        schema_id = self.registry.register(subject, SchemaText(kind, text)).id
        assert schema_id is not None
        return schema_id


@pytest.fixture
def encoder() -> Iterator[Encoder]:
    encoder = Encoder()
    yield encoder
    asyncio.run(encoder.schemas.close())
    drop_mock_registry("v3")


@pytest.mark.parametrize(
    ("kind", "data", "written"),
    [
        ("BINARY", "AP8=", b"\x00\xff"),
        ("BINARY", "AP8", b"\x00\xff"),
        ("BINARY", "", b""),
        ("STRING", "é{", "é{".encode()),
        ("STRING", "", b""),
        ("JSON", {"a": [1, None]}, b'{"a":[1,null]}'),
        ("JSON", "text", b'"text"'),
        ("BINARY", None, None),
        ("STRING", None, None),
        ("JSON", None, None),
    ],
)
def test_values_without_schemas(encoder: Encoder, kind: str, data: Any, written: bytes | None) -> None:
    assert encoder.value(type=kind, data=data) == (written, WrittenData(type=kind, size=len(written or b"")))


def test_keys_and_values_may_be_left_out(encoder: Encoder) -> None:
    encoded = encoder.encode({})
    assert (encoded.record.key, encoded.record.value, encoded.key, encoded.value) == (None, None, None, None)
    assert encoder.value(type="JSON")[0] is None


def test_a_schema_in_the_request_is_registered_once(encoder: Encoder) -> None:
    value, written = encoder.value(type="AVRO", schema=ORDER, data={"n": 1})
    assert value == b"\x00\x00\x00\x00\x01\x02"
    assert written == WrittenData(type="AVRO", subject="orders-value", schema_id=1, schema_version=1, size=6)
    assert encoder.value(type="AVRO", schema=ORDER, data={"n": 2})[1] == written


@pytest.mark.parametrize(
    ("kind", "schema"), [("AVRO", ORDER), ("JSONSCHEMA", '{"type":"object"}'), ("PROTOBUF", PROTO)]
)
def test_every_format_says_what_it_wrote(encoder: Encoder, kind: str, schema: str) -> None:
    value, written = encoder.value(type=kind, schema=schema, data={"n": 1})
    assert value is not None
    assert value[:5] == b"\x00\x00\x00\x00\x01"
    assert written == WrittenData(type=kind, subject="orders-value", schema_id=1, schema_version=1, size=len(value))


def test_the_latest_schema_is_the_default_and_a_newer_one_is_noticed(encoder: Encoder) -> None:
    encoder.register("orders-value")
    first = encoder.value(data={"n": 1})[1]
    assert first == WrittenData(type="AVRO", subject="orders-value", schema_id=1, schema_version=1, size=6)
    encoder.register("orders-value", PROTO, SchemaType.PROTOBUF)
    assert encoder.value(data={"n": 1})[1] == first
    encoder.clock.now += 1
    newer = encoder.value(data={"n": 1})[1]
    assert newer is not None
    assert (newer.type, newer.schema_id, newer.schema_version) == ("PROTOBUF", 2, 2)


def test_a_schema_by_its_id_or_version(encoder: Encoder) -> None:
    encoder.register("elsewhere", '"string"')
    schema_id = encoder.register("orders-value")
    expected = WrittenData(type="AVRO", subject="orders-value", schema_id=schema_id, schema_version=1, size=6)
    assert encoder.value(schema_id=schema_id, data={"n": 1})[1] == expected
    assert encoder.value(schema_version=1, data={"n": 1})[1] == expected
    assert encoder.value(subject="elsewhere", data="x")[1] == WrittenData(
        type="AVRO", subject="elsewhere", schema_id=1, schema_version=1, size=7
    )


def test_subjects_by_strategy(encoder: Encoder) -> None:
    schema_id = encoder.register("shop.Order")
    encoder.register("orders-shop.Order")
    for strategy, subject in (("RECORD_NAME", "shop.Order"), ("TOPIC_RECORD_NAME", "orders-shop.Order")):
        written = encoder.value(schema_id=schema_id, subject_name_strategy=strategy, data={"n": 1})[1]
        assert written is not None
        assert written.subject == subject


def test_null_has_a_schema_in_the_response_and_no_bytes(encoder: Encoder) -> None:
    encoder.register("orders-value")
    value, written = encoder.value(data=None)
    assert value is None
    assert written is not None
    assert (written.schema_id, written.size) == (1, 0)


REFUSED = [
    ({"type": "BINARY", "data": "***"}, 400, 'Bad Request: data="***" is not a valid base64 string.'),
    ({"type": "BINARY", "data": 1}, 400, "Bad Request: data=1 is not a base64 string."),
    ({"type": "STRING", "data": 1}, 400, "Bad Request: the data is not a string."),
    (
        {"subject": "a", "subject_name_strategy": "TOPIC_NAME"},
        400,
        "Bad Request: Only one of 'subject_name_strategy' or 'subject' can be used.",
    ),
    (
        {"schema_id": 1, "schema_version": 1},
        400,
        "Bad Request: Only one of 'schema_id', 'schema_version' or 'schema' can be used.",
    ),
    ({"schema": ORDER}, 400, "Bad Request: 'schema' cannot be used without 'type'."),
    ({"type": "JSON", "subject": "a"}, 400, "Bad Request: 'type=JSON' cannot be used with 'subject'."),
    ({"type": "BINARY", "schema_id": 1}, 400, "Bad Request: 'type=BINARY' cannot be used with 'schema_id'."),
    ({"type": "AVRO", "schema_id": 1}, 400, "Bad Request: 'schema_id=1' cannot be used with 'type'."),
    ({"type": "AVRO", "schema_version": 1}, 400, "Bad Request: 'schema_version=1' cannot be used with 'type'."),
    ({"type": "AVRO"}, 400, "Bad Request: 'schema_version=latest' cannot be used with 'type'."),
    (
        {"subject_name_strategy": "RECORD_NAME", "data": 1},
        400,
        "Bad Request: Cannot use schema_subject_strategy=RECORD_NAME without schema_id or schema.",
    ),
    (
        {"schema_version": 7},
        400,
        "Bad Request: Schema does not exist for subject: orders-value, version: 7",
    ),
    (
        {"data": 1},
        42207,
        "Error serializing message. Error when fetching latest schema version. subject = orders-value",
    ),
    ({"schema_id": 9}, 42207, "Error serializing message. Error when fetching schema by id. schemaId = 9"),
    ({"type": "AVRO", "schema": "{"}, 42205, "Invalid schema: "),
    ({"type": "AVRO", "schema": ORDER, "data": {"n": "x"}}, 400, "Bad Request: "),
]


@pytest.mark.parametrize(("value", "code", "message"), REFUSED)
def test_what_is_refused(encoder: Encoder, value: dict[str, Any], code: int, message: str) -> None:
    found_code, found_message = encoder.refusal({"value": value})
    assert (found_code, found_message[: len(message)]) == (code, message)
    assert encoder.refusal({"key": value})[0] == code


def test_a_schema_must_be_registered_under_the_subject(encoder: Encoder) -> None:
    schema_id = encoder.register("elsewhere")
    code, message = encoder.refusal({"value": {"schema_id": schema_id, "data": {"n": 1}}})
    assert code == 42207
    assert "Error when fetching schema version. subject = orders-value" in message


def test_the_default_strategy_may_need_the_schema() -> None:
    registry = RegistryClient(registry_config({"schema.registry.url": "mock://v3"}))
    schemas = SchemaFormats(registry, key_strategy=topic_name, value_strategy=record_name)
    with pytest.raises(RestError, match="Cannot use default schema_subject_strategy without schema_id or schema"):
        asyncio.run(RecordEncoder(schemas, "orders", NO_REGISTRATION).encode(RECORD.decode(b'{"value":{"data":1}}')))
    asyncio.run(schemas.close())
    drop_mock_registry("v3")


def test_partitions_headers_and_timestamps(encoder: Encoder) -> None:
    record = encoder.encode(
        {
            "partition_id": 3,
            "headers": [{"name": "a", "value": "AP8="}, {"name": "a"}, {"name": "", "value": ""}],
            "timestamp": "2021-02-05T20:14:42.5+01:00",
        }
    ).record
    assert record.partition == 3
    assert record.headers == [("a", b"\x00\xff"), ("a", None), ("", b"")]
    assert record.timestamp_ms == 1_612_552_482_500
    assert encoder.encode({"timestamp": 1_612_552_482}).record.timestamp_ms == 1_612_552_482_000
    assert encoder.refusal({"partition_id": -1}) == (40402, "Partition not found.")
    assert encoder.refusal({"timestamp": "1969-12-31T23:59:59Z"}) == (
        400,
        "Bad Request: Invalid timestamp: -1000. Timestamp should always be non-negative or null.",
    )


def test_the_deepest_json_that_a_stream_may_have_can_be_written(encoder: Encoder) -> None:
    deep = b"[" * (MAX_DEPTH - 2) + b"]" * (MAX_DEPTH - 2)
    record = RECORD.decode(b'{"value":{"type":"JSON","data":' + deep + b"}}")
    assert asyncio.run(encoder._encoder.encode(record)).record.value == deep


def test_a_schema_is_registered_only_for_a_caller_who_may_write(encoder: Encoder) -> None:
    encoder.refusal_to_write = RestError(KAFKA_AUTHORIZATION, "no")
    record = {"value": {"type": "AVRO", "schema": ORDER, "data": {"n": 1}}}
    assert encoder.refusal(record) == (40301, "no")
    with pytest.raises(RegistryError):
        encoder.registry.latest("orders-value")
    encoder.refusal_to_write = None
    encoder.encode(record)
    encoder.encode(record)
    assert encoder.checks == 2, "it is not asked again for a schema that is registered"


OTHER_SUBJECTS = [{"subject": "theirs"}, {"subject_name_strategy": "RECORD_NAME"}]


@pytest.mark.parametrize("named", OTHER_SUBJECTS)
def test_a_caller_may_not_register_under_a_subject_of_others(named: dict[str, str]) -> None:
    encoder = Encoder(any_subject=False)
    try:
        value = {"type": "AVRO", "schema": ORDER, "data": {"n": 1}}
        subject = named.get("subject", "shop.Order")
        code, message = encoder.refusal({"value": value | named})
        assert (code, message) == (40301, f"The caller may not register a schema under the subject {subject}.")
        with pytest.raises(RegistryError):
            encoder.registry.latest(subject)
        encoder.register(subject)
        assert encoder.value(**value, **named)[0] == b"\0\0\0\0\1\2", "one that is registered can be used"
        assert encoder.value(**value)[0] == b"\0\0\0\0\1\2"
        assert encoder.value(**value, subject_name_strategy="TOPIC_RECORD_NAME")[0] == b"\0\0\0\0\1\2"
    finally:
        asyncio.run(encoder.schemas.close())
        drop_mock_registry("v3")


def test_headers_count_as_memory(encoder: Encoder) -> None:
    bare = encoder.encode({"value": {"type": "STRING", "data": "x" * 10}})
    assert bare.size == 10
    headers = [{"name": "n" * 100, "value": "AAAA"}, {"name": ""}]
    assert encoder.encode({"headers": headers}).size >= 103
    assert encoder.encode({"headers": [{"name": ""}] * 1000}).size > 50_000, "empty ones take memory, too"
