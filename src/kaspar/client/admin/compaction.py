"""Compacts topics on request. Only Kaspar's brokers support this."""

from collections import defaultdict
from collections.abc import Mapping

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.session import Admin, kaspar_only
from kaspar.protocol.messages.compact_topics import (
    CompactTopicsPartition,
    CompactTopicsPartitionResult,
    CompactTopicsRequest,
    CompactTopicsResponse,
    CompactTopicsTopic,
)

NEW_TARGET = -1
"""Instead of a target: start, and compact as far as the log can be compacted now."""


def compact_partitions(admin: Admin, topic: str, targets: Mapping[int, int]) -> dict[int, CompactTopicsPartitionResult]:
    """Start to compact partitions, or get the progress towards targets that an earlier call returned. Raises Refused,
    UnsupportedByPeer and OSError."""
    by_leader: dict[int, list[CompactTopicsPartition]] = defaultdict(list)
    for number, target in targets.items():
        leader = admin.client.leader_of(TopicPartition(topic, number))
        by_leader[leader].append(CompactTopicsPartition(partition_index=number, target_offset=target))
    results: dict[int, CompactTopicsPartitionResult] = {}
    for leader, partitions in by_leader.items():
        request = CompactTopicsRequest(topics=(CompactTopicsTopic(name=topic, partitions=tuple(partitions)),))
        with kaspar_only(leader):
            response = admin.client.request_broker(leader, request, CompactTopicsResponse, version=0)
        results.update((each.partition_index, each) for found in response.topics for each in found.partitions)
    return results
