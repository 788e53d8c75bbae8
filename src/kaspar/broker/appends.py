"""Appends whose checks take too long for the event loop: inflating, re-compressing, very large batches.

They are checked in a thread, one queue per partition: while one of a partition's batches is being checked, everything
that arrives for that partition lines up behind it, so that the log has the order of arrival.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor

from kaspar.base.clock import Clock
from kaspar.base.errors import KasparError
from kaspar.replication.partition import Partition
from kaspar.storage import Appended, PreparedBatch, prepare, runs_inline

Done = Callable[[Appended | KasparError, PreparedBatch | None], None]


class _Job:
    __slots__ = ("acks_all", "batch", "done")

    def __init__(self, batch: bytearray, acks_all: bool, done: Done) -> None:
        self.batch = batch
        self.acks_all = acks_all
        self.done = done


class AppendQueues:
    def __init__(self, executor: Executor, clock: Clock, *, overload: Callable[[bool], None]) -> None:
        self._executor = executor
        self._clock = clock
        self._overload = overload
        self._overloaded = False
        self.limit_bytes = -1
        self.queues: dict[Partition, deque[_Job]] = {}
        """The partitions with batches that wait; whatever else comes for them must line up too."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting_bytes = 0

    @property
    def waiting_count(self) -> int:
        return sum(len(queue) for queue in tuple(self.queues.values()))

    def add(self, partition: Partition, batch: bytearray, *, acks_all: bool, done: Done) -> None:
        """Check and append `batch`, which from now on belongs to the queue; `done` gets the outcome, on the loop."""
        self._count(len(batch))
        queue = self.queues.get(partition)
        if queue is not None:
            queue.append(_Job(batch, acks_all, done))
            return
        self.queues[partition] = deque([_Job(batch, acks_all, done)])
        task = asyncio.get_running_loop().create_task(self._work_off(partition))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work_off(self, partition: Partition) -> None:
        queue = self.queues[partition]
        loop = asyncio.get_running_loop()
        try:
            while queue:
                job = queue[0]
                size = len(job.batch)
                config = partition.log.config
                now_ms = self._clock.now_ms()
                prepared: PreparedBatch | None = None
                outcome: Appended | KasparError
                try:
                    if runs_inline(job.batch, 0, size, config):
                        prepared = prepare(job.batch, 0, size, config, now_ms)
                    else:
                        prepared = await loop.run_in_executor(
                            self._executor, prepare, job.batch, 0, size, config, now_ms
                        )
                    outcome = partition.append_as_leader(prepared, acks_all=job.acks_all, now_ms=now_ms)
                except KasparError as refusal:
                    outcome = refusal
                queue.popleft()
                self._count(-size)
                job.done(outcome, prepared)
        finally:
            del self.queues[partition]

    def _count(self, size: int) -> None:
        """Keep the memory that waiting batches hold near `queued.max.request.bytes` (negative: no bound)."""
        self.waiting_bytes += size
        overloaded = 0 <= self.limit_bytes < self.waiting_bytes
        if overloaded != self._overloaded:
            self._overloaded = overloaded
            self._overload(overloaded)

    async def finish(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)
