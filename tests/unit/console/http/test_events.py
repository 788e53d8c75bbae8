"""Streams of server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from kaspar.console.http.events import Event, EventStream, encode_event
from kaspar.console.problems import Conflict
from kaspar.web.asgi import Message


class Connection:
    """A page at the other end, which may leave or stop reading."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.left = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()
        self._got_more = asyncio.Event()

    async def send(self, message: Message) -> None:
        await self.reads.wait()
        self.sent.append(message)
        self._got_more.set()

    async def until(self, text: str, times: int = 1) -> None:
        """Return when it has got that."""
        while self.text.count(text) < times:
            self._got_more.clear()
            await self._got_more.wait()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    @property
    def text(self) -> str:
        return b"".join(each.get("body", b"") for each in self.sent).decode()


def test_an_event_is_json_on_one_line() -> None:
    assert encode_event(Event("groups", {"name": "a\nb"}, "7")) == b'event: groups\nid: 7\ndata: {"name":"a\\nb"}\n\n'


def test_events_are_sent_until_they_end() -> None:
    async def events() -> AsyncIterator[Event]:
        yield Event("a", 1)
        yield Event("a", 2)

    async def run() -> Connection:
        page = Connection()
        await EventStream(events())({}, page.receive, page.send)
        return page

    page = asyncio.run(run())
    assert page.sent[0]["status"] == 200
    assert (b"content-type", b"text/event-stream; charset=utf-8") in page.sent[0]["headers"]
    assert page.text.endswith("event: a\ndata: 1\n\nevent: a\ndata: 2\n\n")
    assert page.sent[-1] == {"type": "http.response.body", "body": b""}


def test_the_iterator_is_closed_when_the_page_leaves() -> None:
    closed = []

    async def events() -> AsyncIterator[Event]:
        try:
            yield Event("a", 1)
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def run() -> None:
        page = Connection()
        stream = asyncio.ensure_future(EventStream(events())({}, page.receive, page.send))
        await page.until("event: a")
        page.left.set()
        await stream

    asyncio.run(run())
    assert closed == [True]


def test_what_refuses_a_stream_does_so_before_it_begins_and_is_released_when_it_ends() -> None:
    entered: list[str] = []

    @contextlib.asynccontextmanager
    async def source() -> AsyncIterator[AsyncIterator[Event]]:
        if entered:
            raise Conflict("It is full.")
        entered.append("page")

        async def events() -> AsyncIterator[Event]:
            yield Event("a", 1)
            await asyncio.Event().wait()

        try:
            yield events()
        finally:
            entered.clear()

    async def run() -> None:
        page = Connection()
        stream = await EventStream.opened(source())
        with pytest.raises(Conflict, match="It is full"):
            await EventStream.opened(source())
        serving = asyncio.ensure_future(stream({}, page.receive, page.send))
        await page.until("event: a")
        assert entered
        page.left.set()
        await serving
        assert not entered

    asyncio.run(run())


def test_a_page_that_leaves_before_its_stream_begins_is_released() -> None:
    released = []

    @contextlib.asynccontextmanager
    async def source() -> AsyncIterator[AsyncIterator[Event]]:
        async def events() -> AsyncIterator[Event]:
            yield Event("a", 1)

        try:
            yield events()
        finally:
            released.append(True)

    async def gone(message: Message) -> None:
        raise ConnectionResetError

    async def run() -> None:
        stream = await EventStream.opened(source())
        with pytest.raises(ConnectionResetError):
            await stream({}, Connection().receive, gone)

    asyncio.run(run())
    assert released == [True]


def test_a_silent_stream_beats() -> None:
    async def events() -> AsyncIterator[Event]:
        await asyncio.Event().wait()
        yield Event("never", 0)

    async def run() -> None:
        page = Connection()
        stream = asyncio.ensure_future(EventStream(events(), heartbeat_s=0.001)({}, page.receive, page.send))
        await page.until("event: beat", times=3)
        page.left.set()
        await stream

    asyncio.run(run())


def test_a_page_that_does_not_read_gets_the_newest_and_holds_nothing_back() -> None:
    newest = 0

    async def events() -> AsyncIterator[Event]:
        while True:
            yield Event("state", newest)
            await asyncio.sleep(0)

    async def run() -> Connection:
        nonlocal newest
        page = Connection()
        stream = asyncio.ensure_future(EventStream(events())({}, page.receive, page.send))
        await page.until("data: 0")
        page.reads.clear()
        for _ in range(100):
            newest += 1
            await asyncio.sleep(0)
        held = len(page.sent)
        page.reads.set()
        await page.until("data: 100")
        page.left.set()
        await stream
        assert len(page.sent) - held < 20, "what was missed is not sent later"
        return page

    asyncio.run(run())


def test_a_bug_in_the_events_is_raised() -> None:
    async def events() -> AsyncIterator[Event]:
        yield Event("a", 1)
        raise ValueError("a bug")

    async def run() -> None:
        page = Connection()
        await EventStream(events())({}, page.receive, page.send)

    with pytest.raises(ValueError, match="a bug"):
        asyncio.run(run())
