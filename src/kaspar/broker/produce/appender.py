"""How a batch gets into a partition's log: prepare, check, append. Producers and coordinators use the same appender.

A batch that is quick to prepare is appended at once. What takes too long for the event loop (inflating, re-compressing,
very large batches, and the first append to a log after a start, which has to read an index) is prepared in a thread.
There is one queue per partition: while one of a partition's batches is being prepared, later batches for that partition
wait behind it, so that the log has the order of arrival.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final, NamedTuple, Protocol, TypeAlias

from kaspar.base.clock import Clock
from kaspar.base.errors import KasparError
from kaspar.broker.produce.backlog import Backlog
from kaspar.config.kinds import MAX_LONG
from kaspar.replication.partition import Partition
from kaspar.storage import Appended, PreparedBatch, prepare, prepare_inline, prepare_plain

NO_SEQUENCE: Final = -1

Written: TypeAlias = tuple[Appended, PreparedBatch]
"""The offsets of a batch in the log (of the earlier copy, for a duplicate), and the batch as it was prepared."""

Done: TypeAlias = Callable[[Written | KasparError], None]
"""Called with the outcome of an append, on the event loop."""

Failed: TypeAlias = Callable[[Exception], None]
"""Called with a bug that prevented an append: there will be no outcome."""


class Syncs(Protocol):
    def ask(self, partition: Partition) -> None:
        """Sync this partition's log soon."""
        ...


class _Job(NamedTuple):
    batch: bytearray
    acks_all: bool
    done: Done
    failed: Failed


class Appender:
    def __init__(self, executor: Executor, clock: Clock, backlog: Backlog, syncing: Syncs) -> None:
        self._executor = executor
        self._clock = clock
        self._backlog = backlog
        self._syncing = syncing
        self._queues: dict[Partition, deque[_Job]] = {}
        """Partitions with waiting batches. Every later batch for these partitions has to wait as well."""
        self._tasks: set[asyncio.Task[None]] = set()

    # -- at once -----------------------------------------------------------------------------------------------------

    def append_plain(
        self, partition: Partition, buffer: bytearray | memoryview, start: int, end: int, acks_all: bool, now_ms: int
    ) -> Written | None:
        """Append a batch of the most frequent kind: not compressed, not transactional, and accepted unchanged. None if
        it is of another kind, or appends to the partition are waiting; then nothing has happened. Raises KasparError if
        it is refused.
        """
        log = partition.log
        terms = log.plain_terms
        if terms is None or log.cold or partition in self._queues:
            return None
        batch = prepare_plain(buffer, start, end, terms, now_ms)
        if batch is None:
            return None
        return partition.append_as_leader(batch, acks_all=acks_all, now_ms=now_ms), batch

    def append_now(
        self,
        partition: Partition,
        buffer: bytearray | memoryview,
        start: int,
        end: int,
        acks_all: bool,
        now_ms: int,
    ) -> Written | None:
        """Append any batch. None if that takes too long, or has to wait for other appends; then nothing has happened,
        and the caller uses `append_later`. Raises KasparError if the batch is refused.
        """
        log = partition.log
        if log.cold or partition in self._queues:
            return None
        batch = prepare_inline(buffer, start, end, log.config, now_ms)
        return None if batch is None else self._append(partition, batch, acks_all, now_ms)

    def append_own(
        self, partition: Partition, batch: bytearray, *, now_ms: int, counts_sequence: bool = True
    ) -> Written:
        """Append a batch that this broker has built: with acks=all, and at once however long it takes.
        `counts_sequence`: False for a batch on behalf of a producer that did not send it, like those of a coordinator
        in a transaction (Kafka's RecordBatch.NO_SEQUENCE).
        """
        log = partition.log
        plain = None if log.plain_terms is None else prepare_plain(batch, 0, len(batch), log.plain_terms, now_ms)
        prepared = plain or prepare(batch, 0, len(batch), log.config, now_ms)
        if not counts_sequence:
            prepared = prepared._replace(base_sequence=NO_SEQUENCE)
        return self._append(partition, prepared, True, now_ms)

    def _append(self, partition: Partition, batch: PreparedBatch, acks_all: bool, now_ms: int) -> Written:
        appended = partition.append_as_leader(batch, acks_all=acks_all, now_ms=now_ms)
        if partition.log.config.flush_messages < MAX_LONG:
            self.maybe_sync(partition)
        return appended, batch

    def maybe_sync(self, partition: Partition) -> None:
        """Request a sync if `flush.messages` records have been appended since the last one."""
        log = partition.log
        if log.unflushed_messages >= log.config.flush_messages:
            self._syncing.ask(partition)

    # -- in a thread -------------------------------------------------------------------------------------------------

    def append_later(
        self,
        partition: Partition,
        batch: bytearray,
        *,
        acks_all: bool,
        done: Done,
        failed: Failed,
    ) -> None:
        """Append `batch`, which now belongs to the appender, after the batches that wait for the partition."""
        self._backlog.add(len(batch))
        job = _Job(batch, acks_all, done, failed)
        queue = self._queues.get(partition)
        if queue is not None:
            queue.append(job)
            return
        self._queues[partition] = deque([job])
        task = asyncio.get_running_loop().create_task(self._drain(partition))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain(self, partition: Partition) -> None:
        queue = self._queues[partition]
        is_quick = False  # the first is here because it is slow; later ones may be quick
        while queue:
            job = queue[0]
            try:
                outcome = await self._append_job(partition, job, may_be_quick=is_quick)
                queue.popleft()
                self._backlog.remove(len(job.batch))
                job.done(outcome)
            except Exception as problem:  # a bug with one batch must not stop later ones
                if queue and queue[0] is job:
                    queue.popleft()
                    self._backlog.remove(len(job.batch))
                job.failed(problem)
            is_quick = True
        del self._queues[partition]

    async def _append_job(self, partition: Partition, job: _Job, *, may_be_quick: bool) -> Written | KasparError:
        log, batch, size = partition.log, job.batch, len(job.batch)
        now_ms = self._clock.now_ms()
        try:
            prepared = None
            if log.cold:
                await self.warm_up(partition)
            if may_be_quick:
                await asyncio.sleep(0)  # each batch has its own turn of the loop: other work runs in between
                prepared = prepare_inline(batch, 0, size, log.config, now_ms)
            if prepared is None:
                loop = asyncio.get_running_loop()
                prepared = await loop.run_in_executor(self._executor, prepare, batch, 0, size, log.config, now_ms)
            return self._append(partition, prepared, job.acks_all, now_ms)
        except KasparError as refusal:
            return refusal

    async def warm_up(self, partition: Partition) -> None:
        """Read in a thread what the first append to a cold log needs. The partition may change in the meantime."""
        loop = asyncio.get_running_loop()
        partition.log.warm_up(await loop.run_in_executor(self._executor, partition.log.read_cold))

    async def finish(self) -> None:
        """Wait until no batch is waiting."""
        while self._tasks:
            await asyncio.wait(self._tasks)
