"""The producers that a partition knows, with their open transactions (KIP-664)."""

from collections.abc import Collection
from dataclasses import dataclass

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_EPOCH, NO_OFFSET, TopicPartition
from kaspar.client.admin.session import Admin, refusal
from kaspar.client.offsets import by_leader, by_topic
from kaspar.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)


@dataclass(frozen=True, slots=True)
class ProducerState:
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    """None if no transaction of the producer has ended on this partition."""
    transaction_start_offset: int | None
    """None if the producer has no open transaction on this partition."""


def describe_producers(
    admin: Admin, partitions: Collection[TopicPartition], *, broker_id: int | None = None
) -> dict[TopicPartition, tuple[ProducerState, ...] | Refused]:
    """As the leader of each partition knows them, or a broker that has a replica."""
    call = "describeProducers"
    if broker_id is not None:
        brokers = {broker_id: dict.fromkeys(partitions)}
    else:
        topics = sorted({where.topic for where in partitions})
        admin.retry(
            f"{call}(api=METADATA)", lambda: admin.client.refresh_metadata(topics), lambda response: ErrorCode.NONE
        )
        try:
            brokers = by_leader(admin.client, dict.fromkeys(partitions))
        except Refused as refused:  # Kafka's client waits for a partition that does not exist until its time is up
            return dict.fromkeys(partitions, Refused(refused.code, refused.code.name))
    found: dict[TopicPartition, tuple[ProducerState, ...] | Refused] = {}
    for node, together in brokers.items():
        request = DescribeProducersRequest(
            topics=tuple(
                TopicRequest(name=topic, partition_indexes=tuple(numbers))
                for topic, numbers in by_topic(together).items()
            )
        )
        response = admin.ask_broker(call, node, request, DescribeProducersResponse)
        for topic in response.topics:
            for each in topic.partitions:
                found[TopicPartition(topic.name, each.partition_index)] = _producers(each)
    return found


def _producers(partition: PartitionResponse) -> tuple[ProducerState, ...] | Refused:
    return refusal(partition.error_code, partition.error_message) or tuple(
        ProducerState(
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            each.last_timestamp,
            None if each.coordinator_epoch == NO_EPOCH else each.coordinator_epoch,
            None if each.current_txn_start_offset == NO_OFFSET else each.current_txn_start_offset,
        )
        for each in partition.active_producers
    )
