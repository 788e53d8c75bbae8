"""Requests that would block the event loop for too long: they are read in a thread and handled in turns.

Rules:
- The connection takes no further request until this one is handled, so a client's requests are handled, and their
  responses sent, in order.
- One thread at a time reads such requests and encodes their responses. It shares the interpreter with the event loop,
  in turns of `sys.setswitchinterval`.
- In a turn of the loop one piece of all large requests is handled. Between two pieces everything else gets a turn.
- Only a few are under way at a time; the others wait in encoded form. Produce and Fetch do not wait for other APIs,
  which may take long, nor short requests for long ones: a disconnected client is not noticed before its request is
  handled, and may send its next requests over new connections, again and again.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from kaspar.base.errors import MalformedBytes, Refused
from kaspar.network.api import Handler, PartlyEncoded, RequestContext, Response
from kaspar.network.connection import Buffers, Slot
from kaspar.network.divisions import Division, JoinedResponse, division_of, max_elements, pieces
from kaspar.network.exchange import Exchange, Outcome
from kaspar.network.responses import count_errors, encode_response, throttle_time_of
from kaspar.network.tasks import LAST_S, RequestTasks
from kaspar.protocol import codec
from kaspar.protocol.api import request_class
from kaspar.protocol.schema import Message

UNDER_WAY: Final = 4
SHORT_UNDER_WAY: Final = 16
SHORT_BYTES: Final = 32 * 1024

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
"""Work that pauses about every millisecond, and finally returns its result."""


class RunBlocking(Protocol):
    """Runs blocking work in a thread."""

    def __call__(self, work: Callable[..., T], /, *arguments: Any) -> Awaitable[T]: ...


def run_through(steps: Steps[T]) -> T:
    """Run all steps now."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class LargeRequests:
    def __init__(self, run_blocking: RunBlocking) -> None:
        self._run_blocking = run_blocking
        self.under_way = asyncio.Semaphore(UNDER_WAY)
        """For Produce and Fetch, which wait for nothing but their turn."""
        self._messages_under_way = asyncio.Semaphore(UNDER_WAY)
        self._short_under_way = asyncio.Semaphore(SHORT_UNDER_WAY)
        self._thread = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._tasks = RequestTasks()

    def take(self, exchange: Exchange, frame: memoryview, work: Callable[[memoryview], Awaitable[Outcome]]) -> Slot:
        """Hold the connection's further requests until `work` is done. Its outcome is put into the slot."""
        connection = exchange.connection
        kept = connection.hold(frame)
        slot = connection.take_slot()
        self._tasks.spawn(
            self._handle_taken(exchange, slot, work(kept)), name=f"{exchange.metrics.name} of {connection.peer}, large"
        )
        return slot

    async def _handle_taken(self, exchange: Exchange, slot: Slot, work: Awaitable[Outcome]) -> None:
        connection = exchange.connection
        try:
            outcome = exchange.measured(await work)
        except MalformedBytes as problem:
            connection.owner.malformed_requests.value += 1
            connection.refuse(str(problem))
        except Refused as refusal:  # by the controller: the metadata store is full, or the broker stops
            exchange.refuse(refusal)
        except Exception as problem:
            slot.fail(problem)
        else:
            # An exchange that finishes later has its own place after this one.
            slot.fill(None if isinstance(outcome, Slot) else outcome)
            connection.resume()

    # -- handling ----------------------------------------------------------------------------------------------------

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        async with self._thread:
            return await self._run_blocking(work, *arguments)

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The only piece of large requests that is handled in this turn of the loop."""
        async with self._turn:
            yield
            await asyncio.sleep(0)

    async def in_turns(self, steps: Steps[T]) -> T:
        while True:
            async with self.turn():
                try:
                    next(steps)
                except StopIteration as end:
                    result: T = end.value
                    return result

    # -- every API but Produce and Fetch -----------------------------------------------------------------------------

    async def handle_message(
        self, exchange: Exchange, frame: memoryview, context: RequestContext, handler: Handler
    ) -> Buffers:
        async with self._short_under_way if len(frame) <= SHORT_BYTES else self._messages_under_way:
            request = await self.in_thread(_read, frame, context, exchange.header.body_position)
            division = division_of(context.api_key, request)
            if division is not None:
                response = await self._handle_pieces(exchange, handler, context, request, division)
        if division is None:  # it may wait for other requests, as a joining member does, and these for a permit
            response = await self._handle(handler, context, request)
            exchange.throttle(throttle_time_of(response))
            count_errors(exchange.metrics, context.version, response)
        return await self.in_thread(
            encode_response, context.version, context.correlation_id, response, exchange.throttle_time_ms
        )

    async def _handle_pieces(
        self, exchange: Exchange, handler: Handler, context: RequestContext, request: Message, division: Division
    ) -> Response:
        joined = JoinedResponse(division, context.version)
        for piece, goes_on in pieces(request, division):
            response = await self._handle(handler, context, piece)
            exchange.throttle(throttle_time_of(response))
            count_errors(exchange.metrics, context.version, response)
            await self.in_thread(functools.partial(joined.add, response, goes_on=goes_on))
            if exchange.connection.transport.is_closing():
                break  # the response is no longer needed
        return await self.in_thread(joined.whole)

    async def _handle(self, handler: Handler, context: RequestContext, request: Message) -> Response:
        async with self.turn():
            result = handler(context, request)
            if not isinstance(result, Message | PartlyEncoded):
                result = asyncio.ensure_future(result)
        return result if isinstance(result, Message | PartlyEncoded) else await result

    # -- stopping ----------------------------------------------------------------------------------------------------

    async def begin_no_more(self) -> None:
        """Start no more requests. Wait until those that have started are handled, and their batches appended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                for _ in range(UNDER_WAY):
                    await self.under_way.acquire()
                    await self._messages_under_way.acquire()
                for _ in range(SHORT_UNDER_WAY):
                    await self._short_under_way.acquire()

    async def finish(self) -> None:
        """Wait for the responses under way."""
        await self._tasks.finish()


def _read(frame: memoryview, context: RequestContext, position: int) -> Message:
    key = context.api_key
    request, _ = codec.read(request_class(key), context.version, frame, position, max_elements=max_elements(key))
    return request
