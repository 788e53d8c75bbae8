"""ListOffsets: the offset of a point in a partition: its ends, a time, the largest timestamp."""

from collections import Counter
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import NO_OFFSET, NO_TIMESTAMP
from kaspar.broker.handlers import RequestContext
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kaspar.replication.partition import Partition

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
CONSUMER: Final = -1

# Which version of the request a special timestamp came with.
FIRST_VERSION: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


async def handle(broker: "Broker", context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """A partition that is named more than once is refused, and answered once."""
    named = Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    topics: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        answers = topics.setdefault(topic.name, {})
        for wanted in topic.partitions:
            index = wanted.partition_index
            try:
                if named[topic.name, index] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, "the partition is named more than once")
                if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
                    raise Refused(ErrorCode.INVALID_REQUEST, f"there is no isolation level {request.isolation_level}")
                answers[index] = await _look_up(broker, context.version, request, topic.name, wanted)
            except Refused as refusal:
                answers[index] = ListOffsetsPartitionResponse(partition_index=index, error_code=refusal.code)
            except StorageFailure as failure:
                broker.log_directory_failed(failure)
                code = ErrorCode.KAFKA_STORAGE_ERROR
                answers[index] = ListOffsetsPartitionResponse(partition_index=index, error_code=code)
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(name=name, partitions=tuple(answers.values())) for name, answers in topics.items()
        )
    )


async def _look_up(
    broker: "Broker", version: int, request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    if wanted.timestamp < 0 and version < FIRST_VERSION.get(wanted.timestamp, version + 1):
        raise Refused(
            ErrorCode.UNSUPPORTED_VERSION, f"timestamp {wanted.timestamp} has no meaning at version {version}"
        )
    partition = broker.partitions.lead(topic, wanted.partition_index)
    partition.state.check_epoch(wanted.current_leader_epoch)
    timestamp, offset, leader_epoch = await _find(broker, request, partition, wanted.timestamp)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )


async def _find(
    broker: "Broker", request: ListOffsetsRequest, partition: Partition, timestamp: int
) -> tuple[int, int, int]:
    """Timestamp, offset and leader epoch of what was asked for; -1 for each where there is no such thing."""
    log = partition.log
    nothing = (NO_TIMESTAMP, NO_OFFSET, -1)
    if request.replica_id != CONSUMER:
        end = log.log_end_offset
    elif request.isolation_level == READ_COMMITTED:
        end = partition.last_stable_offset
    else:
        end = partition.high_watermark
    if timestamp == LATEST:
        return NO_TIMESTAMP, end, partition.state.leadership.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.epoch_for_offset(log.log_start_offset)
        return NO_TIMESTAMP, log.log_start_offset, -1 if epoch is None else epoch
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return nothing  # there is no tiered storage, so nothing is in it or on its way to it
    if timestamp == MAX_TIMESTAMP:
        found = await broker.run_blocking(log.offset_of_max_timestamp)
    else:
        found = await broker.run_blocking(log.offset_for_timestamp, timestamp)
    if found is None or found.offset >= end:
        return nothing
    return found.timestamp, found.offset, found.leader_epoch
