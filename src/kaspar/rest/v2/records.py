"""GET /consumers/{group}/instances/{instance}/records: reads records of an instance, in its format."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kaspar.rest.consuming.instance import ConsumerInstance, ReadLimits
from kaspar.rest.context import RestContext
from kaspar.rest.errors import REGISTRY_FAILED, RestError
from kaspar.rest.formats import EmbeddedFormat, Headers, UndecodableRecord
from kaspar.rest.formats.plain import decode_binary, decode_json
from kaspar.rest.http import JsonParts, encode, json_response
from kaspar.rest.v2 import bodies
from kaspar.rest.v2.content_types import records_type
from kaspar.rest.v2.paths import number_of

if TYPE_CHECKING:
    from confluent_kafka import Message

_GROUP_RECORDS: Final = 500
_GROUP_BYTES: Final = 64 * 1024

_Decode = Callable[["Message"], bodies.ConsumedRecord]


class RecordsEndpoint:
    def __init__(self, context: RestContext) -> None:
        self._context = context

    async def __call__(self, request: Request) -> Response:
        path = request.path_params
        identity = self._context.identity(request)
        instance = self._context.consumers.get(identity, path["group"], path["instance"])
        media_type = records_type(request.headers.get("accept"), instance.options.format)
        limits = self._limits(instance, number_of(request, "timeout"), number_of(request, "max_bytes"))
        await self._context.consumers.refresh(instance)
        messages = await instance.read(limits, request.is_disconnected)
        array, problem = await self._decoded(instance.options.format, messages)
        if await request.is_disconnected():  # other requests may read the records
            await instance.give_back(messages)
            return json_response([], media_type=media_type)
        await instance.give_back(messages[array.count :])
        if problem is not None and not array.count:
            raise problem
        await instance.deliver(messages[: array.count])
        return JsonParts(array.parts(), media_type=media_type)

    def _limits(self, instance: ConsumerInstance, timeout_ms: int, max_bytes: int) -> ReadLimits:
        settings = self._context.config.settings
        longest = instance.options.request_timeout_ms
        return ReadLimits(
            longest if timeout_ms <= 0 else min(timeout_ms, longest),
            settings.consumer_request_max_bytes
            if max_bytes <= 0
            else min(max_bytes, settings.consumer_request_max_bytes),
            settings.consumer_iterator_backoff_ms / 1000,
        )

    async def _decoded(
        self, embedded: EmbeddedFormat, messages: "Sequence[Message]"
    ) -> "tuple[_RecordArray, RestError | None]":
        """The records up to the first that does not have the format, and the error for that one."""
        decode, array = self._decoder(embedded), _RecordArray()
        if embedded.schema_type is not None:  # decoding may call the registry
            return array, await self._context.schemas.decoding(lambda: _decode_all(decode, messages, array))
        turn = self._context.turns.begin()
        for message in messages:
            if turn.is_over:
                await turn.next()
            if (problem := _decode_one(decode, message, array)) is not None:
                return array, problem
        return array, None

    def _decoder(self, embedded: EmbeddedFormat) -> _Decode:
        schema_type = embedded.schema_type
        if schema_type is None:
            plain = decode_binary if embedded is EmbeddedFormat.BINARY else decode_json
            return lambda message: _record(message, lambda data, is_key: plain(data))
        schemas = self._context.schemas

        def decode(message: "Message") -> bodies.ConsumedRecord:
            headers = _headers(message)
            return _record(message, lambda data, is_key: schemas.decode(data, headers, is_key=is_key, kind=schema_type))

        return decode


class _RecordArray:
    """A JSON array of records, encoded in groups as records are added."""

    def __init__(self) -> None:
        self.count = 0
        self._parts: list[bytes] = []
        self._group: list[bodies.ConsumedRecord] = []
        self._size = 0

    def add(self, record: bodies.ConsumedRecord) -> None:
        self.count += 1
        self._group.append(record)
        self._size += memoryview(record.key).nbytes + memoryview(record.value).nbytes
        if len(self._group) >= _GROUP_RECORDS or self._size >= _GROUP_BYTES:
            self._encode()

    def parts(self) -> list[bytes]:
        if self._group:
            self._encode()
        return [b"[", *self._parts, b"]"]

    def _encode(self) -> None:
        self._parts.append((b"," if self._parts else b"") + encode(self._group)[1:-1])
        self._group, self._size = [], 0


def _decode_all(decode: _Decode, messages: "Sequence[Message]", array: _RecordArray) -> RestError | None:
    for message in messages:
        if (problem := _decode_one(decode, message, array)) is not None:
            return problem
    return None


def _decode_one(decode: _Decode, message: "Message", array: _RecordArray) -> RestError | None:
    """Add the decoded record, or return the error."""
    try:
        array.add(decode(message))
    except UndecodableRecord as problem:
        sentence = (
            f"Error deserializing record for partition {message.topic()}-{message.partition()} at offset "
            f"{message.offset()}: {problem}. If needed, please seek past the record to continue consumption."
        )
        return RestError(REGISTRY_FAILED, sentence)
    return None


def _record(message: "Message", decode: Callable[[bytes | None, bool], msgspec.Raw]) -> bodies.ConsumedRecord:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    key = decode(_bytes(message.key()), True)
    return bodies.ConsumedRecord(topic, key, decode(_bytes(message.value()), False), partition, offset)


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def _headers(message: "Message") -> Headers:
    headers = message.headers()
    if headers is None:
        return None
    assert isinstance(headers, list)
    return [(name, _bytes(value)) for name, value in headers]
