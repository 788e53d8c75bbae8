"""POST /topics/{topic} and /topics/{topic}/partitions/{partition}: records to a topic, or to one partition of it.

A record that does not match its format is rejected individually; the others are written. If no record of a request
matches, the whole request is rejected, with the status of Confluent's proxy.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kaspar.callers.identities import Identity
from kaspar.rest.context import RestContext
from kaspar.rest.errors import (
    KAFKA_AUTHENTICATION,
    KAFKA_AUTHORIZATION,
    KEY_SCHEMA_MISSING,
    PARTITION_NOT_FOUND,
    UNPROCESSABLE,
    VALUE_SCHEMA_MISSING,
    ErrorKind,
    RestError,
)
from kaspar.rest.formats import EmbeddedFormat, Encoder
from kaspar.rest.formats.by_schema import encoder_of
from kaspar.rest.formats.plain import NULL, encode_binary, encode_json
from kaspar.rest.http import decode_body, json_response
from kaspar.rest.producing import Delivered, Outcome, OutgoingRecord, Undelivered
from kaspar.rest.v2 import bodies
from kaspar.rest.v2.content_types import produced_format, response_type
from kaspar.rest.v2.paths import partition_of

_NOT_RETRIABLE: Final = 1
_RETRIABLE: Final = 2
_WHOLE_REQUEST: Final = (KAFKA_AUTHENTICATION, KAFKA_AUTHORIZATION)
"""Confluent's proxy gives their codes to records, and the response their status."""
_AT_ONCE: Final = 100
"""Records that are encoded by a schema before other requests have their turn."""


class ProduceEndpoint:
    def __init__(self, context: RestContext) -> None:
        self._context = context

    async def __call__(self, request: Request) -> Response:
        embedded = produced_format(request.headers.get("content-type"))
        media_type = response_type(request.headers.get("accept"))
        identity = self._context.identity(request)
        topic = request.path_params["topic"]
        async with self._context.bodies.of(request) as body:
            partition = None
            if "partition" in request.path_params:
                partition = partition_of(request)
                await self._check_partition(identity, topic, partition)
            response = await self._produce(identity, embedded, topic, partition, body)
        return json_response(response, media_type=media_type, status=_status(response))

    async def _check_partition(self, identity: Identity, topic: str, partition: int) -> None:
        count = await self._context.topics.partition_count(identity, topic)
        if partition >= count:
            raise RestError(PARTITION_NOT_FOUND)

    async def _produce(
        self, identity: Identity, embedded: EmbeddedFormat, topic: str, partition: int | None, body: bytes
    ) -> bodies.ProduceResponse:
        default = -1 if partition is None else partition
        if embedded is EmbeddedFormat.BINARY and (ready := _binary_records(body, default)) is not None:
            return _response(await self._context.producers.produce(identity, topic, ready))
        request = decode_body(bodies.RAW_PRODUCE, body)
        records = _checked(request.records)
        await self._context.topics.partition_count(identity, topic)  # an unknown topic registers no schema
        schemas = _Schemas(None, None)
        if embedded.schema_type is None:
            encode = encode_binary if embedded is EmbeddedFormat.BINARY else encode_json
            encoded = await _encoded(records, encode, encode, default)
        else:
            schemas = await self._schemas(embedded, topic, request, records)
            encoded = await _encoded(records, schemas.key or _nothing, schemas.value or _nothing, default)
        outcomes = await self._outcomes(identity, topic, encoded)
        return _response(outcomes, key_schema_id=schemas.key_id, value_schema_id=schemas.value_id)

    async def _schemas(
        self,
        embedded: EmbeddedFormat,
        topic: str,
        request: bodies.RawProduce,
        records: Sequence[bodies.RawRecord],
    ) -> "_Schemas":
        """Raises RestError if there are keys or values, and no schema for them."""
        if not _has_schema(request.key_schema, request.key_schema_id) and any(each.key != NULL for each in records):
            raise RestError(KEY_SCHEMA_MISSING)
        if not _has_schema(request.value_schema, request.value_schema_id) and any(
            each.value != NULL for each in records
        ):
            raise RestError(VALUE_SCHEMA_MISSING)
        key = await self._schema(embedded, topic, request.key_schema, request.key_schema_id, is_key=True)
        value = await self._schema(embedded, topic, request.value_schema, request.value_schema_id, is_key=False)
        return _Schemas(key, value)

    async def _schema(
        self, embedded: EmbeddedFormat, topic: str, text: str | None, schema_id: int | None, *, is_key: bool
    ) -> "_Schema | None":
        schemas = self._context.schemas
        if schema_id is not None:
            writer = await schemas.writer_by_id(schema_id, topic, is_key=is_key, embedded=embedded)
        elif text is not None:
            writer = await schemas.writer_by_text(text, embedded, topic, is_key=is_key)
        else:
            return None
        assert writer.schema.id is not None
        return _Schema(encoder_of(writer), writer.schema.id)

    async def _outcomes(
        self, identity: Identity, topic: str, encoded: Sequence[OutgoingRecord | RestError]
    ) -> list[Outcome]:
        """Of all records, those included that could not be encoded."""
        sent = [each for each in encoded if isinstance(each, OutgoingRecord)]
        if not sent:
            raise next(each for each in encoded if isinstance(each, RestError))
        produced = iter(await self._context.producers.produce(identity, topic, sent))
        return [
            next(produced) if isinstance(each, OutgoingRecord) else Undelivered(each.kind, each.message)
            for each in encoded
        ]


