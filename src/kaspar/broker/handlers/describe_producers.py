"""DescribeProducers: the producers a partition remembers, with the sequence numbers it expects of them."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kaspar.base.errors import Refused
from kaspar.broker.handlers import Answer, PartlyEncoded, RequestContext, slices
from kaspar.metadata.topic_names import check_topic_name
from kaspar.protocol import codec
from kaspar.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kaspar.storage import ProducerEntry

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


class _Described(NamedTuple):
    """A partition, without its producers, and those."""

    partition: PartitionResponse
    producers: list[ProducerEntry]


def handle(broker: "Broker", context: RequestContext, request: DescribeProducersRequest) -> Answer:
    topics = [
        (topic.name, [_look_up(broker, topic.name, index) for index in topic.partition_indexes])
        for topic in request.topics
    ]
    if sum(len(found.producers) for _, partitions in topics for found in partitions) > slices.AT_ONCE:
        return _in_slices(broker, topics, context.version)
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(
                name=name,
                partitions=tuple(
                    replace(found.partition, active_producers=tuple(map(_told, found.producers)))
                    for found in partitions
                ),
            )
            for name, partitions in topics
        )
    )


async def _in_slices(broker: "Broker", topics: list[tuple[str, list[_Described]]], version: int) -> PartlyEncoded:
    encoded_topics = []
    codes: Counter[int] = Counter()
    for name, partitions in topics:
        encoded_partitions = []
        for partition, producers in partitions:
            told = await slices.encoded(broker, map(_told, producers), version)
            encoded_partitions.append(codec.write(partition, version, {"active_producers": told}))
            codes[partition.error_code] += 1
        topic = TopicResponse(name=name, partitions=())
        encoded_topics.append(codec.write(topic, version, {"partitions": encoded_partitions}))
    return PartlyEncoded(DescribeProducersResponse(topics=()), {"topics": encoded_topics}, codes)


def _look_up(broker: "Broker", topic: str, index: int) -> _Described:
    try:
        check_topic_name(topic)
        partition = broker.partitions.lead(topic, index)
    except Refused as refusal:
        refused = PartitionResponse(
            partition_index=index, error_code=refusal.code, error_message=refusal.message, active_producers=()
        )
        return _Described(refused, [])
    return _Described(PartitionResponse(partition_index=index, active_producers=()), partition.log.active_producers())


def _told(producer: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_txn_first_offset,
    )
