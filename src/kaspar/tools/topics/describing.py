"""kafka-topics --describe: selects topics and partitions, and formats them."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID, TopicPartition, uuid_to_text
from kaspar.client.admin.cluster import describe_cluster
from kaspar.client.admin.configs import ConfigResource, ConfigSource, ResourceType, describe_configs
from kaspar.client.admin.reassignments import Reassignment, list_reassignments
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.admin.topics import (
    PARTITIONS_PER_RESPONSE,
    PartitionDescription,
    TopicDescription,
    describe_topic_ids,
    describe_topics,
    list_topic_ids,
)
from kaspar.client.core import UnsupportedByPeer
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.topics.selection import expected_topics
from kaspar.tools.topics.values import number, topic_id


@dataclass(frozen=True, slots=True)
class Described:
    """A topic with everything that its description needs."""

    topic: TopicDescription
    changed_configs: Mapping[str, str]
    min_insync_replicas: int
    reassignments: Mapping[int, Reassignment]
    """Reassignments in progress, by partition."""

    def replication_factor(self, partition: PartitionDescription) -> int:
        """The replication factor; during a reassignment, the previous one. A reassignment may end between the two
        requests: if none of its brokers is among the replicas, it has ended."""
        reassignment = self.reassignments.get(partition.partition)
        if reassignment is None or not {*partition.replicas} & {
            *reassignment.adding_replicas,
            *reassignment.removing_replicas,
        }:
            return len(partition.replicas)
        return len(reassignment.replicas) - len(reassignment.adding_replicas)


def describe(admin: Admin, options: argparse.Namespace) -> None:
    described = _collect(admin, _topics(admin, options))
    live = {each.node_id for each in describe_cluster(admin).nodes}
    for each in described:
        for line in lines(each, options, live):
            print(line)


def _topics(admin: Admin, options: argparse.Namespace) -> list[TopicDescription]:
    found: list[TopicDescription | Refused] = []
    wanted = topic_id(options.topic_id) if options.topic_id is not None else ZERO_UUID
    if wanted == ZERO_UUID:
        limit = number(options.partition_size_limit_per_response, "partition-size-limit-per-response")
        partitions_per_response = PARTITIONS_PER_RESPONSE if limit is None else limit
        names = expected_topics(admin, options)
        found += describe_topics(admin, names, partitions_per_response=partitions_per_response).values()
    elif wanted in list_topic_ids(admin, include_internal=not options.exclude_internal):
        found += describe_topic_ids(admin, [wanted]).values()
    elif not options.if_exists:
        raise CommandFailed(f"TopicId '{uuid_to_text(wanted)}' does not exist as expected")
    return [accepted(each) for each in found]


def _collect(admin: Admin, topics: list[TopicDescription]) -> list[Described]:
    configs = describe_configs(admin, [ConfigResource(ResourceType.TOPIC, topic.name) for topic in topics])
    reassignments = _reassignments(admin, topics)
    described = []
    for topic in topics:
        found = accepted(configs[ConfigResource(ResourceType.TOPIC, topic.name)])
        described.append(
            Described(
                topic,
                {
                    name: each.value or ""
                    for name, each in found.items()
                    if each.source is not ConfigSource.DEFAULT_CONFIG
                },
                int(found["min.insync.replicas"].value or 1),
                {where.partition: each for where, each in reassignments.items() if where.topic == topic.name},
            )
        )
    return described


def _reassignments(admin: Admin, topics: list[TopicDescription]) -> Mapping[TopicPartition, Reassignment]:
    """The reassignments in progress. Empty if the user may not see them, or if brokers do not support the request
    (before Kafka 2.4).
    """
    partitions = [TopicPartition(topic.name, each.partition) for topic in topics for each in topic.partitions]
    try:
        return list_reassignments(admin, partitions)
    except UnsupportedByPeer:
        return {}
    except Refused as refused:
        if refused.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return {}


def lines(described: Described, options: argparse.Namespace, live: set[int]) -> list[str]:
    """The lines for a topic: the topic and all its partitions, or the partitions that pass one of the filters."""
    topic = described.topic
    filters = (
        options.under_replicated_partitions,
        options.unavailable_partitions,
        options.under_min_isr_partitions,
        options.at_min_isr_partitions,
    )
    if any(filters):
        return [
            _partition_line(described, each) for each in topic.partitions if _passes(described, each, options, live)
        ]
    if options.topics_with_overrides:
        return [_topic_line(described)] if described.changed_configs else []
    return [_topic_line(described), *(_partition_line(described, each) for each in topic.partitions)]


def _passes(described: Described, partition: PartitionDescription, options: argparse.Namespace, live: set[int]) -> bool:
    in_sync, has_leader = len(partition.isr), partition.leader >= 0
    return (
        (options.under_replicated_partitions and in_sync < described.replication_factor(partition))
        or (options.unavailable_partitions and partition.leader not in live)
        or (options.under_min_isr_partitions and (not has_leader or in_sync < described.min_insync_replicas))
        or (options.at_min_isr_partitions and in_sync == described.min_insync_replicas)
    )


def _topic_line(described: Described) -> str:
    topic = described.topic
    fields = [f"Topic: {topic.name}"]
    if topic.topic_id != ZERO_UUID:
        fields.append(f"TopicId: {uuid_to_text(topic.topic_id)}")
    fields += [
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {described.replication_factor(topic.partitions[0])}",
        "Configs: " + ",".join(f"{name}={value}" for name, value in described.changed_configs.items()),
    ]
    return "\t".join(fields)


def _partition_line(described: Described, partition: PartitionDescription) -> str:
    fields = [
        f"\tTopic: {described.topic.name}",
        f"Partition: {partition.partition}",
        f"Leader: {partition.leader if partition.leader >= 0 else 'none'}",
        f"Replicas: {_ids(partition.replicas)}",
        f"Isr: {_ids(partition.isr)}",
    ]
    if (reassignment := described.reassignments.get(partition.partition)) is not None:
        fields += [
            f"Adding Replicas: {_ids(reassignment.adding_replicas)}",
            f"Removing Replicas: {_ids(reassignment.removing_replicas)}",
        ]
    fields += [f"Elr: {_ids(partition.elr)}", f"LastKnownElr: {_ids(partition.last_known_elr)}"]
    return "\t".join(fields)


def _ids(ids: tuple[int, ...] | None) -> str:
    return "N/A" if ids is None else ",".join(map(str, ids))
