"""Group commit: many appends share one fsync.

At most one sync of a partition is under way. Records appended in the meantime are covered by the next one, so the
slower the disk, the more records each sync covers. A partition with `flush.messages=1` commits only what a sync has
covered; with a larger number, or `flush.ms`, syncing happens in the background and no request waits for it.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from kaspar.base.errors import Refused, StorageFailure
from kaspar.base.ids import Offset
from kaspar.base.log import get_log

if TYPE_CHECKING:
    from kaspar.replication.partition import Partition

log = get_log(__name__)


class Syncing:
    def __init__(
        self,
        executor: Executor,
        *,
        synced: Callable[[float], None],
        failed: Callable[[StorageFailure], None],
        on_bug: Callable[[Exception], None],
    ) -> None:
        self._executor = executor
        self._synced = synced
        self._failed = failed
        self._on_bug = on_bug
        self._under_way: dict[Partition, asyncio.Task[None]] = {}
        self._held: set[Partition] = set()

    def ask(self, partition: "Partition") -> None:
        """Sync this partition's log soon. Records appended before this call will be covered."""
        if partition not in self._under_way and partition not in self._held:
            task = asyncio.get_running_loop().create_task(self._sync(partition))
            self._under_way[partition] = task

    async def _sync(self, partition: "Partition") -> None:
        loop = asyncio.get_running_loop()
        try:
            while (one := partition.log).recovery_point < one.log_end_offset and not (partition.offline or one.deleted):
                if partition in self._held:
                    break
                started = loop.time()
                await loop.run_in_executor(self._executor, one.flush)
                self._synced(loop.time() - started)
                if one is not partition.log:
                    continue  # the log was moved to another directory, and the sync was in the old one
                if partition.syncs_before_commit:
                    partition.durable_up_to(Offset(one.recovery_point))
                    continue
                # The setting may have changed in the meantime: requests may be waiting for a sync that would never
                # come.
                partition.durable_up_to(Offset(one.log_end_offset))
                if one.unflushed_messages < one.config.flush_messages:
                    break
        except StorageFailure as failure:
            self._failed(failure)
        except Refused as refusal:
            # There was no space, or no file handle, for the sync. Nothing is committed; the next append syncs again.
            log.warning("a log could not be synced now", partition=partition.topic_partition, reason=refusal.message)
        except Exception as problem:  # the edge of the task
            log.exception("a sync failed because of a bug", partition=partition.topic_partition)
            self._on_bug(problem)
        finally:
            del self._under_way[partition]

    async def hold(self, partition: "Partition") -> None:
        """Begin no sync of this partition until `release`, and return when none is under way. Requests wait."""
        self._held.add(partition)
        await self.finish_with(partition)

    def release(self, partition: "Partition") -> None:
        """Allow syncs again. May be called for a partition that is not held."""
        if partition in self._held:
            self._held.discard(partition)
            if partition.syncs_before_commit:
                self.ask(partition)

    async def finish_with(self, partition: "Partition") -> None:
        """Wait for this partition's sync, if one is under way."""
        task = self._under_way.get(partition)
        if task is not None:
            await asyncio.wait((task,))

    async def finish(self) -> None:
        """Wait for the syncs under way."""
        while self._under_way:
            await asyncio.wait(self._under_way.values())
