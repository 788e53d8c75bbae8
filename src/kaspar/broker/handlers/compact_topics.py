"""CompactTopics, Kaspar's own: compact partitions now, and tell how far they are. Internal topics too."""

from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.broker.handlers import RequestContext
from kaspar.protocol.messages.compact_topics import (
    CompactTopicsPartition,
    CompactTopicsPartitionResult,
    CompactTopicsRequest,
    CompactTopicsResponse,
    CompactTopicsTopicResult,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


async def handle(broker: "Broker", context: RequestContext, request: CompactTopicsRequest) -> CompactTopicsResponse:
    return CompactTopicsResponse(
        topics=tuple(
            [
                CompactTopicsTopicResult(
                    name=topic.name,
                    partitions=tuple([await _compact(broker, topic.name, partition) for partition in topic.partitions]),
                )
                for topic in request.topics
            ]
        )
    )


async def _compact(broker: "Broker", topic: str, wanted: CompactTopicsPartition) -> CompactTopicsPartitionResult:
    index = wanted.partition_index
    try:
        partition = broker.partitions.lead(topic, index)
        progress = await broker.cleaning.compact(partition, wanted.target_offset)
    except Refused as refusal:
        return CompactTopicsPartitionResult(
            partition_index=index, error_code=refusal.code, error_message=refusal.message
        )
    except StorageFailure as failure:
        broker.log_directory_failed(failure)
        return CompactTopicsPartitionResult(
            partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR, error_message=str(failure)
        )
    return CompactTopicsPartitionResult(
        partition_index=index,
        target_offset=progress.target_offset,
        first_dirty_offset=progress.first_dirty_offset,
        log_end_offset=partition.log.log_end_offset,
        size_bytes=partition.log.size,
        records_removed=progress.records_removed,
        cleaned_percent=progress.percent,
    )
