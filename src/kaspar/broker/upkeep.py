"""What a broker does from time to time, each on its own schedule, the slow parts in threads:
checkpoints, syncs that `flush.ms` asks for, retention, removal of deleted files, forgetting idle producers.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import Refused, StorageFailure
from kaspar.base.log import get_log
from kaspar.config.kinds import MAX_LONG
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)

FILE_REMOVAL_INTERVAL_MS: Final = 5_000
MISSING_LOGS_INTERVAL_MS: Final = 1_000
PRODUCER_EXPIRY_INTERVAL_MS: Final = 600_000
MOST_SLEEP_S: Final = 3600.0


class Upkeep:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

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
            ("sync by time", self._shortest_flush_ms, self._sync_by_time),
            ("retention", lambda: broker.config.log_retention_check_interval_ms, self._retain),
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

    async def _guarded(self, name: str, work: Awaitable[None]) -> None:
        """What fails now is tried again the next time, whatever it was."""
        try:
            await work
        except StorageFailure as failure:
            self._broker.log_directory_failed(failure)
        except Refused as refusal:
            log.warning("upkeep could not be done now", what=name, reason=refusal.message)
        except Exception as problem:
            log.exception("upkeep met a bug", what=name)
            self._broker.request_failed(problem)

    async def _checkpoint(self) -> None:
        await self._broker.run_blocking(self._broker.logs.checkpoint)

    async def _high_watermarks(self) -> None:
        offsets = {partition.topic_partition: partition.high_watermark for partition in self._broker.partitions}
        await self._broker.run_blocking(self._broker.logs.write_high_watermarks, offsets)

    def _shortest_flush_ms(self) -> int:
        """How often to look: as often as the most demanding topic asks for, or the broker's own schedule."""
        asked = min((partition.log.config.flush_ms for partition in self._broker.partitions), default=MAX_LONG)
        return max(10, min(asked // 2, self._broker.config.log_flush_scheduler_interval_ms, 1000))

    async def _sync_by_time(self) -> None:
        now_ms = self._broker.clock.now_ms()
        for partition in self._broker.partitions:
            one = partition.log
            since_ms = one.unflushed_since_ms
            if since_ms >= 0 and one.config.flush_ms < MAX_LONG and now_ms - since_ms >= one.config.flush_ms:
                self._broker.syncing.ask(partition)

    async def _retain(self) -> None:
        for partition in tuple(self._broker.partitions):
            if not partition.offline and "delete" in partition.log.config.cleanup_policy:
                # One that cannot be helped, for want of space perhaps, keeps no other from giving some back.
                await self._guarded(f"retention of {partition.topic_partition}", self._retain_one(partition))

    async def _retain_one(self, partition: Partition) -> None:
        now_ms = self._broker.clock.now_ms()
        one = partition.log
        start = await self._broker.run_blocking(one.retention_start_offset, now_ms, partition.high_watermark)
        if start > one.log_start_offset and partition.state.role is not Role.NONE:  # it may have been deleted meanwhile
            segments = one.delete_old_segments(start, now_ms=now_ms)
            log.info(
                "deleted old segments", partition=partition.topic_partition, segments=segments, log_start_offset=start
            )

    async def _remove_files(self) -> None:
        await self._broker.run_blocking(self._broker.logs.maintain, self._broker.clock.now_ms())

    async def _expire_producers(self) -> None:
        self._broker.logs.expire_producers()
