"""DeleteRecords: everything before an offset is gone for readers, at once; the segments follow.

Where the log begins now is written down before the answer, so that no crash brings back what was said to be deleted.
"""

from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import Offset
from kaspar.broker.handlers import RequestContext
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

UP_TO_HIGH_WATERMARK: Final = -1
NO_LOW_WATERMARK: Final = -1


async def handle(broker: "Broker", context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """A partition that is named more than once is answered once, and its last offset counts."""
    wanted: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        partitions = wanted.setdefault(topic.name, {})
        partitions.update((partition.partition_index, partition) for partition in topic.partitions)
    topics = tuple(
        DeleteRecordsTopicResult(
            name=name, partitions=tuple(_delete(broker, name, partition) for partition in partitions.values())
        )
        for name, partitions in wanted.items()
    )
    try:
        await broker.run_blocking(broker.logs.checkpoint)
    except StorageFailure as failure:
        broker.log_directory_failed(failure)
    return DeleteRecordsResponse(topics=topics)


def _delete(broker: "Broker", topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    index = wanted.partition_index
    try:
        low_watermark = _advance_start(broker, topic, index, wanted.offset)
    except Refused as refusal:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=refusal.code
        )
    except StorageFailure as failure:
        broker.log_directory_failed(failure)
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=ErrorCode.KAFKA_STORAGE_ERROR
        )
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)


def _advance_start(broker: "Broker", topic: str, index: int, offset: int) -> Offset:
    broker.refuse_internal_topic(topic)
    partition = broker.partitions.lead(topic, index)
    if "delete" not in partition.log.config.cleanup_policy:
        raise Refused(ErrorCode.POLICY_VIOLATION, "records of a topic that is only compacted cannot be deleted")
    target = partition.high_watermark if offset == UP_TO_HIGH_WATERMARK else Offset(offset)
    if target < 0 or target > partition.high_watermark:
        raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not between 0 and {partition.high_watermark}")
    partition.log.advance_log_start_offset(target)
    return Offset(partition.log.log_start_offset)
