"""POST /topics/{topic} and /topics/{topic}/partitions/{partition}: writes records to a topic or to one partition.

A record that does not match its format is rejected individually, and the others are written. If no record of a request
matches, the whole request is rejected, with the same status as in Confluent's proxy.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
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
    VALUE_SCHEMA_MISSING,
    RestError,
)
from kaspar.rest.formats import EmbeddedFormat, Encoder
from kaspar.rest.formats.by_schema import Encoding, Registration, SchemaEncoder
from kaspar.rest.formats.plain import NULL, encode_binary, encode_json
from kaspar.rest.http import JsonParts, encode
from kaspar.rest.producing import Delivered, Outcome, OutgoingRecord, Undelivered, WaitForOutcomes
from kaspar.rest.v2 import bodies
from kaspar.rest.v2.content_types import produced_format, response_type
from kaspar.rest.v2.paths import partition_of
from kaspar.rest.v2.record_groups import RawGroups, binary_groups, raw_groups
from kaspar.serialization.errors import TooCostly
from kaspar.serialization.records import RecordWriter
from kaspar.web.turns import Turn

_NOT_RETRIABLE: Final = 1
_RETRIABLE: Final = 2
_WHOLE_REQUEST: Final = (KAFKA_AUTHENTICATION, KAFKA_AUTHORIZATION)
"""The kinds whose codes Confluent's proxy gives to records, and whose status it gives to the whole response."""
_STATUSES: Final[dict[int | None, int]] = {kind.code: kind.status for kind in _WHOLE_REQUEST}
_GROUPS_UNDER_WAY: Final = 20
_OFFSETS: Final = b'{"offsets":['


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
            return await self._produce(identity, embedded, topic, partition, body, media_type)

    async def _check_partition(self, identity: Identity, topic: str, partition: int) -> None:
        count = await self._context.topics.partition_count(identity, topic)
        if partition >= count:
            raise RestError(PARTITION_NOT_FOUND)

    async def _produce(
        self,
        identity: Identity,
        embedded: EmbeddedFormat,
        topic: str,
        partition: int | None,
        body: bytes,
        media_type: str,
    ) -> Response:
        default = -1 if partition is None else partition
        turn = self._context.turns.begin()
        written = _Written(turn)
        submit = partial(self._context.producers.submit, identity, topic)
        if embedded is EmbeddedFormat.BINARY and (ready := await binary_groups(body, default, turn)) is not None:
            for outgoing in ready:
                await written.add(outgoing, submit)
            return await written.response(_Schemas(None, None), media_type)
        request, groups = await raw_groups(body, turn)
        await self._context.topics.partition_count(identity, topic)  # no schema is registered for an unknown topic
        schemas = _Schemas(None, None)
        encode_key: Encoder
        encode_value: Encoder
        if embedded.schema_type is None:
            encode_key = encode_value = encode_binary if embedded is EmbeddedFormat.BINARY else encode_json
        else:
            schemas = await self._schemas(embedded, topic, identity, request, groups, turn)
            encode_key, encode_value = schemas.key or _nothing, schemas.value or _nothing
        for group in groups:
            await written.add(await _encoded(group, encode_key, encode_value, default, turn), submit)
        return await written.response(schemas, media_type)

    async def _schemas(
        self,
        embedded: EmbeddedFormat,
        topic: str,
        identity: Identity,
        request: bodies.RawProduce | bodies.SplitProduce,
        groups: RawGroups,
        turn: Turn,
    ) -> "_Schemas":
        """Raises RestError if there are keys or values but no schema for them."""
        needs_key = not _has_schema(request.key_schema, request.key_schema_id)
        needs_value = not _has_schema(request.value_schema, request.value_schema_id)
        for group in groups:
            if turn.is_over:
                await turn.next()
            if needs_key and any(each.key != NULL for each in group):
                raise RestError(KEY_SCHEMA_MISSING)
            if needs_value and any(each.value != NULL for each in group):
                raise RestError(VALUE_SCHEMA_MISSING)
        writer = partial(self._writer, embedded, topic, self._context.registration(identity, topic))
        key = await writer(request.key_schema, request.key_schema_id, is_key=True)
        value = await writer(request.value_schema, request.value_schema_id, is_key=False)
        encoding = self._context.schemas.encoding()
        return _Schemas(_schema(key, encoding), _schema(value, encoding))

    async def _writer(
        self,
        embedded: EmbeddedFormat,
        topic: str,
        registration: Registration,
        text: str | None,
        schema_id: int | None,
        *,
        is_key: bool,
    ) -> RecordWriter | None:
        schemas = self._context.schemas
        if schema_id is not None:
            return await schemas.writer_by_id(schema_id, topic, is_key=is_key, embedded=embedded)
        if text is not None:
            return await schemas.writer_by_text(text, embedded, topic, registration, is_key=is_key)
        return None


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


