"""The single path of all requests: frame -> header -> identity -> permission -> quota -> handler.

Each gate (network/gates.py) is called here, in one place, and no request bypasses it. After the gates, two frequent
kinds of request have short forms, which save decoding and encoding and nothing else: a connection's repeated requests,
recognized by their bytes (network/recognition.py), and a Produce request of one batch for one partition. A short form
gives the same response as the API's handler would, or none: then the handler is called, and the short form has had no
side effects. It is not used if the response has a throttle time, or if the permission is not known.

Every request is measured once: here, or by its exchange (network/exchange.py).
"""

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Final, Protocol

from kaspar.base.errors import ErrorCode, MalformedBytes
from kaspar.network.api import Handler, Purgatory, ServedApi
from kaspar.network.connection import Buffers, Connection
from kaspar.network.exchange import Exchange, FrameHandler, Outcome
from kaspar.network.gates import Gates, Quota
from kaspar.network.large_requests import LargeRequests
from kaspar.network.messages import MessageHandler
from kaspar.network.recognition import Recognizer
from kaspar.network.request_metrics import MAX_VERSIONS, RequestMetricsByApi
from kaspar.network.responses import count_errors, encode_response
from kaspar.network.tasks import RequestTasks
from kaspar.protocol.api import api_name
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.headers import RequestHeader, read_request_header
from kaspar.protocol.produce import OneBatch, read_one
from kaspar.protocol.schema import Message
from kaspar.protocol.shapes import ONE_CLIENT_ID, ONE_TOPIC, ONE_VERSION

PRODUCE: Final = int(ApiKey.PRODUCE)
FETCH: Final = int(ApiKey.FETCH)
API_VERSIONS: Final = int(ApiKey.API_VERSIONS)

_KEY_BYTES: Final = 2


class WaitingHandler(FrameHandler, Protocol):
    """A handler whose requests may wait for records or for a commit."""

    def purgatory(self) -> Purgatory: ...

    def release_waiting(self) -> None:
        """Respond to all requests that wait, because the broker stops."""
        ...


class ProduceFrames(WaitingHandler, Protocol):
    def handle_one(self, buffer: bytearray, request: OneBatch) -> Buffers | None:
        """The short form. Returns None, without side effects, if `handle` has to be called instead."""
        ...


