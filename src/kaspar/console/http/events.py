"""Server-sent events: a response that stays open as long as its page.

A page that reads slowly delays only its own stream. It then gets the newest state, not what it has missed, because
events are created when there is room for them.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final, NamedTuple, Self

import msgspec
from starlette.responses import Response

from kaspar.web.asgi import Receive, Scope, Send

HEARTBEAT_S: Final = 10.0
"""The interval of heartbeats. The page considers a stream lost if it is silent for longer than a few of these."""
RETRY_MS: Final = 2_000
_HEARTBEAT: Final = b"event: beat\ndata: 1\n\n"
"""An event and not a comment, because scripts of the page cannot see comments."""


class Event(NamedTuple):
    name: str
    data: Any
    """A value that is sent as JSON."""
    id: str = ""


def encode_event(event: Event) -> bytes:
    head = f"event: {event.name}\n" + (f"id: {event.id}\n" if event.id else "")
    return head.encode() + b"data: " + msgspec.json.encode(event.data) + b"\n\n"


class EventStream(Response):
    """Sends the events, with heartbeats in between, until they end or the page disconnects; then it closes them."""

    @classmethod
    async def opened(cls, source: contextlib.AbstractAsyncContextManager[AsyncIterator[Event]]) -> Self:
        """A stream of the events that the context yields. The context is entered now, so that an exception becomes a
        response with its own status, and exited when the stream has ended."""
        async with contextlib.AsyncExitStack() as context:
            stream = cls(await context.enter_async_context(source))
            stream._context = context.pop_all()
            return stream

    def __init__(self, events: AsyncIterator[Event], *, heartbeat_s: float = HEARTBEAT_S) -> None:
        super().__init__(
            media_type="text/event-stream", headers={"cache-control": "no-store", "x-accel-buffering": "no"}
        )
        del self.headers["content-length"]
        self._events = events
        self._heartbeat_s = heartbeat_s
        self._context = contextlib.AsyncExitStack()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._context:
            await self._stream(receive, send)

    async def _stream(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.wait((sending, leaving))
        if not sending.cancelled():
            sending.result()  # raises if the events had a bug
            await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send) -> None:
        await _body(send, b"retry: %d\n\n" % RETRY_MS)
        async with contextlib.aclosing(_beating(self._events, self._heartbeat_s)) as chunks:
            async for chunk in chunks:
                await _body(send, chunk)


async def _beating(events: AsyncIterator[Event], heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """The events as bytes, with a heartbeat whenever there was no event for this interval."""
    following: asyncio.Future[Event] | None = None
    try:
        while True:
            if following is None:
                following = asyncio.ensure_future(anext(events))
            await asyncio.wait((following,), timeout=heartbeat_s)
            if not following.done():
                yield _HEARTBEAT
                continue
            try:
                event = following.result()
            except StopAsyncIteration:
                return
            following = None
            yield encode_event(event)
    finally:
        if following is not None:
            following.cancel()
            await asyncio.wait((following,))
        if (close := getattr(events, "aclose", None)) is not None:
            await close()


async def _body(send: Send, content: bytes) -> None:
    await send({"type": "http.response.body", "body": content, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
