"""Whatever the records of a request are, the event loop serves others meanwhile."""

import asyncio
import contextlib
import gc
import json
import time
from collections.abc import Coroutine, Iterator
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from starlette.requests import Request

from kaspar.callers.identities import SERVICE, Identity
from kaspar.rest.context import RestContext
from kaspar.rest.errors import RestError
from kaspar.rest.formats import EmbeddedFormat, by_schema
from kaspar.rest.formats.by_schema import Registration, SchemaFormats
from kaspar.rest.http import BodyBudget
from kaspar.rest.producing import Delivered, Outcome, OutgoingRecord, WaitForOutcomes
from kaspar.rest.v2.produce import ProduceEndpoint
from kaspar.rest.v2.records import RecordsEndpoint
from kaspar.rest.v3.producing.bodies import RECORD
from kaspar.rest.v3.producing.encoding import RecordEncoder
from kaspar.schemas.schema import SchemaType
from kaspar.serialization.mock_registry import drop_mock_registry
from kaspar.serialization.registry_client import RegistryClient, SchemaText
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.subject_names import topic_name
from kaspar.web.turns import Turns
from tests.unit.serialization.costly import EXPLODING, NESTED

STALL_S = 0.03
"""A few milliseconds, with room for a slow machine."""
ARRAY = '{"type":"array","items":["null",{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}]}'
LARGE = json.dumps([{"R": {"a": 1}}] * 60_000).encode()
SMALL = '{"type":"record","name":"S","fields":[{"name":"a","type":"int"}]}'

NO_REGISTRATION = Registration(lambda: asyncio.sleep(0), any_subject=False)


def body_of(schema_id: int, *values: bytes) -> bytes:
    records = b",".join(b'{"value":%s}' % value for value in values)
    return b'{"value_schema_id":%d,"records":[%s]}' % (schema_id, records)


class Proxy:
    """Version 2 and 3 as far as records are encoded."""

    def __init__(self) -> None:
        self.registry = RegistryClient(registry_config({"schema.registry.url": "mock://stalls"}))
        self.schemas = SchemaFormats(self.registry, key_strategy=topic_name, value_strategy=topic_name)
        self.written: list[bytes | None] = []

    def stall(self, embedded: str, schema_id: int, *values: bytes) -> tuple[list[dict[str, Any]], float]:
        """The offsets of the response, and the longest time for which nobody else was served."""
        asyncio.run(self.produce(embedded, body_of(schema_id, values[-1])))  # loads modules, prepares the schema
        self.written.clear()
        body = body_of(schema_id, *values)
        response, stall = asyncio.run(stall_of(self.produce(embedded, body)))
        return json.loads(response)["offsets"], stall

    def register(self, kind: SchemaType, text: str) -> int:
        schema_id = self.registry.register("t-value", SchemaText(kind, text)).id
        assert schema_id is not None
        return schema_id

    async def produce(self, embedded: str, body: bytes) -> bytes:
        """By version 2. The body of the response."""
        context = SimpleNamespace(
            bodies=BodyBudget(1 << 30),
            topics=SimpleNamespace(partition_count=self._partition_count),
            producers=SimpleNamespace(submit=self._submit),
            schemas=self.schemas,
            turns=Turns(),
            identity=lambda request: SERVICE,
            registration=lambda identity, topic: NO_REGISTRATION,
        )

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        headers = [(b"content-type", f"application/vnd.kafka.{embedded}.v2+json".encode())]
        request = Request({"type": "http", "headers": headers, "path_params": {"topic": "t"}}, receive)
        response = await ProduceEndpoint(cast(RestContext, context))(request)
        sent: list[bytes] = []

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))

        await response(request.scope, receive, send)
        return b"".join(sent)

    async def _partition_count(self, identity: Identity, topic: str) -> int:
        return 1

    async def _submit(self, identity: Identity, topic: str, records: list[OutgoingRecord]) -> WaitForOutcomes:
        first = len(self.written)
        self.written += [record.value for record in records]

        async def wait() -> list[Outcome]:
            return [Delivered(0, first + place, None) for place in range(len(records))]

        return wait


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    proxy = Proxy()
    yield proxy
    asyncio.run(proxy.schemas.close())
    drop_mock_registry("stalls")


