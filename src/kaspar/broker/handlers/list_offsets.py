"""ListOffsets: the offset of a partition's start or end, of a timestamp, or of the largest timestamp."""

from collections import Counter
from typing import Final

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import NO_OFFSET, NO_TIMESTAMP
from kaspar.broker.partitions import Partitions
from kaspar.broker.services import Failures, Threads
from kaspar.network.api import RequestContext
from kaspar.protocol.isolation_level import ISOLATION_LEVELS, READ_COMMITTED
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kaspar.replication.partition import Partition

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

CONSUMER: Final = -1

# The first version of the request that has a special timestamp.
FIRST_VERSION: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
FIRST_WITH_OFFSET_NOT_AVAILABLE: Final = 5


class ListOffsetsHandler:
    def __init__(self, partitions: Partitions, threads: Threads, failures: Failures) -> None:
        self._partitions = partitions
        self._threads = threads
        self._failures = failures

    async def __call__(self, context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """Look up offsets. A partition that is named more than once is refused, and has one result."""
        named = Counter(
            (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
        )
        topics: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
        for topic in request.topics:
            results = topics.setdefault(topic.name, {})
            for wanted in topic.partitions:
                index = wanted.partition_index
                try:
                    if named[topic.name, index] > 1:
                        raise Refused(ErrorCode.INVALID_REQUEST, "the partition is named more than once")
                    if request.isolation_level not in ISOLATION_LEVELS:
                        raise Refused(ErrorCode.INVALID_REQUEST, f"unknown isolation level {request.isolation_level}")
                    results[index] = await self._look_up(context.version, request, topic.name, wanted)
                except Refused as refusal:
                    results[index] = ListOffsetsPartitionResponse(partition_index=index, error_code=refusal.code)
                except StorageFailure as failure:
                    self._failures.log_directory_failed(failure)
                    code = ErrorCode.KAFKA_STORAGE_ERROR
                    results[index] = ListOffsetsPartitionResponse(partition_index=index, error_code=code)
        return ListOffsetsResponse(
            topics=tuple(
                ListOffsetsTopicResponse(name=name, partitions=tuple(results.values()))
                for name, results in topics.items()
            )
        )

    async def _look_up(
        self, version: int, request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition
    ) -> ListOffsetsPartitionResponse:
        if wanted.timestamp < 0 and version < FIRST_VERSION.get(wanted.timestamp, version + 1):
            raise Refused(
                ErrorCode.UNSUPPORTED_VERSION, f"timestamp {wanted.timestamp} is not supported in version {version}"
            )
        partition = self._partitions.lead(topic, wanted.partition_index)
        partition.state.check_epoch(wanted.current_leader_epoch)
        timestamp, offset, leader_epoch = await self._find(version, request, partition, wanted.timestamp)
        return ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
        )

    async def _find(
        self, version: int, request: ListOffsetsRequest, partition: Partition, timestamp: int
    ) -> tuple[int, int, int]:
        """The timestamp, offset and leader epoch that match `timestamp`; -1 for each if nothing does."""
        log = partition.log
        nothing = (NO_TIMESTAMP, NO_OFFSET, -1)
        if request.replica_id != CONSUMER:
            end = log.log_end_offset
        elif request.isolation_level == READ_COMMITTED:
            end = partition.last_stable_offset
        else:
            end = partition.high_watermark
        if timestamp == LATEST:
            self._check_high_watermark(version, request, partition)
            return NO_TIMESTAMP, end, partition.state.leadership.leader_epoch
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            epoch = log.epoch_for_offset(log.log_start_offset)
            return NO_TIMESTAMP, log.log_start_offset, -1 if epoch is None else epoch
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return nothing  # there is no tiered storage
        if timestamp == MAX_TIMESTAMP:
            found = await self._threads.run_blocking(log.offset_of_max_timestamp)
        else:
            found = await self._threads.run_blocking(log.offset_for_timestamp, timestamp)
        if found is not None and found.offset >= end:
            self._check_high_watermark(version, request, partition)
        if found is None or found.offset >= end:
            return nothing
        return found.timestamp, found.offset, found.leader_epoch

    @staticmethod
    def _check_high_watermark(version: int, request: ListOffsetsRequest, partition: Partition) -> None:
        """Raise Refused if the end of the readable records is not known. A new leader may not know yet that records
        were committed which consumers have already read (KIP-207). Followers request the log's end, which is known.
        """
        if request.replica_id == CONSUMER and partition.state.is_high_watermark_behind:
            code = ErrorCode.OFFSET_NOT_AVAILABLE
            if version < FIRST_WITH_OFFSET_NOT_AVAILABLE:
                code = ErrorCode.LEADER_NOT_AVAILABLE
            raise Refused(code, "the leader does not know its high watermark yet")
