"""Starts, cancels and lists reassignments, which move partitions to other brokers (KIP-455)."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.session import Admin, refusal, refuse
from kaspar.client.offsets import by_topic
from kaspar.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kaspar.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


class Reassignment(NamedTuple):
    """A reassignment in progress."""

    replicas: tuple[int, ...]
    """All replicas, including those that are being added or removed."""
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


def alter_reassignments(
    admin: Admin,
    targets: Mapping[TopicPartition, tuple[int, ...] | None],
    *,
    allow_replication_factor_change: bool = True,
) -> dict[TopicPartition, Refused]:
    """Move partitions to these replicas, or cancel the reassignment of a partition (None). Returns the partitions that
    were refused. `allow_replication_factor_change=False` requires a cluster with KIP-860."""
    topics = tuple(
        ReassignableTopic(
            name=topic,
            partitions=tuple(
                ReassignablePartition(partition_index=number, replicas=targets[TopicPartition(topic, number)])
                for number in numbers
            ),
        )
        for topic, numbers in by_topic(targets).items()
    )
    response = admin.ask_controller(
        "alterPartitionReassignments",
        AlterPartitionReassignmentsRequest(
            timeout_ms=admin.timeout_ms, allow_replication_factor_change=allow_replication_factor_change, topics=topics
        ),
        AlterPartitionReassignmentsResponse,
    )
    refuse(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): problem
        for topic in response.responses
        for each in topic.partitions
        if (problem := refusal(each.error_code, each.error_message)) is not None
    }


def list_reassignments(
    admin: Admin, partitions: Collection[TopicPartition] | None = None
) -> dict[TopicPartition, Reassignment]:
    """The reassignments in progress of these partitions, or of all (None)."""
    topics = None
    if partitions is not None:
        topics = tuple(
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=tuple(numbers))
            for topic, numbers in by_topic(partitions).items()
        )
    response = admin.ask_controller(
        "listPartitionReassignments",
        ListPartitionReassignmentsRequest(timeout_ms=admin.timeout_ms, topics=topics),
        ListPartitionReassignmentsResponse,
    )
    refuse(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): Reassignment(
            each.replicas, each.adding_replicas, each.removing_replicas
        )
        for topic in response.topics
        for each in topic.partitions
    }
