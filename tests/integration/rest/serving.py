"""The REST proxy in a thread of its own, over real sockets."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

import uvloop

from kaspar.base.clock import Clock
from kaspar.rest.running import RestServer
from kaspar.web.host import Host

START_S = 20.0


class RunningRest:
    """`url` is where it listens."""

    def __init__(self, values: Mapping[str, str], *, clock: Clock | None = None) -> None:
        self.server = RestServer({"listeners": "http://127.0.0.1:0", **values}, clock=clock)
        self.url = ""
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
        host = Host([self.server])
        try:
            await host.start()
            (self.url,) = host.urls["rest"]
            self._ready.set()
            await self._stop_requested.wait()
        finally:
            await host.stop()
