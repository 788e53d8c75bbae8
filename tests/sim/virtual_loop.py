"""An event loop on virtual time, on which every process of a simulated cluster runs.

Nothing waits: when no callback is ready, the clock jumps to the next timer. Which process a callback belongs to is
known from its context, which asyncio passes on from task to task. So a process can be paused (its callbacks wait, and
its timers with them) or killed (they are dropped, wherever it was), as the kernel does it.

What a broker does in threads is done on the loop, after a delay: the order of everything is the seed's.
"""

import asyncio
import contextvars
import heapq
import random
import warnings
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

MAX_CALLBACKS_AT_ONE_MOMENT = 200_000
"""More means that something spins: virtual time would never go on."""


class Process:
    """A process of the simulated cluster: a broker's, or a client's."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.is_dead = False
        self.is_paused = False
        self.held: list[asyncio.Handle] = []
        self.context = contextvars.copy_context()
        self.context.run(PROCESS.set, self)

    def __repr__(self) -> str:
        return self.name


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
"""Whose code runs; None is the world around them."""


WORLD: contextvars.Context = contextvars.copy_context()
"""The context of what no process does: the network, the ensemble, the faults."""


def this_process() -> Process:
    process = PROCESS.get()
    assert process is not None, "only processes do this"
    return process


class Connector(Protocol):
    async def connect(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], address: tuple[str, int]
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]: ...


class VirtualLoop(asyncio.BaseEventLoop):
    """`problems` has what no callback or task may end with."""

    def __init__(self, rng: random.Random, *, start: float = 1000.0) -> None:
        super().__init__()
        self.network: Connector | None = None
        self.problems: list[tuple[Process | None, str, BaseException | None]] = []
        self.callbacks = 0
        self._rng = rng
        self._now = start
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._order = 0
        self._closed = False
        self._tasks: list[asyncio.Task[Any]] = []
        """All of them, so that none of a dead process is finalised, which would run its code again."""

    # -- running -----------------------------------------------------------------------------------------------------

    def run_until(self, deadline: float, is_done: Callable[[], bool], after_each_moment: Callable[[], None]) -> None:
        """Run up to `deadline`, or until `is_done`. Both are called whenever the clock is about to move."""
        asyncio._set_running_loop(self)
        try:
            while True:
                self._run_ready()
                after_each_moment()
                if is_done() or self._now >= deadline:
                    return
                self._advance(deadline)
        finally:
            asyncio._set_running_loop(None)

    def _run_ready(self) -> None:
        ready, before = self._ready, self.callbacks
        while ready:
            handle = ready.popleft()
            if handle._cancelled:
                continue
            process = handle._context.get(PROCESS)  # type: ignore[attr-defined]
            if process is not None and (process.is_dead or process.is_paused):
                if not process.is_dead:
                    process.held.append(handle)
                continue
            self.callbacks += 1
            handle._run()
            if self.callbacks - before > MAX_CALLBACKS_AT_ONE_MOMENT:
                raise AssertionError(f"the loop spins at {self._now:.3f}: {handle!r}")

    def _advance(self, deadline: float) -> None:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not timers or timers[0][0] > deadline:
            self._now = deadline
            return
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(timers)[2])

    def resume(self, process: Process) -> None:
        process.is_paused = False
        held, process.held = process.held, []
        self._ready.extend(held)

    def close(self) -> None:
        self._closed = True
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="coroutine .* was never awaited")  # it was about to be
            self._ready.clear()
            self._timers.clear()
            self._tasks.clear()

    # -- what asyncio calls ------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self._closed

    def get_debug(self) -> bool:
        return False

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._order += 1
        heapq.heappush(self._timers, (when, self._order, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()
        self.call_later(self._rng.choice((0.0, 0.0002, 0.002, 0.02)), self._work, future, func, args)
        return future

    @staticmethod
    def _work(future: asyncio.Future[T], func: Callable[..., T], args: tuple[Any, ...]) -> None:
        """It runs to its end also where nobody waits any more, as a thread would."""
        try:
            result = func(*args)
        except Exception as problem:
            if not future.done():
                future.set_exception(problem)
        else:
            if not future.done():
                future.set_result(result)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **_: object
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        assert self.network is not None
        return await self.network.connect(protocol_factory, (host, port))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._closed:
            self.problems.append((PROCESS.get(), str(context.get("message")), context.get("exception")))
