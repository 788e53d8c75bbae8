"""What a controller is asked, and what it answers. One bad entry in a request never fails its neighbours."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID, BrokerId, LeaderEpoch, ProducerId
from kaspar.config import AlterOperation
from kaspar.metadata.image import BrokerRegistration, Configs, PartitionImage


class ResourceType(IntEnum):
    """The resource codes of the config APIs."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one entry of a request ended."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None

    @classmethod
    def of(cls, refused: Refused) -> "Outcome":
        return cls(refused.code, refused.message)


DONE = Outcome()


@dataclass(frozen=True, slots=True)
class NewTopic:
    """-1 asks for the default. `assignments` are (partition, replicas) pairs, as they were sent: maybe wrong."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    name: str
    outcome: Outcome
    topic_id: uuid.UUID = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Configs = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopics:
    topics: tuple[NewTopic, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class TopicReference:
    """By name or by id."""

    name: str | None = None
    topic_id: uuid.UUID = ZERO_UUID


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    name: str | None
    topic_id: uuid.UUID
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    topics: tuple[TopicReference, ...]


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """`count` is wanted in all. `assignments` are the replicas of the new ones; None leaves them to the controller."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    topics: tuple[MorePartitions, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class NamedOutcome:
    name: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """`type` is an int, because a request may hold any."""

    type: int
    name: str


@dataclass(frozen=True, slots=True)
class ConfigOperation:
    name: str
    operation: int
    value: str | None

    @classmethod
    def set(cls, name: str, value: str | None) -> "ConfigOperation":
        return cls(name, AlterOperation.SET, value)


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """`replace` first drops what was set before, as the older AlterConfigs does."""

    resource: ConfigResource
    operations: tuple[ConfigOperation, ...]
    replace: bool = False


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    changes: tuple[ConfigChange, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ResourceOutcome:
    resource: ConfigResource
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """`upgrade_type` is an int, because a request may hold any."""

    name: str
    level: int
    upgrade_type: int


@dataclass(frozen=True, slots=True)
class UpdateFeatures:
    updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class FeatureOutcome:
    name: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    broker_id: BrokerId


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    first: ProducerId
    count: int


@dataclass(frozen=True, slots=True)
class BrokersSeen:
    """The brokers that are up now."""

    brokers: Mapping[BrokerId, BrokerRegistration]


@dataclass(frozen=True, slots=True)
class LogsRemoved:
    """A broker has removed its logs of these deleted topics."""

    broker_id: BrokerId
    topic_ids: tuple[uuid.UUID, ...]


@dataclass(frozen=True, slots=True)
class AssignDirectories:
    """In which of its log directories a broker has the logs of these partitions: topic id, partition, directory id."""

    broker_id: BrokerId
    directories: tuple[tuple[uuid.UUID, int, uuid.UUID], ...]


@dataclass(frozen=True, slots=True)
class LogsLost:
    """A broker gives up its logs of these partitions (topic id, partition), and will begin them anew, empty."""

    broker_id: BrokerId
    partitions: tuple[tuple[uuid.UUID, int], ...]


@dataclass(frozen=True, slots=True)
class IsrChange:
    """What the leader of a partition asks for, and the state it believes the partition to be in."""

    topic_id: uuid.UUID
    partition: int
    leader_epoch: LeaderEpoch
    partition_epoch: int
    new_isr: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitions:
    broker_id: BrokerId
    broker_epoch: int
    changes: tuple[IsrChange, ...]


@dataclass(frozen=True, slots=True)
class IsrOutcome:
    change: IsrChange
    outcome: Outcome
    partition: PartitionImage | None = None


Event: TypeAlias = (
    CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterConfigs
    | UpdateFeatures
    | AllocateProducerIds
    | BrokersSeen
    | LogsRemoved
    | AssignDirectories
    | LogsLost
    | AlterPartitions
)
