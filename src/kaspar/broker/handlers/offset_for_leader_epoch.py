"""OffsetForLeaderEpoch: where a leader epoch ended, so that a client can tell whether its position was truncated
away.
"""

from typing import TYPE_CHECKING

from kaspar.base.errors import Refused
from kaspar.broker.handlers import RequestContext
from kaspar.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(
    broker: "Broker", context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=tuple(_end_of(broker, topic.topic, wanted) for wanted in topic.partitions)
            )
            for topic in request.topics
        )
    )


def _end_of(broker: "Broker", topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = broker.partitions.lead(topic, wanted.partition)
        partition.state.check_epoch(wanted.current_leader_epoch)
        end = partition.log.end_offset_for_epoch(wanted.leader_epoch)
    except Refused as refusal:
        return EpochEndOffset(partition=wanted.partition, error_code=refusal.code)
    if end is None:
        return EpochEndOffset(partition=wanted.partition)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=end.epoch, end_offset=end.end_offset)