def _has_schema(text: str | None, schema_id: int | None) -> bool:
    return text is not None or schema_id is not None


def _nothing(raw: msgspec.Raw) -> bytes | None:
    """The encoder where no schema is given, which implies that there are no keys or values."""
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


class _Written:
    """The groups of records of a request that were submitted, in order, and the parts of the response."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._under_way: deque[tuple[Sequence[OutgoingRecord | RestError], WaitForOutcomes | None]] = deque()
        self._parts: list[bytes] = []
        self._status = 200
        self._refusal: RestError | None = None
        """The error of the first record that could not be encoded."""
        self._is_any_sent = False

    async def add(
        self,
        encoded: Sequence[OutgoingRecord | RestError],
        submit: Callable[[Sequence[OutgoingRecord]], Awaitable[WaitForOutcomes]],
    ) -> None:
        """Raises RestError if a producer rejects the first records of a request."""
        if self._turn.is_over:
            await self._turn.next()
        sent = [each for each in encoded if isinstance(each, OutgoingRecord)]
        if len(sent) < len(encoded):
            self._refusal = self._refusal or next(each for each in encoded if isinstance(each, RestError))
        wait = None
        if sent:
            try:
                wait = await submit(sent)
            except RestError as refusal:
                if not self._is_any_sent:
                    raise
                encoded = [refusal if isinstance(each, OutgoingRecord) else each for each in encoded]
            self._is_any_sent = True
        self._under_way.append((encoded, wait))
        if len(self._under_way) > _GROUPS_UNDER_WAY:
            await self._finish_first()

    async def response(self, schemas: "_Schemas", media_type: str) -> Response:
        """Raises RestError if no record could be encoded."""
        if not self._is_any_sent:
            assert self._refusal is not None
            raise self._refusal
        while self._under_way:
            await self._finish_first()
        # The rest of the response, which follows the offsets, is taken from an encoded response without offsets.
        rest = encode(bodies.ProduceResponse([], schemas.key_id, schemas.value_id))
        parts = [_OFFSETS, *self._parts, rest[len(_OFFSETS) :]]
        return JsonParts(parts, media_type=media_type, status=self._status)

    async def _finish_first(self) -> None:
        if self._turn.is_over:
            await self._turn.next()
        encoded, wait = self._under_way.popleft()
        produced = iter(await wait() if wait is not None else ())
        offsets = [
            _offset(next(produced) if isinstance(each, OutgoingRecord) else Undelivered(each.kind, each.message))
            for each in encoded
        ]
        if self._status == 200:
            self._status = next((_STATUSES[each.error_code] for each in offsets if each.error_code in _STATUSES), 200)
        self._parts.append((b"," if self._parts else b"") + encode(offsets)[1:-1])


def _offset(outcome: Outcome) -> bodies.PartitionOffset:
    if isinstance(outcome, Delivered):
        return bodies.PartitionOffset(outcome.partition, outcome.offset)
    return bodies.PartitionOffset(None, None, _code_of(outcome), outcome.message)


def _code_of(outcome: Undelivered) -> int:
    if outcome.kind in _WHOLE_REQUEST:
        return outcome.kind.code
    return _RETRIABLE if outcome.is_retriable else _NOT_RETRIABLE
