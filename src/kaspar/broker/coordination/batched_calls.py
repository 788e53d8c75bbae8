"""Batches calls to other brokers into requests.

Each broker gets one request at a time. Calls that arrive in the meantime are sent with the next one, so the number of
requests depends on how long one takes, not on the number of calls.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from kaspar.base.ids import BrokerId
from kaspar.broker.services import Tasks

C = TypeVar("C")
R = TypeVar("R")

CALLS_AT_ONCE: Final = 1000


class _Waiting(NamedTuple, Generic[C, R]):
    call: C
    outcome: asyncio.Future[R]


class BatchedCalls(Generic[C, R]):
    def __init__(
        self,
        send: Callable[[BrokerId, Sequence[C]], Awaitable[Sequence[R]]],
        *,
        identity: Callable[[C], Hashable],
        tasks: Tasks,
        name: str,
    ) -> None:
        """`send` returns the outcomes of the calls, in order. A request has at most one call of each `identity`, by
        which the outcomes in its response are distinguished.
        """
        self._send = send
        self._identity = identity
        self._tasks = tasks
        self._name = name
        self._queues: dict[BrokerId, deque[_Waiting[C, R]]] = {}

    async def call(self, broker_id: BrokerId, call: C) -> R:
        waiting = _Waiting[C, R](call, asyncio.get_running_loop().create_future())
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = deque()
            self._tasks.spawn(self._drain(broker_id, queue), name=f"{self._name} for broker {broker_id}")
        queue.append(waiting)
        return await waiting.outcome

    async def _drain(self, broker_id: BrokerId, queue: deque[_Waiting[C, R]]) -> None:
        try:
            while queue:
                await self._send_some(broker_id, self._take(queue))
        finally:
            del self._queues[broker_id]
            for waiting in queue:
                waiting.outcome.cancel()

    async def _send_some(self, broker_id: BrokerId, batch: list[_Waiting[C, R]]) -> None:
        if not batch:
            return
        try:
            outcomes = await self._send(broker_id, [waiting.call for waiting in batch])
        except Exception as problem:  # a bug, which the callers report: it must not stop later calls
            for waiting in batch:
                if not waiting.outcome.done():
                    waiting.outcome.set_exception(problem)
            return
        except asyncio.CancelledError:
            for waiting in batch:
                waiting.outcome.cancel()
            raise
        for waiting, outcome in zip(batch, outcomes, strict=True):
            if not waiting.outcome.done():
                waiting.outcome.set_result(outcome)

    def _take(self, queue: deque[_Waiting[C, R]]) -> list[_Waiting[C, R]]:
        """The calls of the next request. Calls whose identity is taken wait for a later request, in their order."""
        taken: dict[Hashable, _Waiting[C, R]] = {}
        later: list[_Waiting[C, R]] = []
        while queue and len(taken) < CALLS_AT_ONCE:
            waiting = queue.popleft()
            if waiting.outcome.done():  # its caller has gone
                continue
            identity = self._identity(waiting.call)
            if identity in taken:
                later.append(waiting)
            else:
                taken[identity] = waiting
        queue.extendleft(reversed(later))
        return list(taken.values())
