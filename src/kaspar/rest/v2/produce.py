"""POST /topics/{topic} and /topics/{topic}/partitions/{partition}: records to a topic, or to one partition of it.

A record that is not of its format is refused by itself, beside others that are written. Where none of a request is of
its format, the whole request is, with the status that Confluent's proxy has for it.
"""

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
from kaspar.rest.formats.by_schema import Encoding, SchemaEncoder
from kaspar.rest.formats.plain import NULL, encode_binary, encode_json
from kaspar.rest.http import decode_body, json_response
from kaspar.rest.producing import Delivered, Outcome, OutgoingRecord, Undelivered
from kaspar.rest.v2 import bodies
from kaspar.rest.v2.content_types import produced_format, response_type
from kaspar.rest.v2.paths import partition_of
from kaspar.serialization.errors import TooCostly
from kaspar.serialization.records import RecordWriter
from kaspar.web.turns import Turn

_NOT_RETRIABLE: Final = 1
_RETRIABLE: Final = 2
_WHOLE_REQUEST: Final = (KAFKA_AUTHENTICATION, KAFKA_AUTHORIZATION)
"""Confluent's proxy gives their codes to records, and the response their status."""


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
            encoded = await _encoded(records, encode, encode, default, self._context.turns.begin())
        else:
            schemas = await self._schemas(embedded, topic, request, records)
            encode_key, encode_value = schemas.key or _nothing, schemas.value or _nothing
            encoded = await _encoded(records, encode_key, encode_value, default, self._context.turns.begin())
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
        key = await self._writer(embedded, topic, request.key_schema, request.key_schema_id, is_key=True)
        value = await self._writer(embedded, topic, request.value_schema, request.value_schema_id, is_key=False)
        encoding = self._context.schemas.encoding()
        return _Schemas(_schema(key, encoding), _schema(value, encoding))

    async def _writer(
        self, embedded: EmbeddedFormat, topic: str, text: str | None, schema_id: int | None, *, is_key: bool
    ) -> RecordWriter | None:
        schemas = self._context.schemas
        if schema_id is not None:
            return await schemas.writer_by_id(schema_id, topic, is_key=is_key, embedded=embedded)
        if text is not None:
            return await schemas.writer_by_text(text, embedded, topic, is_key=is_key)
        return None

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


def _schema(writer: RecordWriter | None, encoding: Encoding) -> _Schema | None:
    if writer is None:
        return None
    assert writer.schema.id is not None
    return _Schema(SchemaEncoder(writer, encoding), writer.schema.id)


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
    records: Sequence[bodies.RawRecord], encode_key: Encoder, encode_value: Encoder, partition: int, turn: Turn
) -> list[OutgoingRecord | RestError]:
    encoded: list[OutgoingRecord | RestError] = []
    for record in records:
        if turn.is_over:
            await turn.next()
        where = partition if record.partition is None else record.partition
        try:
            try:
                outgoing = OutgoingRecord(encode_key(record.key), encode_value(record.value), where)
            except TooCostly:
                key, value = await _slowly(encode_key, record.key), await _slowly(encode_value, record.value)
                outgoing = OutgoingRecord(key, value, where)
        except RestError as problem:
            encoded.append(problem)
        else:
            encoded.append(outgoing)
    return encoded


async def _slowly(encode: Encoder, raw: msgspec.Raw) -> bytes | None:
    return await encode.slowly(raw) if isinstance(encode, SchemaEncoder) else encode(raw)


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
