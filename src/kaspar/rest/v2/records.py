"""GET /consumers/{group}/instances/{instance}/records: records of an instance, in its format."""

import asyncio
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
from kaspar.rest.http import json_response
from kaspar.rest.v2 import bodies
from kaspar.rest.v2.content_types import records_type
from kaspar.rest.v2.paths import number_of

if TYPE_CHECKING:
    from confluent_kafka import Message

_AT_ONCE: Final = 500
"""Records that are decoded before other requests have their turn."""

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
        records, problem = await self._decoded(instance.options.format, messages)
        if await request.is_disconnected():  # somebody else may read them
            await instance.give_back(messages)
            return json_response([], media_type=media_type)
        await instance.give_back(messages[len(records) :])
        if problem is not None and not records:
            raise problem
        await instance.deliver(messages[: len(records)])
        return json_response(records, media_type=media_type)

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
    ) -> tuple[list[bodies.ConsumedRecord], RestError | None]:
        """Those up to the first that is not of the format, and what is wrong with that one."""
        if embedded.schema_type is not None:  # asks the registry
            return await asyncio.to_thread(_decode_all, self._decoder(embedded), messages)
        decode = self._decoder(embedded)
        decoded: list[bodies.ConsumedRecord] = []
        for start in range(0, len(messages), _AT_ONCE):
            part, problem = _decode_all(decode, messages[start : start + _AT_ONCE])
            decoded += part
            if problem is not None:
                return decoded, problem
            await asyncio.sleep(0)
        return decoded, None

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


def _decode_all(decode: _Decode, messages: "Sequence[Message]") -> tuple[list[bodies.ConsumedRecord], RestError | None]:
    decoded: list[bodies.ConsumedRecord] = []
    for message in messages:
        try:
            decoded.append(decode(message))
        except UndecodableRecord as problem:
            sentence = (
                f"Error deserializing record for partition {message.topic()}-{message.partition()} at offset "
                f"{message.offset()}: {problem}. If needed, please seek past the record to continue consumption."
            )
            return decoded, RestError(REGISTRY_FAILED, sentence)
    return decoded, None


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
