"""Shares the event loop between requests: a request that has worked for a few milliseconds yields to others.

Of all requests that have yielded, one continues in each turn of the loop, so many of them together delay others no more
than a single one does.
"""

import asyncio
from time import perf_counter
from typing import Final

LONGEST_S: Final = 0.002


class Turns:
    """Creates the turns of the requests of one event loop."""

    def __init__(self) -> None:
        self._waiting = asyncio.Lock()

    def begin(self) -> "Turn":
        return Turn(self._waiting)


class Turn:
    """The current turn of one request. Call `if turn.is_over: await turn.next()` after each piece of work."""

    __slots__ = ("_ends_at", "_waiting")

    def __init__(self, waiting: asyncio.Lock) -> None:
        self._waiting = waiting
        self._ends_at = perf_counter() + LONGEST_S

    @property
    def is_over(self) -> bool:
        return perf_counter() >= self._ends_at

    async def next(self) -> None:
        async with self._waiting:
            await asyncio.sleep(0)
        self._ends_at = perf_counter() + LONGEST_S
