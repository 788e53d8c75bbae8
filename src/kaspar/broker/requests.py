"""From a frame to a handler and back: the request header, the API's table, decoding, timing, errors.

Produce and Fetch go straight to their own handlers with the bytes as they came. So that they cost least, the most
frequent requests, one batch for one partition, one commit for one partition, and what members of groups ask for again
and again, are read and answered on shorter ways, which give the same answers wherever they give one. Every other API is
decoded to its one message shape, handled, and its answer encoded at the version it was asked in. Kinds of trouble, kept
apart:
- bytes that are no request of a served API and version: the connection is closed (`MalformedBytes`);
- a handler's own failure (a bug): logged with its traceback, the connection closed, the broker goes on unless it was a
  broken invariant (`Listener.request_failed`).
"""

import asyncio
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import MalformedBytes, Refused, TooManyElements
from kaspar.broker.connection import Buffers, Connection, Slot
from kaspar.broker.coordination.tickets import RequestTicket
from kaspar.broker.divisions import asks_for_all_of_several, elements_at_once
from kaspar.broker.handlers import Handler, PartlyEncoded, RequestContext, ServedApi, served_with
from kaspar.broker.handlers.api_versions import unsupported_version
from kaspar.broker.handlers.fetch import FetchHandler
from kaspar.broker.handlers.produce import ProduceHandler
from kaspar.broker.metrics import RequestMetrics
from kaspar.broker.metrics.requests import MAX_VERSIONS
from kaspar.broker.responses import Delayed, count_errors, encode_response
from kaspar.broker.view import Purgatory
from kaspar.protocol import codec
from kaspar.protocol.api import api_name, request_class
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.headers import RequestHeader, read_request_header
from kaspar.protocol.produce import read_one
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.frequent_commits import FrequentCommits
    from kaspar.broker.frequent_members import FrequentMembers
    from kaspar.broker.server import Broker

PRODUCE: Final = int(ApiKey.PRODUCE)
FETCH: Final = int(ApiKey.FETCH)
API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
OFFSET_COMMIT: Final = int(ApiKey.OFFSET_COMMIT)
OFFSET_FETCH: Final = int(ApiKey.OFFSET_FETCH)
MEMBER_REQUESTS: Final = frozenset(
    map(int, (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT))
)
RESPONSES: Final = (Message, PartlyEncoded)

MAX_INLINE_BYTES: Final = 256 * 1024
"""Of a request that is no Produce: a larger one is read in a thread, however few elements it has."""

_KEY_BYTES: Final = 2
_OFFSET_COMMIT_BEGINS: Final = OFFSET_COMMIT.to_bytes(_KEY_BYTES, "big")

_new = tuple.__new__  # a named tuple's own constructor takes three times as long


