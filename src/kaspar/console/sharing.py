"""Reads that callers of one identity share, so that a hundred pages with the same data cost as much as one.

A read is shared for a second, or for ten times as long as it took, up to ten seconds. So no more than a tenth of the
time is spent on it, however large the cluster is.
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
    """Reads that are in progress, or were finished a moment ago. A key contains the identity."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pending: dict[Hashable, asyncio.Task[Any]] = {}
        self._recent = self._nothing()
        self._tasks: set[asyncio.Task[Any]] = set()

    def _nothing(self) -> BoundedCache[Hashable, tuple[asyncio.Task[Any], float]]:
        """An empty cache of finished reads, with the time until which they are shared."""
        return BoundedCache(_MOST, lifetime_s=LONGEST_S, monotonic=self._clock.monotonic)

    async def get(self, key: Hashable, read: Callable[[], Awaitable[_Result]]) -> _Result:
        """The result of the read, perhaps of an earlier one. Raises the exceptions of the read."""
        task = self._pending.get(key) or self._finished(key) or self._start(key, read)
        return cast("_Result", await asyncio.shield(task))  # others may also wait for it

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
        """Remove expired reads at once: a list of all topics is large, and may not be requested again."""
        for key in self._recent:
            if self._finished(key) is None:
                self._recent.discard(key)

    def forget(self) -> None:
        """Stop sharing all earlier reads, also those in progress, after a change."""
        self._pending, self._recent = {}, self._nothing()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _run(read: Callable[[], Awaitable[_Result]]) -> _Result:
    return await read()
