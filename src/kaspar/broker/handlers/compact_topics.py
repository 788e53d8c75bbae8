"""CompactTopics, an API of Kaspar: compacts partitions now, also of internal topics, and returns their progress."""

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.broker.cleaning.log_cleaner import Cleaning
from kaspar.broker.partitions import Partitions
from kaspar.broker.services import Failures
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.compact_topics import (
    CompactTopicsPartition,
    CompactTopicsPartitionResult,
    CompactTopicsRequest,
    CompactTopicsResponse,
    CompactTopicsTopicResult,
)


class CompactTopicsHandler:
    def __init__(self, partitions: Partitions, cleaning: Cleaning, failures: Failures) -> None:
        self._partitions = partitions
        self._cleaning = cleaning
        self._failures = failures

    async def __call__(self, context: RequestContext, request: CompactTopicsRequest) -> CompactTopicsResponse:
        topics = []
        for topic in request.topics:
            results = [await self._compact(topic.name, partition) for partition in topic.partitions]
            topics.append(CompactTopicsTopicResult(name=topic.name, partitions=tuple(results)))
        return CompactTopicsResponse(topics=tuple(topics))

    async def _compact(self, topic: str, wanted: CompactTopicsPartition) -> CompactTopicsPartitionResult:
        index = wanted.partition_index
        try:
            partition = self._partitions.lead(topic, index)
            progress = await self._cleaning.compact(partition, wanted.target_offset)
        except Refused as refusal:
            return CompactTopicsPartitionResult(
                partition_index=index, error_code=refusal.code, error_message=refusal.message
            )
        except StorageFailure as failure:
            self._failures.log_directory_failed(failure)
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
