"""DeleteRecords: everything before an offset is gone for readers, at once; the segments follow, in steps.

Where the log begins now is written down before the answer, so that no crash brings back what was said to be deleted.
Where that cannot be done, also because the disk is full, the answer is KAFKA_STORAGE_ERROR: the records are gone, and
their segments make room, but a crash could bring some of them back. Who asks again when there is room is told so.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import Offset
from kaspar.base.log import get_log
from kaspar.broker.handlers import RequestContext
from kaspar.broker.upkeep import drop_old_segments
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kaspar.replication.partition import Partition

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)

UP_TO_HIGH_WATERMARK: Final = -1
NO_LOW_WATERMARK: Final = Offset(-1)


async def handle(broker: "Broker", context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """A partition that is named more than once is answered once, and its last offset counts."""
    wanted: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        partitions = wanted.setdefault(topic.name, {})
        partitions.update((partition.partition_index, partition) for partition in topic.partitions)
    asked = [
        (name, [_delete(broker, name, partition) for partition in partitions.values()])
        for name, partitions in wanted.items()
    ]
    try:
        await broker.run_blocking(broker.logs.checkpoint)
    except StorageFailure as failure:
        broker.log_directory_failed(failure)
    except Refused as refusal:
        log.warning("where logs begin could not be written down", reason=refusal.message)
    topics = tuple(
        DeleteRecordsTopicResult(name=name, partitions=tuple(_result(broker, one) for one in deletions))
        for name, deletions in asked
    )
    for _, deletions in asked:
        for deletion in deletions:
            if deletion.partition is not None:
                await _drop_segments(broker, deletion.partition)
    return DeleteRecordsResponse(topics=topics)


@dataclass(frozen=True, slots=True)
class _Deletion:
    """What became of a partition before it was written down: refused, or begun."""

    index: int
    error: ErrorCode
    low_watermark: Offset = NO_LOW_WATERMARK
    partition: Partition | None = None


def _delete(broker: "Broker", topic: str, wanted: DeleteRecordsPartition) -> _Deletion:
    index = wanted.partition_index
    try:
        partition = _advance_start(broker, topic, index, wanted.offset)
    except Refused as refusal:
        return _Deletion(index, refusal.code)
    return _Deletion(index, ErrorCode.NONE, Offset(partition.log.log_start_offset), partition)


def _result(broker: "Broker", deletion: _Deletion) -> DeleteRecordsPartitionResult:
    error, low_watermark, partition = deletion.error, deletion.low_watermark, deletion.partition
    written = partition is None or partition.log.deleted or broker.logs.start_is_written(partition.log, low_watermark)
    if not written:
        error, low_watermark = ErrorCode.KAFKA_STORAGE_ERROR, NO_LOW_WATERMARK
    return DeleteRecordsPartitionResult(partition_index=deletion.index, low_watermark=low_watermark, error_code=error)


async def _drop_segments(broker: "Broker", partition: Partition) -> None:
    """Whatever comes of it: that the records are gone is written down, and retention looks after what is left."""
    try:
        await drop_old_segments(broker, partition)
    except StorageFailure as failure:
        broker.log_directory_failed(failure)
    except Refused as refusal:
        log.warning("segments are dropped later", partition=partition.topic_partition, reason=refusal.message)


def _advance_start(broker: "Broker", topic: str, index: int, offset: int) -> Partition:
    broker.refuse_internal_topic(topic)
    partition = broker.partitions.lead(topic, index)
    if "delete" not in partition.log.config.cleanup_policy:
        raise Refused(ErrorCode.POLICY_VIOLATION, "records of a topic that is only compacted cannot be deleted")
    target = partition.high_watermark if offset == UP_TO_HIGH_WATERMARK else Offset(offset)
    if target < 0 or target > partition.high_watermark:
        raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not between 0 and {partition.high_watermark}")
    partition.log.move_log_start_offset(target)
    return partition
