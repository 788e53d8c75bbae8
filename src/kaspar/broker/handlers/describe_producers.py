"""DescribeProducers: the producers that a partition remembers, with the state that it keeps of them."""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from kaspar.base.errors import Refused
from kaspar.broker.handlers import slices
from kaspar.broker.handlers.slices import Turns
from kaspar.broker.partitions import Partitions
from kaspar.metadata.topic_names import check_topic_name
from kaspar.network.api import HandlerResult, PartlyEncoded, RequestContext
from kaspar.protocol import codec
from kaspar.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kaspar.storage import ProducerEntry


class _Described(NamedTuple):
    """A partition's result without its producers, and the producers."""

    partition: PartitionResponse
    producers: list[ProducerEntry]


class DescribeProducersHandler:
    def __init__(self, partitions: Partitions, turns: Turns) -> None:
        self._partitions = partitions
        self._turns = turns

    def __call__(self, context: RequestContext, request: DescribeProducersRequest) -> HandlerResult:
        topics = [
            (topic.name, [self._look_up(topic.name, index) for index in topic.partition_indexes])
            for topic in request.topics
        ]
        if sum(len(found.producers) for _, partitions in topics for found in partitions) > slices.AT_ONCE:
            return self._in_slices(topics, context.version)
        return DescribeProducersResponse(
            topics=tuple(
                TopicResponse(
                    name=name,
                    partitions=tuple(
                        replace(found.partition, active_producers=tuple(map(_to_wire, found.producers)))
                        for found in partitions
                    ),
                )
                for name, partitions in topics
            )
        )

    async def _in_slices(self, topics: list[tuple[str, list[_Described]]], version: int) -> PartlyEncoded:
        encoded_topics = []
        codes: Counter[int] = Counter()
        for name, partitions in topics:
            encoded_partitions = []
            for partition, producers in partitions:
                encoded = await slices.encoded(self._turns, map(_to_wire, producers), version)
                encoded_partitions.append(codec.write(partition, version, {"active_producers": encoded}))
                codes[partition.error_code] += 1
            topic = TopicResponse(name=name, partitions=())
            encoded_topics.append(codec.write(topic, version, {"partitions": encoded_partitions}))
        return PartlyEncoded(DescribeProducersResponse(topics=()), {"topics": encoded_topics}, codes)

    def _look_up(self, topic: str, index: int) -> _Described:
        try:
            check_topic_name(topic)
            partition = self._partitions.lead(topic, index)
        except Refused as refusal:
            refused = PartitionResponse(
                partition_index=index, error_code=refusal.code, error_message=refusal.message, active_producers=()
            )
            return _Described(refused, [])
        return _Described(
            PartitionResponse(partition_index=index, active_producers=()), partition.log.active_producers()
        )


def _to_wire(producer: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_txn_first_offset,
    )
