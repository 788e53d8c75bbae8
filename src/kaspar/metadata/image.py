"""The state of a cluster at one moment, immutable. A change creates a new image that shares the unchanged parts.

Topics are changed in batches (`with_topics`), so that the two indexes are copied once, however many topics changed.

The image says explicitly when a broker has to remove a log; absence from the image is never a reason:
- If the topic's id is among `deleted_topics`, the broker removes the log and reports it (`LogsRemoved`).
- If the topic exists under the same id and has the partition, and the broker is not among its `replicas`, the replica
  was reassigned, and the broker removes the log (`has_left`). A broker leaves the replicas only when every remaining
  replica is in sync, or when it was only being added, so no committed record is lost with its log.
- Otherwise the log stays.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from kaspar.acls.acl import Acl
from kaspar.base.ids import ZERO_UUID, BrokerId, LeaderEpoch, TopicPartition
from kaspar.quotas.entities import QuotasByEntity
from kaspar.security.delegation_tokens import DelegationToken
from kaspar.security.scram import ScramCredential

NO_LEADER = BrokerId(-1)
NO_BROKER = BrokerId(-1)
Configs: TypeAlias = Mapping[str, str]
EMPTY_CONFIGS: Configs = MappingProxyType({})
CLUSTER_DEFAULT = ""
"""The name of the broker resource whose settings apply to all brokers."""

ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"
METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"


class PartitionImage(NamedTuple):
    """`elr` are the eligible leader replicas of KIP-966: they are out of sync but have every committed record, because
    none was committed since they left the in-sync replicas. `last_known_elr` has the last leader while there is none.
    `directories` has the id of the log directory of each replica (KIP-858), ZERO_UUID where it is unknown; it is empty
    if none is known.

    During a reassignment (KIP-455) `replicas` are the target replicas followed by `removing_replicas`, and
    `adding_replicas` are the target replicas that the partition did not have before.
    """

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    elr: tuple[BrokerId, ...] = ()
    last_known_elr: tuple[BrokerId, ...] = ()
    directories: tuple[uuid.UUID, ...] = ()
    adding_replicas: tuple[BrokerId, ...] = ()
    removing_replicas: tuple[BrokerId, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def target_replicas(self) -> tuple[BrokerId, ...]:
        """The replicas after the reassignment in progress, if any."""
        if not self.removing_replicas:
            return self.replicas
        return tuple(replica for replica in self.replicas if replica not in self.removing_replicas)

    def directory_of(self, broker_id: BrokerId) -> uuid.UUID | None:
        """The log directory of this broker's replica. None if it is unknown."""
        if not self.directories or broker_id not in self.replicas:
            return None
        directory = self.directories[self.replicas.index(broker_id)]
        return directory if directory.int else None

    def with_directory(self, broker_id: BrokerId, directory: uuid.UUID) -> "PartitionImage":
        directories = list(self.directories or (ZERO_UUID,) * len(self.replicas))
        directories[self.replicas.index(broker_id)] = directory
        return self._replace(directories=tuple(directories) if any(each.int for each in directories) else ())

    def with_replicas(self, replicas: tuple[BrokerId, ...]) -> "PartitionImage":
        """A copy with other replicas. Those that stay keep their log directories."""
        directories = [self.directory_of(replica) or ZERO_UUID for replica in replicas]
        known = tuple(directories) if any(each.int for each in directories) else ()
        return self._replace(replicas=replicas, directories=known)