class Pipeline:
    def __init__(
        self,
        served: Mapping[int, ServedApi],
        gates: Gates,
        *,
        produce: ProduceFrames,
        fetch: WaitingHandler,
        handler_of: Callable[[ApiKey], Handler],
        recognizer_of: Callable[[ApiKey], Recognizer | None],
        unsupported_version: Callable[[], Message],
        metrics: RequestMetricsByApi,
        large_requests: LargeRequests,
    ) -> None:
        """`handler_of` and `recognizer_of` are called with the first request of an API. `unsupported_version` is the
        response to ApiVersions at an unsupported version.
        """
        self.served = served
        self._authenticate = gates.identity.authenticate
        self._permit = gates.permission.check
        self._may_write = gates.permission.may_write if gates.permission.checks_topics else None
        self._no_quota = gates.quota
        self._throttle_time_ms = gates.quota.throttle_time_ms
        self._produce = produce
        self._measure_produce = produce.metrics.inline
        self._fetch = fetch
        self._handler_of = handler_of
        self._recognizer_of = recognizer_of
        self._unsupported_version = unsupported_version
        self._metrics = metrics
        self._large_requests = large_requests
        self._tasks = RequestTasks()
        self._handlers: dict[int, FrameHandler] = {PRODUCE: produce, FETCH: fetch}

    def use_quota(self, quota: Quota | None) -> None:
        """Use this quota as the gate, or with None the original one."""
        self._throttle_time_ms = (quota or self._no_quota).throttle_time_ms

    def handle(self, connection: Connection, buffer: bytearray, start: int, end: int, received: float) -> Outcome:
        request_bytes = end - start
        known = one = frame = header = None
        # The header: of a request that is recognized by its bytes, of a Produce request of one batch, or of any other.
        if connection.known and request_bytes > _KEY_BYTES:
            known = connection.known.get(buffer[start + 1])
            if known is not None and not known.matches(buffer, start, end):
                known = None
        if known is not None:
            api_key, client_id = buffer[start + 1], known.client_id
        else:
            one = read_one(buffer, start, end)
            if one is not None:
                api_key, client_id = PRODUCE, one[ONE_CLIENT_ID]
            else:
                frame = memoryview(buffer)[start:end]
                header = self._read_header(frame)
                api_key, client_id = header.api_key, header.client_id
        connection.client_id = client_id

        # The gates.
        principal = connection.principal or self._authenticate(connection, api_key)
        short_forms = self._permit(connection, principal, api_key)
        throttle_time_ms = self._throttle_time_ms(principal, client_id, api_key, request_bytes)
        if throttle_time_ms:
            connection.throttle(throttle_time_ms)

        # The short forms.
        if header is None and short_forms and not throttle_time_ms:
            if known is not None and connection.known:
                response = known.handle(buffer, start, end)
                if response is not None:
                    metrics = self._handlers[api_key].metrics
                    metrics.errors[ErrorCode.NONE] += 1
                    metrics.inline(known.version, perf_counter() - received, request_bytes)
                    return response
            elif one is not None and (self._may_write is None or self._may_write(connection, one[ONE_TOPIC])):
                response = self._produce.handle_one(buffer, one)
                if response is not None:
                    self._measure_produce(one[ONE_VERSION], perf_counter() - received, request_bytes)
                    return response

        # The handler.
        if frame is None or header is None:
            frame = memoryview(buffer)[start:end]
            header = self._read_header(frame)
        handler = self._handlers.get(api_key) or self._load(ApiKey(api_key))
        exchange = Exchange(connection, header, handler.metrics, received, request_bytes, principal, throttle_time_ms)
        if throttle_time_ms:
            handler.metrics.throttled(throttle_time_ms / 1000)
        if api_key == API_VERSIONS and not self._serves_api_versions(header.api_version):
            return self._refuse_version(exchange)
        return exchange.measured(handler.handle(exchange, frame))

    def _read_header(self, frame: memoryview) -> RequestHeader:
        header = read_request_header(frame)
        api_key, version, _, _, _ = header
        api = self.served.get(api_key)
        if api is None:
            raise MalformedBytes(f"API key {api_key} is not served")
        if not api.first_version <= version <= api.last_version and api_key != API_VERSIONS:
            raise MalformedBytes(f"version {version} of {api_name(api.key)} is not served")
        return header

    def _serves_api_versions(self, version: int) -> bool:
        api = self.served[API_VERSIONS]
        return api.first_version <= version <= api.last_version

    def _refuse_version(self, exchange: Exchange) -> Buffers:
        """The response to ApiVersions from a client newer than this broker. It is of version 0 and contains the
        supported versions, with one of which the client repeats its request.
        """
        response = self._unsupported_version()
        count_errors(exchange.metrics, 0, response)
        exchange.version = exchange.version if 0 <= exchange.version < MAX_VERSIONS else 0
        encoded = encode_response(0, exchange.correlation_id, response, exchange.throttle_time_ms)
        exchange.measured(encoded)
        return encoded

    def _load(self, key: ApiKey) -> FrameHandler:
        handler = self._handlers[key] = MessageHandler(
            key,
            self._handler_of(key),
            self._metrics.of(api_name(key)),
            self._recognizer_of(key),
            self._large_requests,
            self._tasks,
        )
        return handler

    # -- requests that wait ------------------------------------------------------------------------------------------

    def purgatories(self) -> list[Purgatory]:
        return [self._produce.purgatory(), self._fetch.purgatory()]

    def release_waiting(self) -> None:
        """Respond to requests that wait for records or a commit with what there is, because the broker stops."""
        self._fetch.release_waiting()
        self._produce.release_waiting()

    async def finish(self) -> None:
        """Wait for the requests under way. Those that are not done in time are cancelled."""
        await self._tasks.finish()
