"""Looks up the replicas of topics, and the log directories that contain them."""

from collections.abc import Collection, Mapping

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.cluster import describe_cluster
from kaspar.client.admin.log_dirs import Replica, describe_replica_log_dirs
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription, describe_topics
from kaspar.tools.reassign_partitions.plan import Assignment


def replicas_of_topics(admin: Admin, topics: Collection[str]) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of all partitions. Raises Refused (UNKNOWN_TOPIC_OR_PARTITION) if a topic does not exist."""
    replicas = {}
    for name, topic in describe_topics(admin, topics).items():
        for each in _existing(name, topic).partitions:
            replicas[TopicPartition(name, each.partition)] = each.replicas
    return replicas


def replicas_of_partitions(
    admin: Admin, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of these partitions. Raises Refused if one does not exist."""
    found = replicas_of_topics(admin, {where.topic for where in partitions})
    if missing := sorted(set(partitions) - set(found)):
        names = ", ".join(map(str, missing))
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition: {names}")
    return {where: found[where] for where in partitions}


def log_dirs_of(admin: Admin, assignment: Assignment) -> Mapping[Replica, str]:
    """The directories of the replicas on brokers that are up."""
    brokers = {each.node_id for each in describe_cluster(admin).nodes}
    replicas = [
        Replica(broker_id, where)
        for where, broker_ids in assignment.items()
        for broker_id in broker_ids
        if broker_id in brokers
    ]
    found = describe_replica_log_dirs(admin, replicas)
    return {replica: each.current for replica, each in found.items() if each.current is not None}


def _existing(name: str, topic: TopicDescription | Refused) -> TopicDescription:
    if isinstance(topic, TopicDescription):
        return topic
    if topic.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise Refused(topic.code, f"Topic {name} not found.")
    raise topic
