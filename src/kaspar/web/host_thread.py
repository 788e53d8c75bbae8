"""Hosted services in a thread of this process, for tests and for programs that embed them."""

import asyncio
import contextlib
import threading
from collections.abc import Mapping, Sequence
from typing import Final

import uvloop

from kaspar.base.errors import KasparError
from kaspar.web.host import Host
from kaspar.web.hosting import HostedService

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0


class HostThread:
    """Runs its own event loop, and sets no signal handlers."""

    def __init__(self, services: Sequence[HostedService]) -> None:
        self._services = services
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_requested: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="kaspar-services", daemon=True)
        self.urls: Mapping[str, tuple[str, ...]] = {}
        """The URLs of the listeners, by service name. Set by `start`."""

    def start(self) -> None:
        """Return when all services are served. Raises the error with which their start failed."""
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            self._request_stop()
            raise KasparError(f"the services did not start within {START_TIMEOUT_S:.0f} s")
        self._raise_problem()

    def stop(self) -> None:
        """Blocks until the services have stopped. Raises the error with which they ended, if any."""
        self._request_stop()
        self._thread.join(STOP_TIMEOUT_S)
        if self._thread.is_alive():
            raise KasparError(f"the services did not stop within {STOP_TIMEOUT_S:.0f} s")
        self._raise_problem()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as problem:  # the edge of the thread: raised in the caller's
            self._problem = problem
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop, self._stop_requested = asyncio.get_running_loop(), asyncio.Event()
        host = Host(self._services)
        try:
            await host.start()
            self.urls = host.urls
            self._started.set()
            await self._stop_requested.wait()
        finally:
            await host.stop()

    def _request_stop(self) -> None:
        if self._loop is not None and self._stop_requested is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the services have ended
                self._loop.call_soon_threadsafe(self._stop_requested.set)

    def _raise_problem(self) -> None:
        if self._problem is not None:
            self._thread.join()
            raise self._problem
