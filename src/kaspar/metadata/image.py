"""The state of a cluster at one moment, immutable. A change makes a new image that shares what stayed the same.

Topics are changed in batches (`with_topics`), which copies the two indexes once, however many topics changed.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from kaspar.base.ids import ZERO_UUID, BrokerId, LeaderEpoch, TopicPartition

NO_LEADER = BrokerId(-1)
NO_BROKER = BrokerId(-1)
Configs: TypeAlias = Mapping[str, str]
EMPTY_CONFIGS: Configs = MappingProxyType({})
CLUSTER_DEFAULT = ""
"""The name of the broker resource whose settings count for all brokers."""

GROUP_VERSION = "group.version"
METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"


class PartitionImage(NamedTuple):
    """`elr` and `last_known_elr` are the eligible leader replicas of KIP-966; `directories` has the id of the log
    directory of each replica (KIP-858), ZERO_UUID where it is not known, or nothing if none is.
    """

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    elr: tuple[BrokerId, ...] = ()
    last_known_elr: tuple[BrokerId, ...] = ()
    directories: tuple[uuid.UUID, ...] = ()

    def directory_of(self, broker_id: BrokerId) -> uuid.UUID | None:
        """The log directory that has the replica of this broker, as far as it is known."""
        if not self.directories or broker_id not in self.replicas:
            return None
        directory = self.directories[self.replicas.index(broker_id)]
        return directory if directory.int else None

    def with_directory(self, broker_id: BrokerId, directory: uuid.UUID) -> "PartitionImage":
        directories = list(self.directories or (ZERO_UUID,) * len(self.replicas))
        directories[self.replicas.index(broker_id)] = directory
        return self._replace(directories=tuple(directories) if any(each.int for each in directories) else ())


@dataclass(frozen=True, slots=True)
class TopicImage:
    """`partitions[n]` is partition n."""

    name: str
    topic_id: uuid.UUID
    partitions: tuple[PartitionImage, ...]
    configs: Configs = field(default_factory=dict)

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """A topic that is gone for clients, whose logs these brokers have yet to remove."""

    name: str
    topic_id: uuid.UUID
    brokers: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class AdvertisedEndpoint:
    listener: str
    host: str
    port: int
    security_protocol: str


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker that is up. `epoch` is higher each time it comes up; `clean_start`: its logs had been closed well;
    `log_dirs` are the ids of the log directories that it can use.
    """

    broker_id: BrokerId
    epoch: int
    endpoints: tuple[AdvertisedEndpoint, ...]
    rack: str | None = None
    clean_start: bool = False
    log_dirs: tuple[uuid.UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """`broker_epochs` remembers each broker's last known epoch, also while it is down. `broker_configs`
    has the cluster-wide settings under CLUSTER_DEFAULT and each broker's own under its id as text. `features` has the
    finalised level of each feature that is not at 0; `features_epoch` is higher after each change of one."""

    cluster_id: str
    controller_id: BrokerId = NO_BROKER
    controller_epoch: int = 0
    brokers: Mapping[BrokerId, BrokerRegistration] = field(default_factory=dict)
    broker_epochs: Mapping[BrokerId, int] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[uuid.UUID, str] = field(default_factory=dict)
    deleted_topics: Mapping[uuid.UUID, DeletedTopic] = field(default_factory=dict)
    broker_configs: Mapping[str, Configs] = field(default_factory=dict)
    group_configs: Mapping[str, Configs] = field(default_factory=dict)
    client_metrics_configs: Mapping[str, Configs] = field(default_factory=dict)
    next_producer_id: int = 0
    features: Mapping[str, int] = field(default_factory=dict)
    features_epoch: int = 0

    @property
    def group_version(self) -> int:
        """From 1 on there are consumer groups of the new protocol (KIP-848)."""
        return self.features.get(GROUP_VERSION, 0)

    @property
    def transaction_version(self) -> int:
        """From 2 on every transaction ends with an epoch of its own, and produce adds partitions (KIP-890)."""
        return self.features.get(TRANSACTION_VERSION, 0)

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def has_partition(self, topic_partition: TopicPartition) -> bool:
        topic = self.topics.get(topic_partition.topic)
        return topic is not None and 0 <= topic_partition.partition < len(topic.partitions)

    def reachable_leader(self, partition: PartitionImage) -> BrokerId:
        """The partition's leader, if it is up."""
        return partition.leader if partition.leader in self.brokers else NO_LEADER

    def offline_replicas(self, partition: PartitionImage) -> tuple[BrokerId, ...]:
        return tuple(replica for replica in partition.replicas if replica not in self.brokers)

    def broker_config(self, broker_id: int) -> Configs:
        """The dynamic settings of one broker alone."""
        return self.broker_configs.get(str(broker_id), EMPTY_CONFIGS)

    @property
    def cluster_broker_config(self) -> Configs:
        """The dynamic settings of all brokers."""
        return self.broker_configs.get(CLUSTER_DEFAULT, EMPTY_CONFIGS)

    def after(self, known: "ClusterImage") -> tuple["ClusterImage", frozenset[str]]:
        """This image, which was loaded from the store, as the next one of someone who knows an earlier one: with the
        brokers that are known to be up, and with what has not changed left as it is. And which topics changed.
        """
        topics = {
            name: old if (old := known.topics.get(name)) == topic and old is not None else topic
            for name, topic in self.topics.items()
        }
        changed = frozenset(
            name for name in topics.keys() | known.topics.keys() if topics.get(name) is not known.topics.get(name)
        )
        same = self.broker_configs == known.broker_configs
        configs = known.broker_configs if same else self.broker_configs
        return replace(self, brokers=known.brokers, topics=topics, broker_configs=configs), changed

    def with_topics(self, changes: Mapping[str, TopicImage | None]) -> "ClusterImage":
        """Topics made or changed, and with None deleted."""
        topics, names = dict(self.topics), dict(self.topic_names)
        for name, topic in changes.items():
            old = topics.pop(name, None)
            if old is not None and (topic is None or topic.topic_id != old.topic_id):
                del names[old.topic_id]
            if topic is not None:
                topics[name] = topic
                names[topic.topic_id] = name
        return replace(self, topics=topics, topic_names=names)
