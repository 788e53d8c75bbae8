"""A small service for tests of what serves it: says who calls, reads bodies, fails, streams."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kaspar.base.errors import KasparError
from kaspar.web.asgi import App, Receive, Scope, Send
from kaspar.web.errors import ErrorForm, json_error_form
from kaspar.web.host_thread import HostThread
from kaspar.web.hosting import HostedService
from kaspar.web.identity import caller_of
from kaspar.web.settings import WebSettings
from kaspar.web.streaming import allow_streaming

CONTENT_TYPE = "application/vnd.fake+json"


class FakeService:
    """`problem` is what its start fails with."""

    def __init__(self, name: str = "fake", *, problem: str = "", **settings: str) -> None:
        values = {attribute.replace("_", "."): value for attribute, value in settings.items()}
        self.settings = WebSettings.of({"listeners": "http://127.0.0.1:0", **values})
        self.name = name
        self.urls: tuple[str, ...] = ()
        self.is_started = False
        self.was_stopped = False
        self.waiting = threading.Event()
        """Set when a request waits at /wait."""
        self._released = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._problem = problem

    @property
    def error_form(self) -> ErrorForm:
        return json_error_form(CONTENT_TYPE)

    @property
    def app(self) -> App:
        return Starlette(
            routes=[
                Route("/caller", self._caller),
                Route("/read", self._read, methods=["POST"]),
                Route("/stream", self._stream, methods=["POST"]),
                Route("/fail", self._fail),
                Route("/wait", self._wait),
            ],
            exception_handlers={HTTPException: _refused},
        )

    def bound(self, listeners: Sequence[str]) -> None:
        self.urls = tuple(listeners)

    async def start(self) -> None:
        if self._problem:
            raise KasparError(self._problem)
        self._loop = asyncio.get_running_loop()
        self.is_started = True

    async def stop(self) -> None:
        self.was_stopped = True

    async def _caller(self, request: Request) -> Response:
        caller = caller_of(request.scope)
        scheme = None if caller.scheme is None else caller.scheme.value
        return JSONResponse({"name": caller.name, "scheme": scheme, "credentials": caller.credentials})

    async def _read(self, request: Request) -> Response:
        return JSONResponse(len(await request.body()))

    async def _stream(self, request: Request) -> Response:
        allow_streaming(dict(request.scope))  # frameworks copy scopes
        return _Sizes()

    async def _fail(self, request: Request) -> Response:
        raise RuntimeError("a bug, with a secret in it")

    async def _wait(self, request: Request) -> Response:
        self.waiting.set()
        await self._released.wait()
        return JSONResponse("released")

    def release(self) -> None:
        """Let requests at /wait go on. From any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._released.set)


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    return JSONResponse({"error_code": problem.status_code, "message": problem.detail}, problem.status_code)


class _Sizes(Response):
    """Of each part of the body, as soon as it is here. Starlette's own would wait for the end of the connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        more_body = True
        while more_body:
            message = await receive()
            more_body = message.get("more_body", False)
            size = b"%d\n" % len(message.get("body", b""))
            await send({"type": "http.response.body", "body": size, "more_body": more_body})


@contextlib.contextmanager
def hosted(*services: HostedService) -> Iterator[None]:
    """As long as the block runs. Raises what their start fails with."""
    running = HostThread(services)
    running.start()
    try:
        yield
    finally:
        running.stop()
