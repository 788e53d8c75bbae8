"""Lists and describes the topics of a cluster.

Modules that only descriptions need are imported where they are used, so that commands that only list topics start
faster.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from kaspar.acls.acl import AclOperation
from kaspar.base.errors import Refused
from kaspar.client.admin.session import Admin, refusal
from kaspar.client.core import UnsupportedByPeer
from kaspar.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from kaspar.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponsePartition

PARTITIONS_PER_RESPONSE = 2000
"""How many partitions are requested from DescribeTopicPartitions at a time, as in Kafka's Admin."""
_NOT_ASKED = -(1 << 31)


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    partition: int
    leader: int
    """-1 if there is none."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    """The eligible leader replicas (KIP-966); None if the cluster does not track them."""
    last_known_elr: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    """Sorted by number."""
    authorized_operations: frozenset[AclOperation] | None = None
    """What the caller may do with the topic; None if that was not requested."""


def list_topics(admin: Admin, *, include_internal: bool = True) -> list[str]:
    """The names of all topics, sorted."""
    response = admin.ask_any("listTopics", MetadataRequest(topics=None), MetadataResponse)
    return sorted(
        topic.name
        for topic in response.topics
        if topic.name is not None and (include_internal or not topic.is_internal)
    )


def list_topic_ids(admin: Admin, *, include_internal: bool = True) -> dict[UUID, str]:
    """The name of each topic by its id. Brokers before Kafka 2.8 have no ids."""
    response = admin.ask_any("listTopics", MetadataRequest(topics=None), MetadataResponse)
    return {
        topic.topic_id: topic.name
        for topic in response.topics
        if topic.name is not None and (include_internal or not topic.is_internal)
    }


def describe_topics(
    admin: Admin, names: Collection[str], *, partitions_per_response: int = PARTITIONS_PER_RESPONSE
) -> dict[str, TopicDescription | Refused]:
    """The description of each topic, or an error. Does not create topics."""
    if not names:
        return {}
    try:
        return _describe_in_pages(admin, sorted(set(names)), partitions_per_response)
    except UnsupportedByPeer:  # Apache Kafka before 3.8
        return describe_topics_by_metadata(admin, sorted(set(names)))


def describe_topics_by_metadata(
    admin: Admin, names: Collection[str] | None = None, *, include_authorized_operations: bool = False
) -> dict[str, TopicDescription | Refused]:
    """Describe these topics, or all (None), in one Metadata request, without eligible leader replicas."""
    wanted = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
    request = MetadataRequest(
        topics=wanted,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=include_authorized_operations,
    )
    response = admin.ask_any("describeTopics", request, MetadataResponse)
    return {topic.name or "": _from_metadata(topic) for topic in response.topics}


def describe_topic_ids(admin: Admin, topic_ids: Collection[UUID]) -> dict[UUID, TopicDescription | Refused]:
    """Describe topics by id, without eligible leader replicas, which no request by id returns."""
    wanted = tuple(MetadataRequestTopic(topic_id=each, name=None) for each in topic_ids)
    response = admin.ask_any(
        "describeTopics", MetadataRequest(topics=wanted, allow_auto_topic_creation=False), MetadataResponse
    )
    return {topic.topic_id: _from_metadata(topic) for topic in response.topics}


def _describe_in_pages(admin: Admin, names: Sequence[str], limit: int) -> dict[str, TopicDescription | Refused]:
    """Describe topics with DescribeTopicPartitions (KIP-966). `names` are sorted; a response has at most `limit`
    partitions.
    """
    from kaspar.protocol.messages.describe_topic_partitions import (
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
        RequestCursor,
        TopicRequest,
    )

    described: dict[str, TopicDescription | Refused] = {}
    partitions: dict[str, list[DescribeTopicPartitionsResponsePartition]] = {name: [] for name in names}
    left, start = names, None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=tuple(TopicRequest(name=name) for name in left), response_partition_limit=limit, cursor=start
        )
        response = admin.ask_any("describeTopics", request, DescribeTopicPartitionsResponse)
        for topic in response.topics:
            name = topic.name or ""
            partitions[name] += topic.partitions
            described[name] = refusal(topic.error_code) or TopicDescription(
                name, topic.topic_id, topic.is_internal, _in_order(partitions[name])
            )
        if (cursor := response.next_cursor) is None:
            return described
        left = [name for name in names if name >= cursor.topic_name]
        start = RequestCursor(topic_name=cursor.topic_name, partition_index=cursor.partition_index)


def _from_metadata(topic: MetadataResponseTopic) -> TopicDescription | Refused:
    return refusal(topic.error_code) or TopicDescription(
        topic.name or "",
        topic.topic_id,
        topic.is_internal,
        _in_order(topic.partitions),
        _operations(topic.topic_authorized_operations),
    )


def _operations(bits: int) -> frozenset[AclOperation] | None:
    """The operations of a bit field, in which bit n is set for the operation with code n (KIP-430)."""
    return None if bits == _NOT_ASKED else frozenset(each for each in AclOperation if bits >> each & 1)


def _in_order(
    partitions: "Iterable[MetadataResponsePartition | DescribeTopicPartitionsResponsePartition]",
) -> tuple[PartitionDescription, ...]:
    return tuple(sorted(map(_partition, partitions), key=lambda each: each.partition))


def _partition(found: "MetadataResponsePartition | DescribeTopicPartitionsResponsePartition") -> PartitionDescription:
    elr: tuple[tuple[int, ...] | None, tuple[int, ...] | None] = (None, None)
    if not isinstance(found, MetadataResponsePartition):
        elr = (found.eligible_leader_replicas, found.last_known_elr)
    return PartitionDescription(
        found.partition_index,
        found.leader_id,
        found.leader_epoch,
        found.replica_nodes,
        found.isr_nodes,
        found.offline_replicas,
        *elr,
    )
