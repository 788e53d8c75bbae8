"""Reads a snapshot of the cluster, with two requests whatever its size."""

from collections import Counter
from collections.abc import Iterable

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.cluster import ClusterDescription, describe_with_fenced
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription, describe_topics_by_metadata
from kaspar.monitor.views import BrokerSnapshot, ClusterSnapshot


def read_cluster(admin: Admin, now_ms: int) -> tuple[ClusterSnapshot, tuple[TopicPartition, ...]]:
    """The snapshot, and all partitions that have a leader. Raises Refused and OSError."""
    described = describe_with_fenced(admin)
    topics = [each for each in describe_topics_by_metadata(admin).values() if not isinstance(each, Refused)]
    return snapshot(described, topics, now_ms), tuple(
        TopicPartition(topic.name, partition.partition)
        for topic in topics
        for partition in topic.partitions
        if partition.leader >= 0
    )


def snapshot(cluster: ClusterDescription, topics: Iterable[TopicDescription], now_ms: int) -> ClusterSnapshot:
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    in_sync: Counter[int] = Counter()
    under_replicated: list[TopicPartition] = []
    offline: list[TopicPartition] = []
    topic_count = partition_count = 0
    for topic in topics:
        topic_count += 1
        partition_count += len(topic.partitions)
        for each in topic.partitions:
            leaders[each.leader] += 1
            replicas.update(each.replicas)
            in_sync.update(each.isr)
            where = TopicPartition(topic.name, each.partition)
            if each.leader < 0:
                offline.append(where)
            elif len(each.isr) < len(each.replicas):
                under_replicated.append(where)
    controller = None if cluster.controller_id < 0 else cluster.controller_id
    return ClusterSnapshot(
        now_ms,
        cluster.cluster_id,
        controller,
        tuple(
            BrokerSnapshot(
                node.node_id,
                node.host,
                node.port,
                node.rack,
                leaders[node.node_id],
                replicas[node.node_id],
                in_sync[node.node_id],
                node.node_id == controller,
            )
            for node in cluster.nodes
            if not node.is_fenced
        ),
        tuple(node.node_id for node in cluster.nodes if node.is_fenced),
        topic_count,
        partition_count,
        tuple(under_replicated),
        tuple(offline),
    )
