"""OffsetForLeaderEpoch: the end offset of a leader epoch, by which clients detect that their position was truncated."""

from kaspar.base.errors import Refused
from kaspar.broker.partitions import Partitions
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


class OffsetForLeaderEpochHandler:
    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def __call__(self, context: RequestContext, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        return OffsetForLeaderEpochResponse(
            topics=tuple(
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=tuple(self._end_of(topic.topic, wanted) for wanted in topic.partitions),
                )
                for topic in request.topics
            )
        )

    def _end_of(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
        try:
            partition = self._partitions.lead(topic, wanted.partition)
            partition.state.check_epoch(wanted.current_leader_epoch)
            end = partition.log.end_offset_for_epoch(wanted.leader_epoch)
        except Refused as refusal:
            return EpochEndOffset(partition=wanted.partition, error_code=refusal.code)
        if end is None:
            return EpochEndOffset(partition=wanted.partition)
        return EpochEndOffset(partition=wanted.partition, leader_epoch=end.epoch, end_offset=end.end_offset)
