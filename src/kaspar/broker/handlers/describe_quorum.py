"""DescribeQuorum: the brokers that keep the cluster's metadata.

There is no Raft quorum. The controller is reported as leader and only voter, and the other brokers, which follow its
images, as observers. Metadata is not kept as a log, so all offsets are zero, and no broker lags behind.
"""

from typing import Final

from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode
from kaspar.metadata import ClusterImage
from kaspar.metadata.images import ImageSource
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)

METADATA_TOPIC: Final = "__cluster_metadata"
NO_MESSAGE: Final = ""
"""Kafka's default in this response, where others have null."""
METADATA_LOG: Final = (
    RequestTopicData(topic_name=METADATA_TOPIC, partitions=(RequestPartitionData(partition_index=0),)),
)


class DescribeQuorumHandler:
    def __init__(self, images: ImageSource, clock: Clock) -> None:
        self._images = images
        self._clock = clock

    def __call__(self, context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        if request.topics != METADATA_LOG:
            return _unknown(request)
        image = self._images.current
        now_ms = self._clock.now_ms()
        others = [broker_id for broker_id in image.brokers if broker_id != image.controller_id]
        partition = ResponsePartitionData(
            partition_index=0,
            error_message=NO_MESSAGE,
            leader_id=image.controller_id,
            leader_epoch=image.controller_epoch,
            high_watermark=0,
            current_voters=(_replica(image.controller_id, now_ms),),
            observers=tuple(_replica(broker_id, now_ms) for broker_id in others),
        )
        topic = ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
        return DescribeQuorumResponse(error_message=NO_MESSAGE, topics=(topic,), nodes=_nodes(image))


def _replica(broker_id: int, now_ms: int) -> ReplicaState:
    return ReplicaState(
        replica_id=broker_id, log_end_offset=0, last_fetch_timestamp=now_ms, last_caught_up_timestamp=now_ms
    )


def _nodes(image: ClusterImage) -> tuple[Node, ...]:
    controller = image.brokers.get(image.controller_id)
    if controller is None:
        return ()
    listeners = (
        Listener(name=endpoint.listener, host=endpoint.host, port=endpoint.port) for endpoint in controller.endpoints
    )
    return (Node(node_id=image.controller_id, listeners=tuple(listeners)),)


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Refuse a request for any other partition, as a whole, as Kafka does."""
    return DescribeQuorumResponse(
        error_message=NO_MESSAGE,
        topics=tuple(
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=tuple(
                    ResponsePartitionData(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message=f"The only quorum is that of partition 0 of {METADATA_TOPIC}.",
                        leader_id=0,
                        leader_epoch=0,
                        high_watermark=0,
                        current_voters=(),
                        observers=(),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