class Requests:
    def __init__(self, broker: "Broker") -> None:
        self.served = served_with(broker.config)
        self._broker = broker
        self._produce = ProduceHandler(broker)
        self._fetch = FetchHandler(broker)
        self._commits: FrequentCommits | None = None  # made when the first one comes
        self._members: FrequentMembers | None = None
        self._handlers: dict[int, tuple[Handler, RequestMetrics]] = {}
        self._at_once = {key: elements_at_once(key) for key in self.served}
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        if connection.known and end - start > _KEY_BYTES:
            known = connection.known.get(buffer[start + 1])
            if known is not None and known.is_it(buffer, start, end):
                again = known.again(connection, buffer, start, end, received)
                if again is not None:
                    return again
        one = read_one(buffer, start, end)
        if one is not None:
            response = self._produce.handle_one(connection, buffer, one, end - start, received)
            if response is not None:
                return response
        elif self._commits is not None and buffer[start : start + 2] == _OFFSET_COMMIT_BEGINS:
            response = self._commits.handle(connection, buffer, start, end, received)
            if response is not None:
                return response
        frame = memoryview(buffer)[start:end]
        header = read_request_header(frame)
        api = self.served.get(header.api_key)
        if api is None:
            raise MalformedBytes(f"API key {header.api_key} is not served")
        if not api.first_version <= header.api_version <= api.last_version:
            if header.api_key == API_VERSIONS:
                return self._unsupported_version(header, end - start, received)
            raise MalformedBytes(f"version {header.api_version} of {api_name(api.key)} is not served")
        connection.client_id = header.client_id
        if header.api_key == PRODUCE:
            return self._produce.handle(connection, frame, header, received)
        if header.api_key == FETCH:
            return self._fetch.handle(connection, frame, header, received)
        return self._handle_message(connection, frame, header, api, received)

    def _unsupported_version(self, header: RequestHeader, request_bytes: int, received: float) -> Buffers:
        """A client newer than this broker: it reads the versions from the response and asks again in one of them."""
        metrics = self._broker.metrics.requests.of(api_name(ApiKey.API_VERSIONS))
        answer = unsupported_version()
        response = encode_response(0, header.correlation_id, answer)
        count_errors(metrics, 0, answer)
        known = header.api_version if 0 <= header.api_version < MAX_VERSIONS else 0
        metrics.inline(known, time.perf_counter() - received, request_bytes)
        return response

    # -- every API but Produce and Fetch -----------------------------------------------------------------------------

    def _handle_message(
        self, connection: Connection, frame: memoryview, header: RequestHeader, api: ServedApi, received: float
    ) -> Buffers | Slot:
        version = header.api_version
        context = _new(
            RequestContext,
            (api.key, version, header.correlation_id, header.client_id, connection.peer, connection.owner.name),
        )
        handler, metrics = self._handlers.get(api.key) or self._load(api)
        try:
            if len(frame) > MAX_INLINE_BYTES:
                raise TooManyElements(f"{len(frame)} bytes")
            request, _ = codec.read(
                request_class(api.key), version, frame, header.body_position, max_elements=self._at_once[api.key]
            )
            if api.key == OFFSET_FETCH and asks_for_all_of_several(request):
                raise TooManyElements("all offsets of several groups")
        except TooManyElements:
            return self._broker.large_requests.take(
                connection,
                frame,
                api_name(api.key),
                lambda kept: self._broker.large_requests.handle_message(
                    connection, kept, header, context, handler, metrics, received
                ),
            )
        answer = handler(self._broker, context, request)
        if header.api_key in MEMBER_REQUESTS:
            self._frequent_members().remember(connection, frame, header, request, answer)
        if isinstance(answer, RESPONSES):
            response = encode_response(version, header.correlation_id, answer)
            count_errors(metrics, version, answer)
            if header.api_key == OFFSET_COMMIT:
                self._frequent_commits().remember(frame, header, request, answer)
            metrics.inline(version, time.perf_counter() - received, len(frame))
            return response
        delayed = Delayed(connection, metrics, version, header.correlation_id, received, len(frame))
        connection.line_up(delayed)
        if isinstance(answer, RequestTicket):
            answer.when_answered(delayed.answered)
            return delayed
        task = asyncio.get_running_loop().create_task(
            self._finish(delayed, answer), name=f"{api_name(api.key)} of {connection.peer}"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return delayed

    def _load(self, api: ServedApi) -> tuple[Handler, RequestMetrics]:
        loaded = self._handlers[api.key] = (api.load(), self._broker.metrics.requests.of(api_name(api.key)))
        return loaded

    def _frequent_commits(self) -> "FrequentCommits":
        if self._commits is None:
            from kaspar.broker.frequent_commits import FrequentCommits

            self._commits = FrequentCommits(self._broker)
        return self._commits

    def _frequent_members(self) -> "FrequentMembers":
        if self._members is None:
            from kaspar.broker.frequent_members import FrequentMembers

            self._members = FrequentMembers(self._broker)
        return self._members

    @staticmethod
    async def _finish(delayed: Delayed, answer: Awaitable[Message | PartlyEncoded]) -> None:
        try:
            response = await answer
        except Refused as refusal:
            # The controller refused all of it: the metadata store is full, or the broker stops. The client asks again.
            delayed.refused(refusal)
        except Exception as problem:
            delayed.fail(problem)
        else:
            delayed.answered(response)

    def purgatories(self) -> list[Purgatory]:
        return [self._produce.purgatory(), self._fetch.purgatory()]

    def release_waiting(self) -> None:
        """The broker stops: requests that wait for data or a commit are answered with what there is."""
        self._fetch.release_waiting()
        self._produce.release_waiting()

    async def finish(self) -> None:
        """Wait for the requests under way; what still waits then is cancelled."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=5)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
