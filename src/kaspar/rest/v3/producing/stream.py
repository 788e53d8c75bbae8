"""POST .../records: consecutive records in JSON, and a response to each as soon as it is written, in the same order. A
request may have one record, or last for hours.

A rejected record gets an error as its response, and later records are still written. But invalid JSON ends the request,
because the start of the next record cannot be found.

A request is read only as fast as its records are written: the number of records in flight is bounded, and beyond it, or
while the client does not read responses, nothing is read. The memory of a request counts towards the limit of all
request bodies (`kaspar.producer.request.bytes`); a request that would exceed that limit ends with an error.
"""

import asyncio
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kaspar.base.errors import ErrorCode
from kaspar.rest.context import RestContext
from kaspar.rest.errors import (
    BAD_REQUEST,
    INVALID_PAYLOAD,
    TOPIC_NOT_FOUND,
    UNKNOWN_TOPIC_OR_PARTITION,
    ErrorKind,
    RestError,
)
from kaspar.rest.http import JSON, decode_body, encode, error_response
from kaspar.rest.json_values import JsonValues, MalformedStream, ValueTooLarge
from kaspar.rest.v3.endpoint import Call, Endpoint, no_cluster
from kaspar.rest.v3.errors import NO_BODY, too_large
from kaspar.rest.v3.producing.bodies import RECORD, Record, Written, timestamp_text
from kaspar.rest.v3.producing.encoding import RecordEncoder
from kaspar.rest.v3.producing.outcomes import Group, Prepared, Result, size_of, submit
from kaspar.rest.v3.resources import ErrorBody
from kaspar.rest.v3.topics import TOPIC
from kaspar.tools.error_messages import DEFAULT_MESSAGES
from kaspar.web.streaming import allow_streaming

TAG: Final = "Records"
_GROUP_RECORDS: Final = 100
_GROUP_BYTES: Final = 1 << 20
_GROUPS: Final = 4
"""The size of the queue of groups in flight, in addition to the group being encoded and the group being awaited."""
_SEPARATOR: Final = b"\r\n"

_Groups = asyncio.Queue[Group | None]


async def produce(call: Call) -> Response:
    await check_target(call)
    return RecordStream(call)


