"""Producer ids from blocks that the controller has allocated to this broker.

A block is allocated as a whole and persisted before its first id is used, so no id is ever used twice, whatever
crashes. The next block is requested before the last id of this one is taken, so that one is nearly always available: a
transaction coordinator cannot wait while it decides.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerId
from kaspar.base.log import get_log
from kaspar.controller.events import ProducerIdBlock

log = get_log(__name__)

ASK_WHEN_LEFT: Final = 100


class ProducerIds:
    def __init__(self, allocate: Callable[[], Awaitable[ProducerIdBlock]]) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0
        self._spare: ProducerIdBlock | None = None
        self._allocating = asyncio.Lock()
        self._asking: asyncio.Task[None] | None = None

    @property
    def available(self) -> bool:
        """Whether `take` can return an id now."""
        return self._next < self._end or self._spare is not None

    async def next(self) -> ProducerId:
        """The next id. Raises Refused if the controller allocates no more."""
        await self.reserve()
        return self.take()

    async def reserve(self) -> None:
        """Return when an id is available: `take` in the same turn of the event loop gets it."""
        while not self.available:
            try:
                await self._refill()
            except Refused as refusal:
                # The same code for every reason, as in Kafka's RPCProducerIdManager: producers retry on it, but some
                # give up on the codes of a controller that is unreachable, has not responded, or has no space.
                raise Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, refusal.message) from refusal

    def take(self) -> ProducerId:
        """The next id. Raises Refused (COORDINATOR_LOAD_IN_PROGRESS, as in Kafka) if none is available."""
        if self._next >= self._end and self._spare is not None:
            self._next = self._spare.first
            self._end = self._spare.first + self._spare.count
            self._spare = None
        if self._end - self._next <= ASK_WHEN_LEFT:
            self._ask_for_more()
        if self._next >= self._end:
            raise Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "No producer id is available.")
        taken = self._next
        self._next += 1
        return ProducerId(taken)

    async def _refill(self) -> None:
        async with self._allocating:
            if self._spare is None:
                self._spare = await self._allocate()

    def _ask_for_more(self) -> None:
        if self._spare is None and self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._refill(), name="producer ids")
            self._asking.add_done_callback(self._asked)

    def _asked(self, task: asyncio.Task[None]) -> None:
        """Log a failure. A caller that finds no id later requests a block itself, and gets the refusal."""
        self._asking = None
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.warning("no producer ids could be allocated", problem=str(problem))
