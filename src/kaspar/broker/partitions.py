"""The partitions on this broker, found by topic name or by topic id.

Kept in step with the cluster's image (broker/hosting.py).
"""

import uuid
from collections.abc import Iterator

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.broker.metrics import TopicMetrics
from kaspar.metadata import ClusterImage
from kaspar.metadata.topic_names import is_internal
from kaspar.protocol.produce_template import ProduceResponseTemplate
from kaspar.protocol.shapes import LeaderIdAndEpoch
from kaspar.replication.partition import Partition


class HostedTopic:
    """One topic's partitions on this broker."""

    __slots__ = (
        "is_internal",
        "lost",
        "metrics",
        "name",
        "offline",
        "partitions",
        "produce_templates",
        "topic_id",
        "unseen",
    )

    def __init__(self, name: str, topic_id: uuid.UUID, metrics: TopicMetrics) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal(name)
        self.metrics = metrics
        self.produce_templates: dict[int, ProduceResponseTemplate] = {}
        """By version of Produce."""
        self.partitions: dict[int, Partition] = {}
        self.offline: set[int] = set()
        """Partitions without a log: there is no space for one, or they are unseen or lost."""
        self.unseen: set[int] = set()
        """Partitions whose log may be in a directory that was offline when the broker started. None is created."""
        self.lost: set[int] = set()
        """Partitions whose log has disappeared. They get a new log when the old one is given up."""


def partition_of(hosted: HostedTopic | None, topic: str | uuid.UUID, index: int) -> Partition:
    """The partition that a request names."""
    partition = hosted.partitions.get(index) if hosted is not None else None
    if partition is None:
        raise unknown_partition(hosted, topic, index)
    return partition


def unknown_partition(hosted: HostedTopic | None, topic: str | uuid.UUID, index: int) -> Refused:
    """The error for a partition that is not here, with Kafka's code."""
    if hosted is not None and index in hosted.offline:
        return Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {hosted.name}-{index} is not available")
    if hosted is None and not isinstance(topic, str):
        return Refused(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {topic} here")
    return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of {topic} here")


def current_leader(image: ClusterImage, topic: str | uuid.UUID, index: int) -> LeaderIdAndEpoch:
    """The leader to return to a client that asked the wrong broker; -1 and -1 if there is no such partition."""
    found = image.topics.get(topic) if isinstance(topic, str) else image.topic_by_id(topic)
    if found is None or not 0 <= index < len(found.partitions):
        return LeaderIdAndEpoch()
    partition = found.partitions[index]
    return LeaderIdAndEpoch(partition.leader, partition.leader_epoch)


class Partitions:
    def __init__(self) -> None:
        self.by_name: dict[str, HostedTopic] = {}
        self.by_id: dict[uuid.UUID, HostedTopic] = {}

    def add_topic(self, name: str, topic_id: uuid.UUID, metrics: TopicMetrics) -> HostedTopic:
        topic = self.by_name[name] = self.by_id[topic_id] = HostedTopic(name, topic_id, metrics)
        return topic

    def remove_topic(self, name: str) -> HostedTopic | None:
        topic = self.by_name.pop(name, None)
        if topic is not None:
            del self.by_id[topic.topic_id]
        return topic

    def find(self, topic: str | uuid.UUID) -> HostedTopic | None:
        return self.by_name.get(topic) if isinstance(topic, str) else self.by_id.get(topic)

    def get(self, topic_partition: TopicPartition) -> Partition | None:
        topic = self.by_name.get(topic_partition.topic)
        return None if topic is None else topic.partitions.get(topic_partition.partition)

    def lead(self, topic: str, index: int) -> Partition:
        """The partition, if it is here and this broker leads it. Raises Refused otherwise."""
        partition = partition_of(self.by_name.get(topic), topic, index)
        if partition.offline:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {topic}-{index} is offline")
        partition.state.check_leader()
        return partition

    def __iter__(self) -> Iterator[Partition]:
        for topic in self.by_name.values():
            yield from topic.partitions.values()

    def __len__(self) -> int:
        return sum(len(topic.partitions) for topic in self.by_name.values())
