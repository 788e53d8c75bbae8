"""The REST proxy in a thread of its own, over real sockets."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import uvloop

from kaspar.base.clock import Clock
from kaspar.rest.running import RestServer
from kaspar.web.authentication import Authenticator, BasicAuthenticator, TokenAuthenticator
from kaspar.web.credentials import TokensFile, UsersFile
from kaspar.web.limits import connection_limits, request_limits
from kaspar.web.listeners import bind_all, parse_listeners
from kaspar.web.requests import Gate, LogIn
from kaspar.web.server import WebServer

START_S = 20.0


class RunningRest:
    """`url` is where it listens."""

    def __init__(self, values: Mapping[str, str], *, clock: Clock | None = None) -> None:
        self.server = RestServer({"listeners": "http://127.0.0.1:0", **values}, clock=clock)
        self.url = ""
        self._authenticator = _authenticator(values)
        self._ready = threading.Event()
        self._problem: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_requested: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="rest-under-test", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(START_S)
        if self._problem is not None:
            raise self._problem
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._stop_requested is not None
        self.call(self._stop_requested.set)
        self._thread.join(START_S)
        assert not self._thread.is_alive()
        if self._problem is not None:
            raise self._problem

    def call(self, function: Callable[[], object]) -> None:
        """In the proxy's event loop."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as problem:
            self._problem = problem
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop_requested = asyncio.get_running_loop(), asyncio.Event()
        settings = self.server.settings
        listeners = bind_all(parse_listeners(settings.listeners), "the REST proxy")
        self.server.bound([str(each.address) for each in listeners])
        try:
            await self.server.start()
            gate = Gate(
                self.server.app,
                log_in=LogIn(self._authenticator),
                limits=request_limits(settings),
                error_form=self.server.error_form,
            )
            web = WebServer(gate, listeners, limits=connection_limits(settings), error_form=self.server.error_form)
            await web.start()
            self.url = f"http://127.0.0.1:{listeners[0].address.port}"
            self._ready.set()
            await self._stop_requested.wait()
            await web.stop(1.0)
        finally:
            await self.server.stop()


def _authenticator(values: Mapping[str, str]) -> Authenticator | None:
    file = values.get("kaspar.http.credentials.file", "")
    match values.get("authentication.method"):
        case "BASIC":
            users = UsersFile(str(Path(file)))
            users.load()
            return BasicAuthenticator(users)
        case "BEARER":
            tokens = TokensFile(str(Path(file)))
            tokens.load()
            return TokenAuthenticator(tokens)
    return None
