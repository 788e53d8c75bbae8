"""Appends that take too long for the event loop: inflating, re-compressing, very large batches, and the first one to a
log after a start, which has to read an index.

They are checked in a thread, one queue per partition: while one of a partition's batches is being checked, everything
that arrives for that partition lines up behind it, so that the log has the order of arrival. How many batches may wait,
and how many bytes they may hold, is bounded: beyond that the broker takes no more requests until half of them are done.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

from kaspar.base.clock import Clock
from kaspar.base.errors import KasparError
from kaspar.replication.partition import Partition
from kaspar.storage import Appended, PreparedBatch, prepare, prepare_inline

Done = Callable[[Appended | KasparError, PreparedBatch | None], None]
Failed = Callable[[Exception], None]
Check = Callable[[], None]
"""Refuses what must not be written any more, on the loop and right before it would be."""


class _Job(NamedTuple):
    batch: bytearray
    acks_all: bool
    done: Done
    failed: Failed
    check: Check | None


class AppendQueues:
    def __init__(self, executor: Executor, clock: Clock, *, overload: Callable[[bool], None]) -> None:
        self._executor = executor
        self._clock = clock
        self._overload = overload
        self._overloaded = False
        self.limit_bytes = -1
        """`queued.max.request.bytes`; a negative number sets no limit."""
        self.limit_count = 500
        """`queued.max.requests`: of those that wait here, for the others are answered as they come."""
        self.queues: dict[Partition, deque[_Job]] = {}
        """The partitions with batches that wait; whatever else comes for them must line up too."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting_bytes = 0
        self.waiting_count = 0

    def add(
        self,
        partition: Partition,
        batch: bytearray,
        *,
        acks_all: bool,
        done: Done,
        failed: Failed,
        check: Check | None = None,
    ) -> None:
        """Check and append `batch`, which from now on belongs to the queue; `done` gets the outcome, on the loop.
        `failed` gets a bug met on the way: whoever waits for the outcome will not get it.
        """
        self.hold(len(batch))
        job = _Job(batch, acks_all, done, failed, check)
        queue = self.queues.get(partition)
        if queue is not None:
            queue.append(job)
            return
        self.queues[partition] = deque([job])
        task = asyncio.get_running_loop().create_task(self._work_off(partition))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work_off(self, partition: Partition) -> None:
        queue = self.queues[partition]
        tried = True  # the first is here because it takes long; those behind it may not
        while queue:
            job = queue[0]
            was_tried, tried = tried, False
            try:
                outcome, prepared = await self._append(partition, job, tried=was_tried)
                queue.popleft()
                self.let_go(len(job.batch))
                job.done(outcome, prepared)
            except Exception as problem:  # a bug met by one batch must not keep those behind it from their turn
                if queue and queue[0] is job:
                    queue.popleft()
                    self.let_go(len(job.batch))
                job.failed(problem)
        del self.queues[partition]

    async def _append(
        self, partition: Partition, job: _Job, *, tried: bool
    ) -> tuple[Appended | KasparError, PreparedBatch | None]:
        batch, size = job.batch, len(job.batch)
        config = partition.log.config
        now_ms = self._clock.now_ms()
        try:
            prepared = None
            if partition.log.cold:
                await self.warm_up(partition)
            if not tried:
                await asyncio.sleep(0)  # what lined up is worked off in as many turns of the loop: others wait too
                prepared = prepare_inline(batch, 0, size, config, now_ms)
            if prepared is None:
                loop = asyncio.get_running_loop()
                prepared = await loop.run_in_executor(self._executor, prepare, batch, 0, size, config, now_ms)
            if job.check is not None:
                job.check()
            return partition.append_as_leader(prepared, acks_all=job.acks_all, now_ms=now_ms), prepared
        except KasparError as refusal:
            return refusal, None

    async def warm_up(self, partition: Partition) -> None:
        """Read in a thread what the first append to a cold log has to know. The partition may change meanwhile."""
        loop = asyncio.get_running_loop()
        partition.log.warm_up(await loop.run_in_executor(self._executor, partition.log.read_cold))

    def hold(self, size: int) -> None:
        """A batch of that size waits: here, or for its transaction (broker/unverified.py)."""
        self.waiting_count += 1
        self.waiting_bytes += size
        self._look_at_load()

    def let_go(self, size: int) -> None:
        self.waiting_count -= 1
        self.waiting_bytes -= size
        self._look_at_load()

    def _look_at_load(self) -> None:
        """Too much waits, or half of it is done: not at one and the same number, or each batch would change it."""
        allowed_bytes, allowed_count = self.limit_bytes, self.limit_count
        if self._overloaded:
            allowed_bytes, allowed_count = allowed_bytes // 2, allowed_count // 2
        overloaded = self.waiting_count > allowed_count or (
            self.limit_bytes >= 0 and self.waiting_bytes > allowed_bytes
        )
        if overloaded != self._overloaded:
            self._overloaded = overloaded
            self._overload(overloaded)

    async def finish(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)
