"""Reads that callers of one identity share: a hundred pages that show the same cost what one costs.

A read is shared for a second, and one that takes long for ten times as long as it took, up to ten seconds: so no more
than a tenth of the time is spent on it, however large the cluster is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar, cast

from kaspar.base.bounded_cache import BoundedCache
from kaspar.base.clock import Clock

SHARED_FOR_S: Final = 1.0
LONGEST_S: Final = 10.0
_TIMES_ITS_DURATION: Final = 10
_MOST: Final = 500

_Result = TypeVar("_Result")


class SharedReads:
    """What is being read, or was read a moment ago. A key has the identity in it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pending: dict[Hashable, asyncio.Task[Any]] = {}
        self._recent = self._nothing()
        self._tasks: set[asyncio.Task[Any]] = set()

    def _nothing(self) -> BoundedCache[Hashable, tuple[asyncio.Task[Any], float]]:
        """Finished reads, and until when they are shared."""
        return BoundedCache(_MOST, lifetime_s=LONGEST_S, monotonic=self._clock.monotonic)

    async def get(self, key: Hashable, read: Callable[[], Awaitable[_Result]]) -> _Result:
        """Raises what the read raises."""
        task = self._pending.get(key) or self._finished(key) or self._start(key, read)
        return cast("_Result", await asyncio.shield(task))  # others may wait for it, too

    def _finished(self, key: Hashable) -> asyncio.Task[Any] | None:
        task, until = self._recent.get(key) or (None, 0.0)
        return task if self._clock.monotonic() < until else None

    def _start(self, key: Hashable, read: Callable[[], Awaitable[_Result]]) -> asyncio.Task[Any]:
        self._drop_expired()
        pending, recent, started = self._pending, self._recent, self._clock.monotonic()
        task = asyncio.ensure_future(_run(read))
        pending[key] = task
        self._tasks.add(task)

        def finished(done: asyncio.Task[Any]) -> None:
            self._tasks.discard(done)
            del pending[key]
            if not done.cancelled() and done.exception() is None:
                now = self._clock.monotonic()
                lifetime_s = min(max(SHARED_FOR_S, _TIMES_ITS_DURATION * (now - started)), LONGEST_S)
                recent.put(key, (done, now + lifetime_s))

        task.add_done_callback(finished)
        return task

    def _drop_expired(self) -> None:
        """A list of all topics is large, and nobody may ask for it again."""
        for key in self._recent:
            if self._finished(key) is None:
                self._recent.discard(key)

    def forget(self) -> None:
        """Something was changed: what was read before, or is being read, is not shared any more."""
        self._pending, self._recent = {}, self._nothing()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _run(read: Callable[[], Awaitable[_Result]]) -> _Result:
    return await read()
