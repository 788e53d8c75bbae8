"""More pages than there is room for get a response that says so, also if they come at once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.responses import Response

from kaspar.console.context import ConsoleContext
from kaspar.console.http.endpoint import Endpoint
from kaspar.console.http.events import EventStream
from kaspar.console.resources.events import events_endpoint
from kaspar.console.resources.records import record_endpoints
from kaspar.web.asgi import Message


async def never(*arguments: Any) -> Any:
    await asyncio.Event().wait()


async def no_rounds() -> AsyncIterator[None]:
    await never()
    yield


CONTEXT = cast(
    "ConsoleContext",
    SimpleNamespace(
        propagates=False,
        sessions=SimpleNamespace(call=never),
        registries=SimpleNamespace(of=lambda identity: None),
        monitor=SimpleNamespace(subscribe=lambda: contextlib.nullcontext(no_rounds())),
    ),
)


def request_of(topic: str, query: bytes = b"") -> Request:
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": query}
    return Request({**scope, "path_params": {"topic": topic}})


async def close(stream: Response) -> None:
    async def left() -> Message:
        return {"type": "http.disconnect"}

    async def unread(message: Message) -> None:
        pass

    await stream({}, left, unread)


async def open_one_too_many(endpoint: Endpoint, requests: list[Request]) -> bytes:
    """What the last request gets, while the others have room. Once they leave, there is room for it too."""
    *opened, refused = [await endpoint.respond(CONTEXT, request) for request in requests]
    assert all(isinstance(each, EventStream) for each in opened)
    assert refused.status_code == 503
    for stream in opened:
        await close(stream)
    again = await endpoint.respond(CONTEXT, requests[-1])
    assert isinstance(again, EventStream)
    await close(again)
    return bytes(refused.body)


def tail_endpoint() -> Endpoint:
    return next(each for each in record_endpoints() if each.path.endswith("/tail"))


def test_topics_that_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaspar.console.messages.tailing.MAX_TAILS", 2)
    body = asyncio.run(open_one_too_many(tail_endpoint(), [request_of(f"t{number}") for number in range(3)]))
    assert b"2 topics are already being followed." in body


def test_pages_that_follow_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaspar.console.messages.tailing.MAX_FOLLOWERS", 2)
    body = asyncio.run(open_one_too_many(tail_endpoint(), [request_of("t")] * 3))
    assert b"2 pages are already following topics." in body


def test_open_pages() -> None:
    body = asyncio.run(open_one_too_many(events_endpoint((), max_pages=2), [request_of("")] * 3))
    assert b"kaspar.console.max.pages is 2." in body