async def check_target(call: Call) -> None:
    """Raises RestError if the topic does not exist."""
    if not await call.context.cluster.has_id(call.identity, call.cluster_id):
        raise no_cluster(call.cluster_id)
    try:
        await call.context.topics.partition_count(call.identity, call.topic)
    except RestError as problem:
        if problem.kind is not TOPIC_NOT_FOUND:
            raise
        message = DEFAULT_MESSAGES[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        raise RestError(UNKNOWN_TOPIC_OR_PARTITION, message) from None


class RecordStream(Response):
    """Reads the request while it writes the response."""

    def __init__(self, call: Call) -> None:
        super().__init__(media_type=JSON)
        self._call = call
        self._context: RestContext = call.context
        registration = call.context.registration(call.identity, call.topic)
        self._encoder = RecordEncoder(call.context.schemas, call.topic, registration)
        self._turn = call.context.turns.begin()
        self._held = 0
        """The bytes that this request has taken from the budget of request bodies."""
        self._max_bytes = call.context.config.settings.kaspar_http_max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allow_streaming(scope)
        groups: _Groups = asyncio.Queue(_GROUPS)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(receive, groups))
                if not await self._write(send, groups):
                    refusal = RestError(INVALID_PAYLOAD, NO_BODY)
                    await error_response(refusal.kind, refusal.message)(scope, receive, send)
        finally:
            self._release(self._held)

    def _hold(self, size: int) -> None:
        """Raises RestError."""
        self._held += self._context.bodies.take(size)

    def _release(self, size: int) -> None:
        self._context.bodies.release(size)
        self._held -= size

    # --- Reading the request ------------------------------------------------------------------------------------------

    async def _read(self, receive: Receive, groups: _Groups) -> None:
        """Read the request, then put None. If the client disconnects, the records received so far are still written."""
        try:
            await self._read_all(receive, groups)
        except HTTPException as problem:  # no data from the client for too long
            kind = ErrorKind(problem.status_code, problem.status_code)
            await groups.put(Group([RestError(kind, problem.detail)], None))
        except RestError as problem:  # the limit of request bodies is reached
            await groups.put(Group([problem], None))
        await groups.put(None)

    async def _read_all(self, receive: Receive, groups: _Groups) -> None:
        values, incomplete, is_more = JsonValues(self._max_bytes), 0, True
        while is_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            values.feed(message.get("body", b""))
            is_more = message.get("more_body", False)
            if not await self._take_all(values, groups, is_end=not is_more):
                return
            self._release(incomplete)
            self._hold(incomplete := values.buffered)

    async def _take_all(self, values: JsonValues, groups: _Groups, *, is_end: bool) -> bool:
        """Submit the records that have arrived. Returns whether more can follow."""
        is_malformed = False
        while not is_malformed:
            prepared, is_malformed = await self._next_group(values, is_end=is_end)
            if not prepared:
                return True
            self._hold(size_of(prepared))
            await groups.put(await submit(self._context, self._call.identity, self._call.topic, prepared))
        return False

    async def _next_group(self, values: JsonValues, *, is_end: bool) -> tuple[list[Prepared], bool]:
        """The next records that have arrived, and whether something that is not a record follows."""
        prepared: list[Prepared] = []
        size = 0
        self._encoder.begin_group()
        while len(prepared) < _GROUP_RECORDS and size < _GROUP_BYTES:
            if self._turn.is_over:
                await self._turn.next()
            try:
                value = values.next()
                if value is None:
                    if values.has_more:
                        continue
                    if is_end:
                        values.end()
                    return prepared, False
                record = _decoded(value)
            except ValueTooLarge:
                return [*prepared, too_large(self._max_bytes)], True
            except MalformedStream as problem:
                return [*prepared, RestError(BAD_REQUEST, f"Bad Request: Error processing JSON: {problem}")], True
            if isinstance(record, RestError):
                prepared.append(record)
                continue
            try:
                encoded = await self._encoder.encode(record)
            except RestError as problem:
                prepared.append(problem)
            else:
                prepared.append(encoded)
                size += encoded.size
        return prepared, False

    # --- Writing the response -----------------------------------------------------------------------------------------

    async def _write(self, send: Send, groups: _Groups) -> bool:
        """Write the responses. Returns whether there were any; if not, nothing has been sent."""
        has_begun = False
        while (group := await groups.get()) is not None:
            body = b"".join(encode(self._answer(each)) + _SEPARATOR for each in await group.results())
            self._release(group.size)
            if not has_begun:
                has_begun = True
                await send({"type": "http.response.start", "status": 200, "headers": [_CONTENT_TYPE]})
            await send({"type": "http.response.body", "body": body, "more_body": True})
        if has_begun:
            await send({"type": "http.response.body", "body": b""})
        return has_begun

    def _answer(self, result: Result) -> Written | ErrorBody:
        if isinstance(result, RestError):
            return ErrorBody(result.kind.code, result.message)
        encoded, delivered = result
        return Written(
            200,
            self._call.cluster_id,
            self._call.topic,
            delivered.partition,
            delivered.offset,
            timestamp_text(delivered.timestamp_ms),
            encoded.key,
            encoded.value,
        )


_CONTENT_TYPE: Final = (b"content-type", JSON.encode())


def _decoded(value: bytes) -> Record | RestError:
    """The record, or an error for JSON that is not a record. Raises MalformedStream for invalid JSON."""
    try:
        return decode_body(RECORD, value)
    except RestError as problem:
        if isinstance(problem.__context__, msgspec.ValidationError):
            return problem
        raise MalformedStream(problem.message) from None


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        f"{TOPIC}/records",
        produce,
        "Write records, streamed in the body; the responses are streamed too",
        TAG,
        Written,
        200,
        Record,
    ),
)
