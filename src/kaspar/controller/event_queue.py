"""The events that wait for the controller, in the order of arrival, urgent ones first.

While a broker is dead, its partitions have no leader. So events that fence brokers or check which brokers are up do not
wait behind the events of clients. There are at most as many of them as brokers, and the queue's limit does not apply to
them.
"""

import asyncio
from itertools import count
from typing import Generic, TypeVar

E = TypeVar("E")


class EventQueue(Generic[E]):
    def __init__(self, most: int) -> None:
        """`most`: the limit on events that are not urgent."""
        self._events: asyncio.PriorityQueue[tuple[bool, int, E]] = asyncio.PriorityQueue()
        self._order = count()
        self._room = asyncio.Semaphore(most)

    async def put(self, event: E, *, is_urgent: bool) -> None:
        if not is_urgent:
            await self._room.acquire()
        self._events.put_nowait((not is_urgent, next(self._order), event))

    async def get(self) -> E:
        return self._taken(await self._events.get())

    def empty(self) -> bool:
        return self._events.empty()

    def get_nowait(self) -> E:
        return self._taken(self._events.get_nowait())

    def _taken(self, found: tuple[bool, int, E]) -> E:
        took_room, _, event = found
        if took_room:
            self._room.release()
        return event
