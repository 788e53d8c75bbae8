"""Descriptions of topics with DescribeTopicPartitions (KIP-966), so many partitions at a time."""

from collections.abc import Iterable, Sequence

from kaspar.base.errors import Refused
from kaspar.client.admin.session import Admin, refusal
from kaspar.client.admin.topics import PartitionDescription, TopicDescription
from kaspar.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    RequestCursor,
    ResponseCursor,
    TopicRequest,
)


def describe_in_pages(admin: Admin, names: Sequence[str], limit: int) -> dict[str, TopicDescription | Refused]:
    """`names` are sorted; a response has at most `limit` partitions."""
    described: dict[str, TopicDescription | Refused] = {}
    partitions: dict[str, list[DescribeTopicPartitionsResponsePartition]] = {name: [] for name in names}
    cursor: ResponseCursor | None = None
    while True:
        start = (
            None
            if cursor is None
            else RequestCursor(topic_name=cursor.topic_name, partition_index=cursor.partition_index)
        )
        left = [name for name in names if cursor is None or name >= cursor.topic_name]
        response = admin.ask_any(
            "describeTopics",
            DescribeTopicPartitionsRequest(
                topics=tuple(TopicRequest(name=name) for name in left), response_partition_limit=limit, cursor=start
            ),
            DescribeTopicPartitionsResponse,
        )
        for topic in response.topics:
            name = topic.name or ""
            partitions[name] += topic.partitions
            described[name] = refusal(topic.error_code) or TopicDescription(
                name, topic.topic_id, topic.is_internal, _in_order(partitions[name])
            )
        cursor = response.next_cursor
        if cursor is None:
            return described


def _in_order(partitions: Iterable[DescribeTopicPartitionsResponsePartition]) -> tuple[PartitionDescription, ...]:
    described = (
        PartitionDescription(
            each.partition_index,
            each.leader_id,
            each.leader_epoch,
            each.replica_nodes,
            each.isr_nodes,
            each.offline_replicas,
            each.eligible_leader_replicas,
            each.last_known_elr,
        )
        for each in partitions
    )
    return tuple(sorted(described, key=lambda each: each.partition))
