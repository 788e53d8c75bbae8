"""Notifies watchers of new data. A slow watcher misses only intermediate states: it is woken once for all changes since
its last read.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Changes:
    """Must be used from one event loop."""

    def __init__(self) -> None:
        self._watchers: set[Watcher] = set()
        self._first = asyncio.Event()

    @property
    def watched(self) -> bool:
        return bool(self._watchers)

    async def wait_for_watcher(self) -> None:
        """Return once there is a watcher."""
        await self._first.wait()

    def notify(self) -> None:
        for watcher in self._watchers:
            watcher.wake()

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator["Watcher"]:
        watcher = Watcher()
        self._watchers.add(watcher)
        self._first.set()
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)
            if not self._watchers:
                self._first.clear()


class Watcher:
    """An endless asynchronous iterator: each step waits for the next change."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def wake(self) -> None:
        self._changed.set()

    def __aiter__(self) -> "Watcher":
        return self

    async def __anext__(self) -> None:
        await self._changed.wait()
        self._changed.clear()
