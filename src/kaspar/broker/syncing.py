"""Group commit: many appends share one fsync.

Of each partition at most one sync is under way. What is appended meanwhile is covered by the next one, so the slower
the disk, the more records each sync carries. A partition with `flush.messages=1` commits only what a sync has
covered; with a larger number, or `flush.ms`, syncing happens in the background and nobody waits for it.
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
        met_a_bug: Callable[[Exception], None],
    ) -> None:
        self._executor = executor
        self._synced = synced
        self._failed = failed
        self._met_a_bug = met_a_bug
        self._under_way: dict[Partition, asyncio.Task[None]] = {}

    def ask(self, partition: "Partition") -> None:
        """Sync this partition's log soon. What was appended before this call will be covered."""
        if partition not in self._under_way:
            task = asyncio.get_running_loop().create_task(self._sync(partition))
            self._under_way[partition] = task

    async def _sync(self, partition: "Partition") -> None:
        loop = asyncio.get_running_loop()
        one = partition.log
        try:
            while one.recovery_point < one.log_end_offset and not partition.offline and not one.deleted:
                started = loop.time()
                await loop.run_in_executor(self._executor, one.flush)
                self._synced(loop.time() - started)
                if partition.syncs_before_commit:
                    partition.durable_up_to(Offset(one.recovery_point))
                    continue
                # Perhaps since a moment ago: then somebody may be waiting for a sync that nobody does any longer.
                partition.durable_up_to(Offset(one.log_end_offset))
                if one.unflushed_messages < one.config.flush_messages:
                    break
        except StorageFailure as failure:
            self._failed(failure)
        except Refused as refusal:
            # No space, or no file handle, for what goes with a sync: nothing is committed, and the next append asks
            # again.
            log.warning("a log could not be synced now", partition=partition.topic_partition, reason=refusal.message)
        except Exception as problem:  # the edge of the task
            log.exception("a sync met a bug", partition=partition.topic_partition)
            self._met_a_bug(problem)
        finally:
            del self._under_way[partition]

    async def finish_with(self, partition: "Partition") -> None:
        """Wait for this partition's sync, if one is under way."""
        task = self._under_way.get(partition)
        if task is not None:
            await asyncio.wait((task,))

    async def finish(self) -> None:
        """Wait for the syncs under way."""
        while self._under_way:
            await asyncio.wait(self._under_way.values())
