"""What a broker does from time to time, each on its own schedule, the slow parts in threads:
checkpoints, syncs that `flush.ms` asks for, retention, segments that are to be compacted although nobody appends,
producer snapshots, removal of deleted files, forgetting idle producers.

Whatever expires goes by a clock that is slow to believe a jump ahead (base/patient_clock.py), for it does not come
back; how long something has waited is measured by the steady clock.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from kaspar.base.errors import Refused, StorageFailure
from kaspar.base.log import get_log
from kaspar.config.kinds import MAX_LONG
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)
T = TypeVar("T")

FILE_REMOVAL_INTERVAL_MS: Final = 5_000
MISSING_LOGS_INTERVAL_MS: Final = 1_000
PRODUCER_EXPIRY_INTERVAL_MS: Final = 600_000
MOST_SLEEP_S: Final = 3600.0
MOST_SEGMENTS_AT_ONCE: Final = 32
"""How many segments the event loop renames before others have their turn."""
MOST_PARTITIONS_AT_ONCE: Final = 1000
"""How many partitions it looks at before others have their turn."""
LEAST_SYNC_INTERVAL_MS: Final = 10
MOST_SYNC_INTERVAL_MS: Final = 1000
MOST_PRODUCERS_AT_ONCE: Final = 1000
"""How many producers it looks at before others have their turn."""


class Upkeep:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._sync_interval_ms = LEAST_SYNC_INTERVAL_MS

    def start(self) -> None:
        broker = self._broker
        schedule: tuple[tuple[str, Callable[[], int], Callable[[], Awaitable[None]]], ...] = (
            (
                "recovery point checkpoint",
                lambda: broker.config.log_flush_offset_checkpoint_interval_ms,
                self._checkpoint,
            ),
            (
                "high watermark checkpoint",
                lambda: broker.config.replica_high_watermark_checkpoint_interval_ms,
                self._high_watermarks,
            ),
            ("sync by time", lambda: self._sync_interval_ms, self._sync_by_time),
            ("retention", lambda: broker.config.log_retention_check_interval_ms, self._retain),
            ("segments to compact", lambda: broker.cleaning.backoff_ms, self._roll_idle),
            ("removal of deleted files", lambda: FILE_REMOVAL_INTERVAL_MS, self._remove_files),
            ("logs that wait for space", lambda: MISSING_LOGS_INTERVAL_MS, broker.hosting.make_missing),
            ("idle producers", lambda: PRODUCER_EXPIRY_INTERVAL_MS, self._expire_producers),
        )
        for name, interval_ms, work in schedule:
            broker.spawn(self._repeat(name, interval_ms, work), name=name)

    async def _repeat(self, name: str, interval_ms: Callable[[], int], work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(min(interval_ms() / 1000, MOST_SLEEP_S))
            await self._guarded(name, work())

    async def _guarded(self, name: str, work: Awaitable[T]) -> T | None:
        """What fails now is tried again the next time, whatever it was."""
        try:
            return await work
        except StorageFailure as failure:
            self._broker.log_directory_failed(failure)
        except Refused as refusal:
            log.warning("upkeep could not be done now", what=name, reason=refusal.message)
        except Exception as problem:
            log.exception("upkeep met a bug", what=name)
            self._broker.request_failed(problem)
        return None

    async def _checkpoint(self) -> None:
        await self._broker.run_blocking(self._broker.logs.checkpoint)

    async def _high_watermarks(self) -> None:
        offsets = {each.topic_partition: each.high_watermark async for each in self._in_slices()}
        await self._broker.run_blocking(self._broker.logs.write_high_watermarks, offsets)

    async def _in_slices(self) -> AsyncIterator[Partition]:
        """All partitions, with a turn for others now and then. One may be deleted before it is its turn."""
        for number, partition in enumerate(tuple(self._broker.partitions), 1):
            yield partition
            if number % MOST_PARTITIONS_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _sync_by_time(self) -> None:
        """Looks as often as the most demanding topic asks for, or as the broker's own schedule says."""
        now_ms = self._broker.now().steady_ms
        shortest_ms = MAX_LONG
        async for partition in self._in_slices():
            one = partition.log
            flush_ms = one.config.flush_ms
            shortest_ms = min(shortest_ms, flush_ms)
            since_ms = one.unflushed_since_ms
            if since_ms >= 0 and flush_ms < MAX_LONG and now_ms - since_ms >= flush_ms and not one.deleted:
                self._broker.syncing.ask(partition)
        most_ms = min(self._broker.config.log_flush_scheduler_interval_ms, MOST_SYNC_INTERVAL_MS)
        self._sync_interval_ms = max(LEAST_SYNC_INTERVAL_MS, min(shortest_ms // 2, most_ms))

    async def _retain(self) -> None:
        now_ms = self._broker.logs.patient_clock.now_ms()
        deleted = 0
        for partition in tuple(self._broker.partitions):
            if not partition.offline:
                # One that cannot be helped, for want of space perhaps, keeps no other from giving some back.
                name = f"retention of {partition.topic_partition}"
                deleted += await self._guarded(name, self._retain_one(partition, now_ms)) or 0
        if deleted:
            # So that after a crash, too, the logs begin where they begin now.
            await self._checkpoint()

    async def _retain_one(self, partition: Partition, now_ms: int) -> int:
        """How many segments were deleted."""
        one = partition.log
        start = await self._broker.run_blocking(one.retention_start_offset, now_ms, partition.high_watermark)
        if start > one.log_start_offset:
            # Segments stay until the producer snapshots behind them are written.
            await self._broker.run_blocking(one.write_snapshots)
        segments = 0
        while partition.state.role is not Role.NONE:  # otherwise it was deleted meanwhile
            later = one.segments.base_offsets[MOST_SEGMENTS_AT_ONCE:]
            step = min(start, later[0]) if later else start
            dropped = one.delete_old_segments(step, now_ms=self._broker.clock.now_ms())
            segments += dropped
            if step == start or not dropped:
                break
            await asyncio.sleep(0)
        segments += await drop_old_segments(self._broker, partition)
        if segments:
            log.info(
                "deleted old segments", partition=partition.topic_partition, segments=segments, log_start_offset=start
            )
        return segments

    async def _roll_idle(self) -> None:
        """Without further appends, too, records are compacted within `max.compaction.lag.ms`."""
        now_ms = self._broker.clock.now_ms()
        for partition in tuple(self._broker.partitions):
            if partition.log.config.max_compaction_lag_ms < MAX_LONG:
                await self._guarded(f"rolling {partition.topic_partition}", self._roll_one(partition, now_ms))
                await asyncio.sleep(0)  # each may open a file, or make some

    async def _roll_one(self, partition: Partition, now_ms: int) -> None:
        if not partition.offline and partition.state.role is not Role.NONE:
            partition.log.roll_if_overdue(now_ms=now_ms)

    async def _remove_files(self) -> None:
        await self._broker.run_blocking(self._broker.logs.maintain, self._broker.now().steady_ms)

    async def _expire_producers(self) -> None:
        for _ in self._broker.logs.expire_producers(MOST_PRODUCERS_AT_ONCE):
            await asyncio.sleep(0)


async def drop_old_segments(broker: "Broker", partition: Partition) -> int:
    """Drop what lies below the log start offset, in steps, so that the loop has time for others: how many segments."""
    one, segments = partition.log, 0
    if one.waits_for_snapshots:
        await broker.run_blocking(one.write_snapshots)
    while partition.state.role is not Role.NONE:  # otherwise it was deleted meanwhile
        dropped = one.drop_old_segments(MOST_SEGMENTS_AT_ONCE)
        if not dropped:
            break
        segments += dropped
        await asyncio.sleep(0)
    return segments
