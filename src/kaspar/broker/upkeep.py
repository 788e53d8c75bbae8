"""Periodic maintenance, each task on its own schedule, with the slow parts in threads: checkpoints, syncs by
`flush.ms`, retention, rolling segments for compaction, producer snapshots, removing deleted files, expiring producers.

Expiry uses the patient clock (base/patient_clock.py), because it cannot be undone. Durations use the steady clock.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

from kaspar.base.clock import Clock
from kaspar.base.errors import Refused, StorageFailure
from kaspar.base.log import get_log
from kaspar.broker.cleaning.log_cleaner import Cleaning
from kaspar.broker.hosting import Hosting
from kaspar.broker.partitions import Partitions
from kaspar.broker.services import CurrentSettings, Failures, Tasks, Threads
from kaspar.broker.syncing import Syncing
from kaspar.config.kinds import MAX_LONG
from kaspar.replication.partition import Partition
from kaspar.storage import LogManager

log = get_log(__name__)
T = TypeVar("T")

FILE_REMOVAL_INTERVAL_MS: Final = 5_000
MISSING_LOGS_INTERVAL_MS: Final = 1_000
PRODUCER_EXPIRY_INTERVAL_MS: Final = 600_000
MOST_SLEEP_S: Final = 3600.0
MOST_SEGMENTS_AT_ONCE: Final = 32
"""The event loop renames this many segments before it does other work."""
MOST_PARTITIONS_AT_ONCE: Final = 1000
"""The event loop visits this many partitions before it does other work."""
LEAST_SYNC_INTERVAL_MS: Final = 10
MOST_SYNC_INTERVAL_MS: Final = 1000
MOST_PRODUCERS_AT_ONCE: Final = 1000
"""The event loop visits this many producers before it does other work."""


class Upkeep:
    def __init__(
        self,
        settings: CurrentSettings,
        *,
        partitions: Partitions,
        logs: LogManager,
        clock: Clock,
        syncing: Syncing,
        cleaning: Cleaning,
        hosting: Hosting,
        threads: Threads,
        tasks: Tasks,
        failures: Failures,
    ) -> None:
        self._settings = settings
        self._partitions = partitions
        self._logs = logs
        self._clock = clock
        self._syncing = syncing
        self._cleaning = cleaning
        self._hosting = hosting
        self._threads = threads
        self._tasks = tasks
        self._failures = failures
        self._sync_interval_ms = LEAST_SYNC_INTERVAL_MS

    def start(self) -> None:
        schedule: tuple[tuple[str, Callable[[], int], Callable[[], Awaitable[None]]], ...] = (
            (
                "recovery point checkpoint",
                lambda: self._settings.config.log_flush_offset_checkpoint_interval_ms,
                self._checkpoint,
            ),
            (
                "high watermark checkpoint",
                lambda: self._settings.config.replica_high_watermark_checkpoint_interval_ms,
                self._high_watermarks,
            ),
            ("sync by time", lambda: self._sync_interval_ms, self._sync_by_time),
            ("retention", lambda: self._settings.config.log_retention_check_interval_ms, self._retain),
            ("segments to compact", lambda: self._cleaning.backoff_ms, self._roll_idle),
            ("removal of deleted files", lambda: FILE_REMOVAL_INTERVAL_MS, self._remove_files),
            ("logs that wait for space", lambda: MISSING_LOGS_INTERVAL_MS, self._hosting.make_missing),
            ("idle producers", lambda: PRODUCER_EXPIRY_INTERVAL_MS, self._expire_producers),
        )
        for name, interval_ms, work in schedule:
            self._tasks.spawn(self._repeat(name, interval_ms, work), name=name)

    def _steady_ms(self) -> int:
        return self._logs.patient_clock.moment().steady_ms

    async def _repeat(self, name: str, interval_ms: Callable[[], int], work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(min(interval_ms() / 1000, MOST_SLEEP_S))
            await self._guarded(name, work())

    async def _guarded(self, name: str, work: Awaitable[T]) -> T | None:
        """Await maintenance work and handle its errors. Work that fails is retried at its next time."""
        try:
            return await work
        except StorageFailure as failure:
            self._failures.log_directory_failed(failure)
        except Refused as refusal:
            log.warning("a maintenance task could not be done now", what=name, reason=refusal.message)
        except Exception as problem:
            log.exception("a maintenance task failed because of a bug", what=name)
            self._failures.on_bug(problem)
        return None

    async def _checkpoint(self) -> None:
        await self._threads.run_blocking(self._logs.checkpoint)

    async def finish(self) -> None:
        """Write the last high watermarks before the logs are closed: a leader with followers starts with them."""
        await self._guarded("high watermark checkpoint", self._high_watermarks())

    async def _high_watermarks(self) -> None:
        offsets = {each.topic_partition: each.high_watermark async for each in self._in_slices()}
        await self._threads.run_blocking(self._logs.write_high_watermarks, offsets)

    async def _in_slices(self) -> AsyncIterator[Partition]:
        """All partitions; other work of the event loop runs in between. A partition may be deleted before it is
        yielded.
        """
        for number, partition in enumerate(tuple(self._partitions), 1):
            yield partition
            if number % MOST_PARTITIONS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _sync_by_time(self) -> None:
        """Sync by `flush.ms`. Sets the interval to what the shortest `flush.ms` of any topic requires, or else to the
        broker's own schedule.
        """
        now_ms = self._steady_ms()
        shortest_ms = MAX_LONG
        async for partition in self._in_slices():
            one = partition.log
            flush_ms = one.config.flush_ms
            shortest_ms = min(shortest_ms, flush_ms)
            since_ms = one.unflushed_since_ms
            if since_ms >= 0 and flush_ms < MAX_LONG and now_ms - since_ms >= flush_ms and not one.deleted:
                self._syncing.ask(partition)
        most_ms = min(self._settings.config.log_flush_scheduler_interval_ms, MOST_SYNC_INTERVAL_MS)
        self._sync_interval_ms = max(LEAST_SYNC_INTERVAL_MS, min(shortest_ms // 2, most_ms))

    async def _retain(self) -> None:
        now_ms = self._logs.patient_clock.now_ms()
        deleted = 0
        for partition in tuple(self._partitions):
            if not partition.offline:
                # A partition that fails, perhaps because the disk is full, must not keep others from freeing space.
                name = f"retention of {partition.topic_partition}"
                deleted += await self._guarded(name, self._retain_one(partition, now_ms)) or 0
        if deleted:
            # Written so that the log start offsets are the same after a crash.
            await self._checkpoint()

    async def _retain_one(self, partition: Partition, now_ms: int) -> int:
        """Delete old segments of a partition by its retention settings. Returns how many."""
        one = partition.log
        start = await self._threads.run_blocking(one.retention_start_offset, now_ms, partition.high_watermark)
        if start > one.log_start_offset:
            # Segments are kept until the producer snapshots after them are written.
            await self._threads.run_blocking(one.write_snapshots)
        segments = 0
        while partition.may_change(one):
            later = one.segments.base_offsets[MOST_SEGMENTS_AT_ONCE:]
            step = min(start, later[0]) if later else start
            dropped = one.delete_old_segments(step, now_ms=self._clock.now_ms())
            segments += dropped
            if step == start or not dropped:
                break
            await asyncio.sleep(0)
        segments += await drop_old_segments(self._threads, partition)
        if segments:
            log.info(
                "deleted old segments", partition=partition.topic_partition, segments=segments, log_start_offset=start
            )
        return segments

    async def _roll_idle(self) -> None:
        """Roll active segments that are old enough, so that records are compacted within `max.compaction.lag.ms` even
        without further appends.
        """
        now_ms = self._clock.now_ms()
        for partition in tuple(self._partitions):
            if partition.log.config.max_compaction_lag_ms < MAX_LONG:
                await self._guarded(f"rolling {partition.topic_partition}", self._roll_one(partition, now_ms))
                await asyncio.sleep(0)  # each may open or create a file

    async def _roll_one(self, partition: Partition, now_ms: int) -> None:
        if not partition.offline and partition.is_changeable:
            partition.log.roll_if_overdue(now_ms=now_ms)

    async def _remove_files(self) -> None:
        await self._threads.run_blocking(self._logs.maintain, self._steady_ms())

    async def _expire_producers(self) -> None:
        for _ in self._logs.expire_producers(MOST_PRODUCERS_AT_ONCE):
            await asyncio.sleep(0)


async def drop_old_segments(threads: Threads, partition: Partition) -> int:
    """Drop the segments below the log start offset, in steps, so that other work of the event loop runs in between.
    Returns how many were dropped.
    """
    one, segments = partition.log, 0
    if one.waits_for_snapshots:
        await threads.run_blocking(one.write_snapshots)
    while partition.may_change(one):
        dropped = one.drop_old_segments(MOST_SEGMENTS_AT_ONCE)
        if not dropped:
            break
        segments += dropped
        await asyncio.sleep(0)
    return segments
