"""ListTimestamps, an API of Kaspar: when the records at offsets were written, as far as batch headers have it."""

from typing import Final

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.broker.partitions import Partitions
from kaspar.broker.services import Failures, Threads
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.list_timestamps import (
    NO_RECORD,
    NOT_LOOKED_UP,
    ListTimestampsPartition,
    ListTimestampsPartitionResult,
    ListTimestampsRequest,
    ListTimestampsResponse,
    ListTimestampsTopicResult,
)
from kaspar.replication.partition import Partition

MOST_OFFSETS: Final = 10_000
"""The limit for one request. Each offset may need a read from disk."""


class ListTimestampsHandler:
    def __init__(self, partitions: Partitions, threads: Threads, failures: Failures) -> None:
        self._partitions = partitions
        self._threads = threads
        self._failures = failures

    async def __call__(self, context: RequestContext, request: ListTimestampsRequest) -> ListTimestampsResponse:
        topics = []
        left = MOST_OFFSETS
        for topic in request.topics:
            results = []
            for wanted in topic.partitions:
                results.append(await self._look_up(topic.name, wanted, left))
                left = max(left - len(wanted.offsets), 0)
            topics.append(ListTimestampsTopicResult(name=topic.name, partitions=tuple(results)))
        return ListTimestampsResponse(topics=tuple(topics))

    async def _look_up(
        self, topic: str, wanted: ListTimestampsPartition, at_most: int
    ) -> ListTimestampsPartitionResult:
        index = wanted.partition_index
        try:
            partition = self._partitions.lead(topic, index)
            if len(wanted.offsets) > at_most:
                raise Refused(ErrorCode.INVALID_REQUEST, f"a request may have at most {MOST_OFFSETS} offsets")
            timestamps = await self._threads.run_blocking(_timestamps, partition, wanted.offsets)
        except Refused as refusal:
            return ListTimestampsPartitionResult(partition_index=index, error_code=refusal.code)
        except StorageFailure as failure:
            self._failures.log_directory_failed(failure)
            return ListTimestampsPartitionResult(partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        return ListTimestampsPartitionResult(partition_index=index, timestamps=timestamps)


def _timestamps(partition: Partition, offsets: tuple[int, ...]) -> tuple[int, ...]:
    end = partition.high_watermark
    return tuple(_timestamp(partition, offset, end) for offset in offsets)


def _timestamp(partition: Partition, offset: int, end: int) -> int:
    if offset >= end:
        return NO_RECORD
    found = partition.log.first_data_batch(offset)
    if not found.is_known:
        return NOT_LOOKED_UP
    if found.batch is None or found.batch.offset >= end:
        return NO_RECORD
    return found.batch.timestamp if found.batch.timestamp >= 0 else NOT_LOOKED_UP
