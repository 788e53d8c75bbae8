"""The small services that the parts of a broker share. Each part is given the ones it needs, never the whole broker.

They belong to the event loop's thread, except where a method says otherwise.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from kaspar.base.errors import StorageFailure
from kaspar.base.log import get_log
from kaspar.base.named_tuples import new_tuple
from kaspar.base.patient_clock import PatientClock
from kaspar.config import BrokerConfig, BrokerSettings
from kaspar.coordination import Now

log = get_log(__name__)

T = TypeVar("T")

BLOCKING_THREADS: Final = 8
SYNC_THREADS: Final = 4
AUTHENTICATING_THREADS: Final = 4


class CurrentSettings:
    """The broker's settings as they are now: dynamic changes replace them."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.settings = settings

    @property
    def config(self) -> BrokerConfig:
        return self.settings.config


class Threads:
    """The thread pools for work that may wait for a disk, or that keeps the interpreter busy for long."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.blocking = ThreadPoolExecutor(BLOCKING_THREADS, thread_name_prefix="kaspar-io")
        self.sync = ThreadPoolExecutor(SYNC_THREADS, thread_name_prefix="kaspar-sync")
        # One thread for all coordinators: more would only compete for the interpreter with each other and the event
        # loop.
        self._loading = ThreadPoolExecutor(1, thread_name_prefix="kaspar-load")
        self._authenticating = ThreadPoolExecutor(AUTHENTICATING_THREADS, thread_name_prefix="kaspar-authenticate")

    async def run_blocking(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work that may wait for a disk in a thread."""
        return await self._loop.run_in_executor(self.blocking, work, *arguments)

    async def run_loading(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work that takes seconds of the interpreter's time, in the one thread for such work."""
        return await self._loop.run_in_executor(self._loading, work, *arguments)

    async def run_authenticating(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run a step of an authentication that may block. It has its own threads, because unauthenticated clients cause
        it.
        """
        return await self._loop.run_in_executor(self._authenticating, work, *arguments)

    def call_on_loop(self, work: Callable[..., object], *arguments: Any) -> None:
        """Have the event loop call this. For any thread."""
        self._loop.call_soon_threadsafe(work, *arguments)

    def shut_down(self) -> None:
        for pool in (self.blocking, self._loading, self._authenticating, self.sync):
            pool.shutdown(wait=False)


def now_of(clock: PatientClock) -> Callable[[], Now]:
    """The clock of coordinators, as the function that they call."""
    moment = clock.moment
    return lambda: new_tuple(Now, moment())


class Failures:
    """Failures beyond one request. A broken invariant stops the broker; a failing disk takes a directory offline."""

    def __init__(self) -> None:
        self.fatal: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        """Completed with the reason when the broker must stop."""
        self.on_log_directory: Callable[[StorageFailure], None] = self.stop_broker

    def on_bug(self, problem: Exception) -> None:
        """Handle a bug. A broken invariant stops the broker, because its state can no longer be trusted."""
        if isinstance(problem, AssertionError):
            self.stop_broker(problem)

    def stop_broker(self, reason: BaseException) -> None:
        if not self.fatal.done():
            self.fatal.set_result(reason)

    def logging_bugs(self, what: str) -> Callable[[Exception], None]:
        """A variant of `on_bug` that also logs, for callers that do not log themselves."""

        def on_bug(problem: Exception) -> None:
            log.exception(what)
            self.on_bug(problem)

        return on_bug

    def log_directory_failed(self, failure: StorageFailure) -> None:
        self.on_log_directory(failure)


class Tasks:
    """Tasks that the broker owns: a failure is logged, and they end with the broker."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.error("a task failed", task=task.get_name(), problem=repr(problem))
            if isinstance(problem, Exception):
                self._failures.on_bug(problem)

    async def cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