class _Schema(msgspec.Struct, frozen=True):
    encode: Encoder
    id: int


class _Schemas(msgspec.Struct, frozen=True):
    of_keys: _Schema | None
    of_values: _Schema | None

    @property
    def key(self) -> Encoder | None:
        return None if self.of_keys is None else self.of_keys.encode

    @property
    def value(self) -> Encoder | None:
        return None if self.of_values is None else self.of_values.encode

    @property
    def key_id(self) -> int | None:
        return None if self.of_keys is None else self.of_keys.id

    @property
    def value_id(self) -> int | None:
        return None if self.of_values is None else self.of_values.id


def _binary_records(body: bytes, partition: int) -> list[OutgoingRecord] | None:
    """The quick way; None if anything about the body is not as it should be."""
    try:
        records = bodies.BINARY_PRODUCE.decode(body).records
        str(body, "utf-8")
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    if not records:
        return None
    ready = []
    for record in records:
        where = record.partition
        if where is None:
            where = partition
        elif where < 0:
            return None
        ready.append(OutgoingRecord(record.key, record.value, where))
    return ready


def _checked(records: list[bodies.RawRecord] | None) -> list[bodies.RawRecord]:
    if not records:
        raise RestError(UNPROCESSABLE, "records must not be empty")
    if any(each.partition is not None and each.partition < 0 for each in records):
        raise RestError(UNPROCESSABLE, "partition must be greater than or equal to 0")
    return records


def _has_schema(text: str | None, schema_id: int | None) -> bool:
    return text is not None or schema_id is not None


def _nothing(raw: msgspec.Raw) -> bytes | None:
    """Where there is no schema, there are no keys or values either."""
    assert raw == NULL
    return None


async def _encoded(
    records: Sequence[bodies.RawRecord], encode_key: Encoder, encode_value: Encoder, partition: int
) -> list[OutgoingRecord | RestError]:
    encoded: list[OutgoingRecord | RestError] = []
    for index, record in enumerate(records):
        if index and index % _AT_ONCE == 0:
            await asyncio.sleep(0)
        where = partition if record.partition is None else record.partition
        try:
            encoded.append(OutgoingRecord(encode_key(record.key), encode_value(record.value), where))
        except RestError as problem:
            encoded.append(problem)
    return encoded


def _response(
    outcomes: Iterable[Outcome], *, key_schema_id: int | None = None, value_schema_id: int | None = None
) -> bodies.ProduceResponse:
    offsets = [
        bodies.PartitionOffset(each.partition, each.offset)
        if isinstance(each, Delivered)
        else bodies.PartitionOffset(None, None, _code_of(each), each.message)
        for each in outcomes
    ]
    return bodies.ProduceResponse(offsets, key_schema_id, value_schema_id)


def _code_of(outcome: Undelivered) -> int:
    if outcome.kind in _WHOLE_REQUEST:
        return outcome.kind.code
    return _RETRIABLE if outcome.is_retriable else _NOT_RETRIABLE


def _status(response: bodies.ProduceResponse) -> int:
    codes: dict[int | None, ErrorKind] = {kind.code: kind for kind in _WHOLE_REQUEST}
    return next((codes[each.error_code].status for each in response.offsets if each.error_code in codes), 200)
