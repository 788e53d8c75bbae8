"""Reads that callers of one identity share: a hundred pages that show the same cost what one costs."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar, cast

from kaspar.base.bounded_cache import BoundedCache
from kaspar.base.clock import Clock

SHARED_FOR_S: Final = 1.0
_MOST: Final = 500

_Result = TypeVar("_Result")


class SharedReads:
    """What is being read, or was within the last second. A key has the identity in it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pending: dict[Hashable, asyncio.Task[Any]] = {}
        self._recent: BoundedCache[Hashable, asyncio.Task[Any]] = self._nothing()
        self._tasks: set[asyncio.Task[Any]] = set()

    def _nothing(self) -> BoundedCache[Hashable, asyncio.Task[Any]]:
        return BoundedCache(_MOST, lifetime_s=SHARED_FOR_S, monotonic=self._clock.monotonic)

    async def get(self, key: Hashable, read: Callable[[], Awaitable[_Result]]) -> _Result:
        """Raises what the read raises."""
        task = self._pending.get(key) or self._recent.get(key) or self._start(key, read)
        return cast("_Result", await asyncio.shield(task))  # others may wait for it, too

    def _start(self, key: Hashable, read: Callable[[], Awaitable[_Result]]) -> asyncio.Task[Any]:
        pending, recent = self._pending, self._recent
        task = asyncio.ensure_future(_run(read))
        pending[key] = task
        self._tasks.add(task)

        def finished(done: asyncio.Task[Any]) -> None:
            self._tasks.discard(done)
            del pending[key]
            if not done.cancelled() and done.exception() is None:
                recent.put(key, done)

        task.add_done_callback(finished)
        return task

    def forget(self) -> None:
        """Something was changed: what was read before, or is being read, is not shared any more."""
        self._pending, self._recent = {}, self._nothing()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _run(read: Callable[[], Awaitable[_Result]]) -> _Result:
    return await read()
