"""DescribeProducers: the producers a partition remembers, with the sequence numbers it expects of them."""

from typing import TYPE_CHECKING

from kaspar.base.errors import Refused
from kaspar.broker.handlers import RequestContext
from kaspar.metadata.topic_names import check_topic_name
from kaspar.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(_describe(broker, topic.name, index) for index in topic.partition_indexes),
            )
            for topic in request.topics
        )
    )


def _describe(broker: "Broker", topic: str, index: int) -> PartitionResponse:
    try:
        check_topic_name(topic)
        partition = broker.partitions.lead(topic, index)
    except Refused as refusal:
        return PartitionResponse(
            partition_index=index, error_code=refusal.code, error_message=refusal.message, active_producers=()
        )
    return PartitionResponse(
        partition_index=index,
        active_producers=tuple(
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.current_txn_first_offset,
            )
            for producer in partition.log.active_producers()
        ),
    )
