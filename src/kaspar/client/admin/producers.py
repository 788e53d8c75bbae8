"""The producers that a partition knows, with their open transactions (KIP-664)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kaspar.base.errors import Refused
from kaspar.base.ids import NO_EPOCH, NO_OFFSET, TopicPartition
from kaspar.client.admin.leaders import ask_leaders
from kaspar.client.admin.session import Admin, refusal
from kaspar.client.offsets import by_topic
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
    """The producers of each partition, as known by its leader, or by a broker that has a replica."""
    call = "describeProducers"
    if broker_id is not None:
        return _by_partition(admin.ask_broker(call, broker_id, _request(partitions), DescribeProducersResponse))

    def ask(
        leader: int, together: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[ProducerState, ...] | Refused]:
        return _by_partition(admin.client.request_broker(leader, _request(together), DescribeProducersResponse))

    return ask_leaders(admin, f"{call}(api=METADATA)", dict.fromkeys(partitions), ask)


def _request(partitions: Iterable[TopicPartition]) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=tuple(
            TopicRequest(name=topic, partition_indexes=tuple(numbers))
            for topic, numbers in by_topic(partitions).items()
        )
    )


def _by_partition(response: DescribeProducersResponse) -> dict[TopicPartition, tuple[ProducerState, ...] | Refused]:
    return {
        TopicPartition(topic.name, each.partition_index): _producers(each)
        for topic in response.topics
        for each in topic.partitions
    }


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