async def stall_of(work: Coroutine[Any, Any, Any]) -> tuple[Any, float]:
    """What it returns, and the longest time for which the event loop served nothing else, in CPU time of this process:
    others do not count."""
    gc.freeze()  # what other tests have left is not looked at
    task = asyncio.create_task(work)
    longest, last = 0.0, time.process_time()
    while not task.done():
        await asyncio.sleep(0.0005)
        now = time.process_time()
        longest, last = max(longest, now - last), now
    gc.unfreeze()
    return task.result(), longest


def test_values_that_take_long_to_check_hold_up_nobody(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_schema, "REQUEST_S", 1.5)
    exploding = proxy.register(SchemaType.JSON, EXPLODING)
    offsets, stall = proxy.stall("jsonschema", exploding, *[NESTED] * 20, b"7")
    errors = [each["error"] for each in offsets]
    assert "too many steps to check" in errors[0]
    assert errors[19].endswith("The values of the request take too long to encode.")
    assert errors[20] is None, "a value that takes no time is written"
    assert proxy.written == [b"\0\0\0\0\x017"]
    assert stall < STALL_S


def test_a_large_value_holds_up_nobody(proxy: Proxy) -> None:
    array = proxy.register(SchemaType.AVRO, ARRAY)
    offsets, stall = proxy.stall("avro", array, LARGE, b"[]")
    assert [each["error"] for each in offsets] == [None, None]
    assert [len(each or b"") for each in proxy.written] == [120_009, 6]
    assert stall < STALL_S


def test_many_values_take_turns_with_other_requests(proxy: Proxy) -> None:
    small = proxy.register(SchemaType.AVRO, SMALL)
    offsets, stall = proxy.stall("avro", small, *[b'{"a":1}'] * 20_000)
    assert len(offsets) == len(proxy.written) == 20_000
    assert stall < STALL_S


@pytest.mark.parametrize(("kind", "text", "value"), [("JSONSCHEMA", EXPLODING, NESTED), ("AVRO", ARRAY, LARGE)])
def test_version_3_holds_up_nobody(proxy: Proxy, kind: str, text: str, value: bytes) -> None:
    proxy.register(SchemaType.AVRO if kind == "AVRO" else SchemaType.JSON, text)
    encoder = RecordEncoder(proxy.schemas, "t", NO_REGISTRATION)
    record = RECORD.decode(b'{"value":{"schema_id":1,"data":%s}}' % value)

    async def encode() -> bytes | None:
        with contextlib.suppress(RestError):
            return (await encoder.encode(record)).record.value
        return None

    asyncio.run(encode())  # loads modules, prepares the schema
    written, stall = asyncio.run(stall_of(encode()))
    assert (written is not None) == (kind == "AVRO")
    assert stall < STALL_S


def test_only_so_many_values_wait_for_processes(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_schema, "_MAX_WAITING", 0)
    encoder = RecordEncoder(proxy.schemas, "t", NO_REGISTRATION)
    proxy.register(SchemaType.AVRO, ARRAY)
    record = RECORD.decode(b'{"value":{"schema_id":1,"data":%s}}' % LARGE)
    with pytest.raises(RestError, match="Too many values wait") as refused:
        asyncio.run(encoder.encode(record))
    assert refused.value.kind.status == 429
    small = RECORD.decode(msgspec.json.encode({"value": {"schema_id": 1, "data": []}}))
    assert asyncio.run(encoder.encode(small)).record.value == b"\0\0\0\0\1\0"


@pytest.mark.parametrize("embedded", ["binary", "json"])
def test_very_many_records_hold_up_nobody(proxy: Proxy, embedded: str) -> None:
    offsets, stall = proxy.stall(embedded, 1, *[b'"eA=="'] * 100_000)
    assert [each["offset"] for each in offsets] == list(range(100_000))
    assert stall < STALL_S


