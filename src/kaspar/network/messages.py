"""The requests of every API but Produce and Fetch: decoded, handled, and their responses encoded.

There are three kinds of error:
- bytes that are not a request of the API at that version close the connection (`MalformedBytes`);
- a refusal that the response cannot express closes it too (`Exchange.refuse`);
- a bug in a handler is logged with its traceback and closes the connection. The broker goes on, unless an invariant was
  broken (`Listener.request_failed`).
"""

from collections.abc import Awaitable
from typing import Final

from kaspar.base.errors import Refused, TooManyElements
from kaspar.base.named_tuples import new_tuple
from kaspar.network.api import Handler, LaterResponse, PartlyEncoded, RequestContext, Response
from kaspar.network.divisions import asks_for_all_of_several, elements_at_once
from kaspar.network.exchange import Exchange, Outcome
from kaspar.network.large_requests import LargeRequests
from kaspar.network.recognition import HandledRequest, Recognizer
from kaspar.network.request_metrics import RequestMetrics
from kaspar.network.responses import count_errors, encode_response, throttle_time_of
from kaspar.network.tasks import RequestTasks
from kaspar.protocol import codec
from kaspar.protocol.api import request_class
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.schema import Message

MAX_INLINE_BYTES: Final = 256 * 1024
"""Larger requests are read in a thread, however few elements they have."""

_RESPONSES: Final = (Message, PartlyEncoded)


class MessageHandler:
    """The `FrameHandler` of one API."""

    def __init__(
        self,
        key: ApiKey,
        handler: Handler,
        metrics: RequestMetrics,
        recognizer: Recognizer | None,
        large_requests: LargeRequests,
        tasks: RequestTasks,
    ) -> None:
        self.metrics = metrics
        self._key = key
        self._handler = handler
        self._recognizer = recognizer
        self._large_requests = large_requests
        self._tasks = tasks
        self._request_class = request_class(key)
        self._elements_at_once = elements_at_once(key)
        self._is_offset_fetch = key is ApiKey.OFFSET_FETCH

    def handle(self, exchange: Exchange, frame: memoryview) -> Outcome:
        version, correlation_id, connection = exchange.version, exchange.correlation_id, exchange.connection
        context = new_tuple(
            RequestContext,
            (
                self._key,
                version,
                correlation_id,
                exchange.header.client_id,
                connection.peer,
                connection.owner.name,
                exchange.principal,
                connection.security_protocol,
                connection.client,
            ),
        )
        try:
            if len(frame) > MAX_INLINE_BYTES:
                raise TooManyElements(f"{len(frame)} bytes")
            request, _ = codec.read(
                self._request_class,
                version,
                frame,
                exchange.header.body_position,
                max_elements=self._elements_at_once,
            )
            if self._is_offset_fetch and asks_for_all_of_several(request):
                raise TooManyElements("all offsets of several groups")
        except TooManyElements:
            return self._large_requests.take(
                exchange,
                frame,
                lambda kept: self._large_requests.handle_message(exchange, kept, context, self._handler),
            )
        result = self._handler(context, request)
        if isinstance(result, _RESPONSES):
            response = encode_response(version, correlation_id, result, exchange.throttle_time_ms)
            count_errors(self.metrics, version, result)
            if self._recognizer is not None and isinstance(result, Message):
                self._learn(self._recognizer, exchange, frame, request, result)
            return response
        exchange.wait()
        if isinstance(result, LaterResponse):
            result.on_response(exchange.respond)
        else:
            self._tasks.spawn(_respond_later(exchange, result), name=f"{self.metrics.name} of {connection.peer}")
        return exchange

    @staticmethod
    def _learn(
        recognizer: Recognizer, exchange: Exchange, frame: memoryview, request: Message, response: Message
    ) -> None:
        header, connection = exchange.header, exchange.connection
        before = connection.known.get(header.api_key)
        handled = HandledRequest(connection.peer, frame, header, request, response, exchange.principal)
        known = recognizer.learn(before, handled)
        if known is not None:
            connection.known[header.api_key] = known


async def _respond_later(exchange: Exchange, result: Awaitable[Response]) -> None:
    try:
        response = await result
    except Refused as refusal:  # by the controller: the metadata store is full, or the broker stops
        exchange.refuse(refusal)
    except Exception as problem:
        exchange.fail(problem)
    else:
        exchange.throttle(throttle_time_of(response))
        exchange.respond(response)
