"""Requests that would hold up the event loop: read in a thread, handled in turns.

Rules:
- The connection takes no further request until this one is handled, so a client's requests are carried out, and
  answered, in their order.
- One thread at a time reads such requests and writes their responses. The interpreter is shared with it in turns of
  `sys.setswitchinterval`.
- One piece of all large requests is handled in a turn of the loop. Between two of them everybody else has a turn.
- Few are under way at a time; the others wait as the bytes that they came in. Produce and Fetch do not wait for other
  APIs, which may take long, and a short request not for the long ones: a client that leaves is not noticed before its
  request is answered, and may ask again and again.
"""

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from kaspar.base.errors import MalformedBytes, Refused
from kaspar.broker.connection import Buffers, Connection, Slot
from kaspar.broker.divisions import Division, JoinedResponse, division_of, max_elements, pieces
from kaspar.broker.handlers import Handler, PartlyEncoded, RequestContext, Response
from kaspar.broker.metrics import RequestMetrics
from kaspar.broker.responses import count_errors, encode_response
from kaspar.protocol import codec
from kaspar.protocol.api import request_class
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

UNDER_WAY: Final = 4
SHORT_UNDER_WAY: Final = 16
SHORT_BYTES: Final = 32 * 1024
LAST_S: Final = 5.0  # how long they may take when the broker stops

T = TypeVar("T")
Outcome: TypeAlias = Buffers | Slot | None
"""What a handler makes of a request: its response, a slot that is filled later, None where it has no response."""

Steps: TypeAlias = Generator[None, None, T]
"""Work that stops after about a millisecond each time, and returns its result."""


def run_through(steps: Steps[T]) -> T:
    """All of it now."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class LargeRequests:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.under_way = asyncio.Semaphore(UNDER_WAY)
        """Of Produce and Fetch, which never wait for anything but their turn."""
        self._messages_under_way = asyncio.Semaphore(UNDER_WAY)
        self._short_under_way = asyncio.Semaphore(SHORT_UNDER_WAY)
        self._thread = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def take(
        self, connection: Connection, frame: memoryview, name: str, work: Callable[[memoryview], Awaitable[Outcome]]
    ) -> Slot:
        """Hold the connection's further requests until `work` is done; its outcome goes into the slot."""
        kept = connection.hold(frame)
        slot = connection.take_slot()
        task = asyncio.get_running_loop().create_task(
            self._carry_out(connection, slot, work(kept)), name=f"{name} of {connection.peer}, large"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return slot

    async def _carry_out(self, connection: Connection, slot: Slot, work: Awaitable[Outcome]) -> None:
        try:
            outcome = await work
        except MalformedBytes as problem:
            connection.owner.malformed_requests.value += 1
            connection.refuse(str(problem))
        except Refused as refusal:
            # The controller refused all of it: the metadata store is full, or the broker stops. The client asks again.
            connection.refuse(f"a request could not be carried out: {refusal.message}")
        except Exception as problem:
            slot.fail(problem)
        else:
            # A slot of its own has its place behind this one.
            slot.fill(None if isinstance(outcome, Slot) else outcome)
            connection.go_on()

    # -- what the work is made of ------------------------------------------------------------------------------------

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        async with self._thread:
            return await self._broker.run_blocking(work, *arguments)

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """What stands in it is all that is done of large requests in this turn of the loop."""
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
        self,
        connection: Connection,
        frame: memoryview,
        header: RequestHeader,
        context: RequestContext,
        handler: Handler,
        metrics: RequestMetrics,
        received: float,
    ) -> Buffers:
        version = context.version
        async with self._short_under_way if len(frame) <= SHORT_BYTES else self._messages_under_way:
            request = await self.in_thread(_read, frame, context, header.body_position)
            division = division_of(context.api_key, request)
            if division is not None:
                response = await self._handle_pieces(connection, handler, context, request, division, metrics)
        if division is None:  # it may wait for others, as a member that joins does, and those for room under way
            response = await self._handle(handler, context, request)
            count_errors(metrics, version, response)
        encoded = await self.in_thread(encode_response, version, header.correlation_id, response)
        metrics.inline(version, time.perf_counter() - received, len(frame))
        return encoded

    async def _handle_pieces(
        self,
        connection: Connection,
        handler: Handler,
        context: RequestContext,
        request: Message,
        division: Division,
        metrics: RequestMetrics,
    ) -> Response:
        response = JoinedResponse(division, context.version)
        for piece, goes_on in pieces(request, division):
            answer = await self._handle(handler, context, piece)
            count_errors(metrics, context.version, answer)
            await self.in_thread(functools.partial(response.add, answer, goes_on=goes_on))
            if connection.transport.is_closing():
                break  # nobody waits for the response any longer
        return await self.in_thread(response.whole)

    async def _handle(self, handler: Handler, context: RequestContext, request: Message) -> Response:
        async with self.turn():
            answer = handler(self._broker, context, request)
            if not isinstance(answer, Message | PartlyEncoded):
                answer = asyncio.ensure_future(answer)
        return answer if isinstance(answer, Message | PartlyEncoded) else await answer

    # -- stopping ----------------------------------------------------------------------------------------------------

    async def begin_no_more(self) -> None:
        """What has begun is handled, its batches appended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                for _ in range(UNDER_WAY):
                    await self.under_way.acquire()
                    await self._messages_under_way.acquire()
                for _ in range(SHORT_UNDER_WAY):
                    await self._short_under_way.acquire()

    async def finish(self) -> None:
        """Wait for the responses; what still waits then is cancelled."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=LAST_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)


def _read(frame: memoryview, context: RequestContext, position: int) -> Message:
    key = context.api_key
    request, _ = codec.read(request_class(key), context.version, frame, position, max_elements=max_elements(key))
    return request
