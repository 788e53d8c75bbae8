"""DescribeQuorum: who keeps the cluster's metadata.

There is no Raft quorum: the controller is told as leader and only voter. Metadata is not kept as a log, so the offsets
are zero, and nobody lags behind.
"""

from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import RequestContext
from kaspar.metadata import ClusterImage
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

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

METADATA_TOPIC: Final = "__cluster_metadata"
NO_MESSAGE: Final = ""
"""Kafka's default in this response, where others have null."""
METADATA_LOG: Final = (
    RequestTopicData(topic_name=METADATA_TOPIC, partitions=(RequestPartitionData(partition_index=0),)),
)


def handle(broker: "Broker", context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if request.topics != METADATA_LOG:
        return _unknown(request)
    image = broker.image
    now_ms = broker.clock.now_ms()
    voter = ReplicaState(
        replica_id=image.controller_id,
        log_end_offset=0,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    partition = ResponsePartitionData(
        partition_index=0,
        error_message=NO_MESSAGE,
        leader_id=image.controller_id,
        leader_epoch=image.controller_epoch,
        high_watermark=0,
        current_voters=(voter,),
        observers=(),
    )
    topic = ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return DescribeQuorumResponse(error_message=NO_MESSAGE, topics=(topic,), nodes=_nodes(image))


def _nodes(image: ClusterImage) -> tuple[Node, ...]:
    controller = image.brokers.get(image.controller_id)
    if controller is None:
        return ()
    listeners = (
        Listener(name=endpoint.listener, host=endpoint.host, port=endpoint.port) for endpoint in controller.endpoints
    )
    return (Node(node_id=image.controller_id, listeners=tuple(listeners)),)


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Kafka refuses all of a request that asks for anything else, too."""
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