def test_what_is_refused_of_very_many_records(proxy: Proxy) -> None:
    async def refusal(*values: bytes) -> str:
        with pytest.raises(RestError) as refused:
            await proxy.produce("json", body_of(1, *[b"1"] * 20_000, *values))
        return f"{refused.value.kind.code} {refused.value.message}"

    assert asyncio.run(refusal(b'1,"partition":-1')) == "422 partition must be greater than or equal to 0"
    assert asyncio.run(refusal(b"1},7,{")).startswith("400 Unexpected character ('7'")
    assert asyncio.run(refusal(b'1,"x":1')) == "422 Unrecognized field: x"
    assert not proxy.written


class Stored:
    """A message as librdkafka has it."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 0

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes:
        return self._value

    def headers(self) -> None:
        return None


def reading(proxy: Proxy, embedded: EmbeddedFormat, *values: bytes) -> tuple[bytes, int | None, float]:
    """The body, its status and the stall of a request for records that are there."""
    messages = [Stored(value) for value in values]

    async def done(*arguments: Any) -> Any:
        return None

    async def read(*arguments: Any) -> Any:
        return messages

    instance = SimpleNamespace(
        options=SimpleNamespace(format=embedded, request_timeout_ms=1), read=read, give_back=done, deliver=done
    )
    settings = SimpleNamespace(consumer_request_max_bytes=1, consumer_iterator_backoff_ms=1)
    context = SimpleNamespace(
        config=SimpleNamespace(settings=settings),
        consumers=SimpleNamespace(get=lambda *arguments: instance, refresh=done),
        schemas=proxy.schemas,
        turns=Turns(),
        identity=lambda request: SERVICE,
    )
    path = {"group": "g", "instance": "i"}
    request = Request({"type": "http", "headers": [], "query_string": b"", "path_params": path}, done)
    request.is_disconnected = lambda: asyncio.sleep(0, False)  # type: ignore[method-assign]
    sent: list[Any] = []

    async def work() -> None:
        response = await RecordsEndpoint(cast(RestContext, context))(request)

        async def send(message: Any) -> None:
            sent.append(message)

        await response(request.scope, request.receive, send)

    _, stall = asyncio.run(stall_of(work()))
    body = b"".join(message.get("body", b"") for message in sent)
    assert dict(sent[0]["headers"])[b"content-length"] == str(len(body)).encode()
    assert [message["more_body"] for message in sent[1:]] == [True] * (len(sent) - 2) + [False]
    return body, sent[0]["status"], stall


def test_large_records_that_are_read_hold_up_nobody(proxy: Proxy) -> None:
    proxy.register(SchemaType.AVRO, ARRAY)
    data = asyncio.run(proxy.schemas.encoding().encode(asyncio.run(writer_of(proxy)), msgspec.Raw(LARGE)))
    assert data is not None
    reading(proxy, EmbeddedFormat.AVRO, data)  # loads modules, prepares the schema
    body, status, stall = reading(proxy, EmbeddedFormat.AVRO, data, data)
    assert status == 200
    assert [len(each["value"]) for each in json.loads(body)] == [60_000, 60_000]
    assert stall < STALL_S


async def writer_of(proxy: Proxy) -> Any:
    return await proxy.schemas.writer_by_id(1, "t", is_key=False)


@pytest.mark.parametrize("embedded", [EmbeddedFormat.BINARY, EmbeddedFormat.JSON])
def test_many_bytes_that_are_read_hold_up_nobody(proxy: Proxy, embedded: EmbeddedFormat) -> None:
    values = [b'"' + b"x" * 1_000_000 + b'"'] * 40
    body, status, stall = reading(proxy, embedded, *values, b"1")
    assert status == 200
    assert len(json.loads(body)) == 41
    assert stall < STALL_S


def test_records_up_to_the_first_that_is_not_of_the_format_are_read(proxy: Proxy) -> None:
    body, _, _ = reading(proxy, EmbeddedFormat.JSON, *[b"1"] * 1200, b"?", b"1")
    assert [each["value"] for each in json.loads(body)] == [1] * 1200
    with pytest.raises(RestError, match="Error deserializing record for partition t-0 at offset 0"):
        reading(proxy, EmbeddedFormat.JSON, b"?")