@dataclass(frozen=True, slots=True)
class TopicImage:
    """`partitions[n]` is partition n. `former_brokers` had replicas that were reassigned. If such a broker has been
    down since, it may still have a log, and has to remove it when the topic is deleted.
    """

    name: str
    topic_id: uuid.UUID
    partitions: tuple[PartitionImage, ...]
    configs: Configs = field(default_factory=dict)
    former_brokers: tuple[BrokerId, ...] = ()

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].target_replicas)

    @property
    def brokers(self) -> tuple[BrokerId, ...]:
        """Every broker that may have a log of this topic."""
        replicas = {replica for partition in self.partitions for replica in partition.replicas}
        return tuple(sorted(replicas.union(self.former_brokers)))


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """A topic that no longer exists for clients, with the brokers that still have to remove its logs."""

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
    """A broker that is up. `epoch` increases with each start. `clean_start`: its logs had been closed cleanly.
    `log_dirs` are the ids of the log directories that it can use. `incarnation` is part of the name of its node, and
    `last_crash` is the incarnation of its last start that was not clean.
    """

    broker_id: BrokerId
    epoch: int
    endpoints: tuple[AdvertisedEndpoint, ...]
    rack: str | None = None
    clean_start: bool = False
    log_dirs: tuple[uuid.UUID, ...] = ()
    incarnation: int = 0
    last_crash: int = 0


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """`brokers` are up. Those in `shutting_down` are about to stop: they get no new leaderships, and leave the in-sync
    replicas where others remain. Neither field is stored. `broker_epochs` and `broker_incarnations` have each broker's
    last known epoch and incarnation, also while it is down: these are the brokers that Kafka calls registered.
    `broker_configs` has the cluster-wide settings under CLUSTER_DEFAULT and each broker's own under its id as text.
    `features` has the finalised level of each feature that is not at 0; `features_epoch` increases with each change of
    a level. `acls` has each ACL under its id; an existing ACL never changes. `scram_credentials` are by user and
    mechanism, `delegation_tokens` by id; `client_quotas` has only entities with quotas.
    """

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
    shutting_down: frozenset[BrokerId] = frozenset()
    broker_incarnations: Mapping[BrokerId, int] = field(default_factory=dict)
    acls: Mapping[str, Acl] = field(default_factory=dict)
    scram_credentials: Mapping[str, Mapping[str, ScramCredential]] = field(default_factory=dict)
    delegation_tokens: Mapping[str, DelegationToken] = field(default_factory=dict)
    client_quotas: QuotasByEntity = field(default_factory=dict)

    @property
    def has_elr(self) -> bool:
        """Whether eligible leader replicas are tracked (KIP-966)."""
        return self.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    @property
    def group_version(self) -> int:
        """The level of group.version. From 1 on consumer groups may use the new protocol (KIP-848)."""
        return self.features.get(GROUP_VERSION, 0)

    @property
    def transaction_version(self) -> int:
        """The level of transaction.version. From 2 on every transaction has its own producer epoch, and produce
        requests add partitions to it (KIP-890).
        """
        return self.features.get(TRANSACTION_VERSION, 0)

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def has_left(self, broker_id: BrokerId, topic_id: uuid.UUID, index: int) -> bool:
        """Whether the broker is no longer a replica of this partition, and has to remove its log. False for topics and
        partitions that the image does not have.
        """
        topic = self.topic_by_id(topic_id)
        if topic is None or not 0 <= index < len(topic.partitions):
            return False
        return broker_id not in topic.partitions[index].replicas

    def is_registered(self, broker_id: BrokerId) -> bool:
        """Whether the broker is known, up or not."""
        return broker_id in self.broker_epochs or broker_id in self.brokers

    def is_active(self, broker_id: BrokerId) -> bool:
        """Whether the broker is up, and is not shutting down."""
        return broker_id in self.brokers and broker_id not in self.shutting_down

    def has_partition(self, topic_partition: TopicPartition) -> bool:
        topic = self.topics.get(topic_partition.topic)
        return topic is not None and 0 <= topic_partition.partition < len(topic.partitions)

    def reachable_leader(self, partition: PartitionImage) -> BrokerId:
        """The partition's leader, if it is up."""
        return partition.leader if partition.leader in self.brokers else NO_LEADER

    def offline_replicas(self, partition: PartitionImage) -> tuple[BrokerId, ...]:
        return tuple(replica for replica in partition.replicas if replica not in self.brokers)

    def broker_config(self, broker_id: int) -> Configs:
        """The dynamic settings of one broker, without the cluster-wide ones."""
        return self.broker_configs.get(str(broker_id), EMPTY_CONFIGS)

    @property
    def cluster_broker_config(self) -> Configs:
        """The cluster-wide dynamic settings, which apply to all brokers."""
        return self.broker_configs.get(CLUSTER_DEFAULT, EMPTY_CONFIGS)

    def endpoints_for(self, listener: str) -> Iterator[tuple[BrokerRegistration, AdvertisedEndpoint]]:
        """The brokers that have this listener, with their endpoints for it."""
        for registration in self.brokers.values():
            for endpoint in registration.endpoints:
                if endpoint.listener == listener:
                    yield registration, endpoint

    def current_leader(self, topic: str | uuid.UUID, index: int) -> tuple[int, int]:
        """Leader and leader epoch of a partition; -1 for both if there is no such partition."""
        found = self.topics.get(topic) if isinstance(topic, str) else self.topic_by_id(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return -1, -1
        partition = found.partitions[index]
        return partition.leader, partition.leader_epoch

    def after(self, known: "ClusterImage") -> tuple["ClusterImage", frozenset[str], tuple[DeletedTopic, ...]]:
        """This image as the successor of an earlier one that it was not derived from. Returns it with the objects of
        the earlier image for topics and mappings that have not changed, the names of the topics that differ, and the
        newly deleted topics.
        """
        topics = {
            name: old if (old := known.topics.get(name)) == topic and old is not None else topic
            for name, topic in self.topics.items()
        }
        changed = frozenset(
            name for name in topics.keys() | known.topics.keys() if topics.get(name) is not known.topics.get(name)
        )
        deleted = tuple(
            topic for topic_id, topic in self.deleted_topics.items() if topic_id not in known.deleted_topics
        )
        same = {
            name: getattr(known, name)
            for name in ("broker_configs", "acls", "client_quotas")
            if getattr(self, name) == getattr(known, name)
        }
        return replace(self, topics=topics, **same), changed, deleted

    def with_topics(self, changes: Mapping[str, TopicImage | None]) -> "ClusterImage":
        """A copy with these topics created or changed, and those that are None removed."""
        topics, names = dict(self.topics), dict(self.topic_names)
        for name, topic in changes.items():
            old = topics.pop(name, None)
            if old is not None and (topic is None or topic.topic_id != old.topic_id):
                del names[old.topic_id]
            if topic is not None:
                topics[name] = topic
                names[topic.topic_id] = name
        return replace(self, topics=topics, topic_names=names)
