"""Producer ids, handed out from a block that the controller has given to this broker.

A block is taken whole and persisted before its first id is used, so no id is ever given out twice, whatever crashes.
"""

import asyncio
from collections.abc import Awaitable, Callable

from kaspar.base.ids import ProducerId
from kaspar.metadata.events import ProducerIdBlock


class ProducerIds:
    def __init__(self, allocate: Callable[[], Awaitable[ProducerIdBlock]]) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0
        self._allocating = asyncio.Lock()

    async def next(self) -> ProducerId:
        while self._next >= self._end:
            async with self._allocating:
                if self._next >= self._end:
                    block = await self._allocate()
                    self._next = block.first
                    self._end = block.first + block.count
        taken = self._next
        self._next += 1
        return ProducerId(taken)
