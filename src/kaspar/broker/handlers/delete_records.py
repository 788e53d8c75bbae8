"""DeleteRecords: records before an offset can no longer be read at once; their segments are deleted later, in steps.

The new log start offset is written before the response, so that no crash brings back deleted records. If it cannot be
written, for example because the disk is full, the response is KAFKA_STORAGE_ERROR. The records are gone then, and their
segments free space, but a crash could bring some of them back. A retry succeeds once there is space.

The response waits until the logs of all live replicas start at the offset (Kafka's DelayedDeleteRecords), so the
records are gone whichever of them leads next. After the request's timeout the response is REQUEST_TIMED_OUT.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import Offset
from kaspar.base.log import get_log
from kaspar.broker.partitions import Partitions
from kaspar.broker.services import Failures, Threads
from kaspar.broker.upkeep import drop_old_segments
from kaspar.metadata.topic_names import is_internal
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role
from kaspar.storage import LogManager

log = get_log(__name__)

UP_TO_HIGH_WATERMARK: Final = -1
NO_LOW_WATERMARK: Final = Offset(-1)


@dataclass(frozen=True, slots=True)
class _Deletion:
    """The deletion for one partition before it is written: refused, or begun."""

    index: int
    error: ErrorCode
    offset: Offset = NO_LOW_WATERMARK
    """The offset before which records are deleted."""
    partition: Partition | None = None

    @property
    def is_pending(self) -> bool:
        """Whether the logs of some replicas do not start at the offset yet."""
        partition = self.partition
        return (
            partition is not None
            and partition.state.role is Role.LEADER
            and not partition.offline
            and partition.low_watermark < self.offset
        )


class DeleteRecordsHandler:
    def __init__(self, partitions: Partitions, logs: LogManager, threads: Threads, failures: Failures) -> None:
        self._partitions = partitions
        self._logs = logs
        self._threads = threads
        self._failures = failures

    async def __call__(self, context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        """Delete records. A partition that is named more than once has one result, for the last offset."""
        until = asyncio.get_running_loop().time() + max(request.timeout_ms, 0) / 1000
        wanted: dict[str, dict[int, DeleteRecordsPartition]] = {}
        for topic in request.topics:
            partitions = wanted.setdefault(topic.name, {})
            partitions.update((partition.partition_index, partition) for partition in topic.partitions)
        begun = [
            (name, [self._delete(name, partition) for partition in partitions.values()])
            for name, partitions in wanted.items()
        ]
        deletions = [deletion for _, of_topic in begun for deletion in of_topic]
        await self._write_starts()
        if not all(map(self._is_written, deletions)):  # a log may have moved to another directory meanwhile
            await self._write_starts()
        unwritten = {id(deletion) for deletion in deletions if not self._is_written(deletion)}
        for deletion in deletions:
            if deletion.partition is not None:
                await self._drop_segments(deletion.partition)
        await _replicas_follow([each for each in deletions if id(each) not in unwritten], until)
        return DeleteRecordsResponse(
            topics=tuple(
                DeleteRecordsTopicResult(
                    name=name,
                    partitions=tuple(_result(each, is_written=id(each) not in unwritten) for each in of_topic),
                )
                for name, of_topic in begun
            )
        )

    def _delete(self, topic: str, wanted: DeleteRecordsPartition) -> _Deletion:
        index = wanted.partition_index
        try:
            partition = self._advance_start(topic, index, wanted.offset)
        except Refused as refusal:
            return _Deletion(index, refusal.code)
        target = partition.high_watermark if wanted.offset == UP_TO_HIGH_WATERMARK else Offset(wanted.offset)
        return _Deletion(index, ErrorCode.NONE, target, partition)

    def _advance_start(self, topic: str, index: int, offset: int) -> Partition:
        if is_internal(topic):
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is an internal topic")
        partition = self._partitions.lead(topic, index)
        if "delete" not in partition.log.config.cleanup_policy:
            raise Refused(ErrorCode.POLICY_VIOLATION, "records of a topic that is only compacted cannot be deleted")
        target = partition.high_watermark if offset == UP_TO_HIGH_WATERMARK else Offset(offset)
        if target < 0 or target > partition.high_watermark:
            raise Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not between 0 and {partition.high_watermark}"
            )
        partition.log.move_log_start_offset(target)
        return partition

    async def _write_starts(self) -> None:
        try:
            await self._threads.run_blocking(self._logs.checkpoint)
        except StorageFailure as failure:
            self._failures.log_directory_failed(failure)
        except Refused as refusal:
            log.warning("log start offsets could not be written", reason=refusal.message)

    def _is_written(self, deletion: _Deletion) -> bool:
        partition = deletion.partition
        return partition is None or partition.log.deleted or self._logs.start_is_written(partition.log, deletion.offset)

    async def _drop_segments(self, partition: Partition) -> None:
        """Drop segments. If that fails, retention drops them later, because the new log start offset is written."""
        try:
            await drop_old_segments(self._threads, partition)
        except StorageFailure as failure:
            self._failures.log_directory_failed(failure)
        except Refused as refusal:
            log.warning("segments will be deleted later", partition=partition.topic_partition, reason=refusal.message)


async def _replicas_follow(deletions: Sequence[_Deletion], until: float) -> None:
    """Return when all replicas have followed, or when the time is over."""
    changed = asyncio.Event()
    look_again = changed.set
    pending = [deletion for deletion in deletions if deletion.is_pending]
    watched = {deletion.partition for deletion in pending if deletion.partition is not None}
    for partition in watched:
        partition.low_watermark_waiters.add(look_again)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                while any(deletion.is_pending for deletion in pending):
                    changed.clear()
                    await changed.wait()
    finally:
        for partition in watched:
            partition.low_watermark_waiters.discard(look_again)


def _result(deletion: _Deletion, *, is_written: bool) -> DeleteRecordsPartitionResult:
    partition, error, low_watermark = deletion.partition, deletion.error, NO_LOW_WATERMARK
    if not is_written or (partition is not None and partition.offline):
        error = ErrorCode.KAFKA_STORAGE_ERROR
    elif partition is not None and partition.state.role is not Role.LEADER:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition.log.deleted else ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif partition is not None:
        error = ErrorCode.REQUEST_TIMED_OUT if deletion.is_pending else ErrorCode.NONE
        low_watermark = partition.low_watermark
    return DeleteRecordsPartitionResult(partition_index=deletion.index, low_watermark=low_watermark, error_code=error)
