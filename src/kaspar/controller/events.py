"""The events that a controller decides about, and its replies. One bad entry in a request never fails the others.

Events and replies are plain frozen data that msgspec can encode: a broker that does not run the controller sends them.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Generic, TypeAlias, TypeVar, get_args

from kaspar.acls.acl import Acl, AclFilter
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID, BrokerId, LeaderEpoch, ProducerId, TopicPartition
from kaspar.config import AlterOperation
from kaspar.metadata.image import BrokerRegistration, Configs, PartitionImage
from kaspar.security.delegation_tokens import DelegationToken

R = TypeVar("R")


class ControllerEvent(Generic[R]):
    """An event whose reply is an R."""

    __slots__ = ()


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
DUPLICATE_NAME = Outcome(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
UNKNOWN_NAME = Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
UNKNOWN_ID = Outcome(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


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
class CreateTopics(ControllerEvent[tuple[CreatedTopic, ...]]):
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
class DeleteTopics(ControllerEvent[tuple[TopicDeletion, ...]]):
    topics: tuple[TopicReference, ...]


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """`count` is wanted in all. `assignments` are the replicas of the new ones; None leaves them to the controller."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class NamedOutcome:
    name: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class CreatePartitions(ControllerEvent[tuple[NamedOutcome, ...]]):
    topics: tuple[MorePartitions, ...]
    validate_only: bool = False


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
class ResourceOutcome:
    resource: ConfigResource
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class AlterConfigs(ControllerEvent[tuple[ResourceOutcome, ...]]):
    """`received_by` is the broker that the request was sent to: as in Kafka, it takes settings of no other broker. None
    stands for the controller's own.
    """

    changes: tuple[ConfigChange, ...]
    validate_only: bool = False
    received_by: BrokerId | None = None


@dataclass(frozen=True, slots=True)
class QuotaAlteration:
    """`entity` has the parts of the entity as they were sent, maybe wrong: type and name, None for the default.
    `operations` set a quota to a value, or remove it with None.
    """

    entity: tuple[tuple[str, str | None], ...]
    operations: tuple[tuple[str, float | None], ...]


@dataclass(frozen=True, slots=True)
class QuotaOutcome:
    entity: tuple[tuple[str, str | None], ...]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class AlterClientQuotas(ControllerEvent[tuple[QuotaOutcome, ...]]):
    """The reply has one outcome for each entity, however often it was named."""

    alterations: tuple[QuotaAlteration, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """`upgrade_type` is an int, because a request may hold any."""

    name: str
    level: int
    upgrade_type: int


@dataclass(frozen=True, slots=True)
class FeatureOutcome:
    name: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class UpdateFeatures(ControllerEvent[tuple[FeatureOutcome, ...]]):
    updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """`mechanism` is the code of the request, which may be any."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AlterScramCredentials(ControllerEvent[tuple[NamedOutcome, ...]]):
    deletions: tuple[ScramDeletion, ...]
    upsertions: tuple[ScramUpsertion, ...]


@dataclass(frozen=True, slots=True)
class PutDelegationToken(ControllerEvent[None]):
    """Store a new token, or one whose expiry has changed. A broker has checked who asks for it."""

    token: DelegationToken
    now_ms: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class RemoveDelegationToken(ControllerEvent[None]):
    token_id: str


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    first: ProducerId
    count: int


@dataclass(frozen=True, slots=True)
class AllocateProducerIds(ControllerEvent[ProducerIdBlock]):
    broker_id: BrokerId


@dataclass(frozen=True, slots=True)
class BrokersSeen(ControllerEvent[None]):
    """The brokers that are up now."""

    brokers: Mapping[BrokerId, BrokerRegistration]


@dataclass(frozen=True, slots=True)
class FenceBrokers(ControllerEvent[None]):
    """These brokers (id, epoch) are dead, though their sessions with the store may not have ended yet. One that has
    registered again since has another epoch, and is left alone.
    """

    brokers: tuple[tuple[BrokerId, int], ...]


@dataclass(frozen=True, slots=True)
class ControlledShutdown(ControllerEvent[tuple[TopicPartition, ...]]):
    """A broker is about to stop. The reply has the partitions that it still leads, because no other replica is in sync;
    asked again later, it may have fewer.
    """

    broker_id: BrokerId
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class UnregisterBroker(ControllerEvent[None]):
    """A broker that is down does not come back, and is to be forgotten."""

    broker_id: BrokerId


class ElectionType(IntEnum):
    """The codes of the ElectLeaders API."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    topic: str
    partition: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class ElectLeaders(ControllerEvent[tuple[PartitionOutcome, ...]]):
    """`partitions` None stands for all; then the reply leaves out those that need no election. `election_type` is an
    int, because a request may hold any.
    """

    election_type: int
    partitions: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class RebalanceLeaders(ControllerEvent[bool]):
    """Leadership goes back to the preferred replicas, for a limited number of partitions. The reply says whether there
    may be more.
    """


@dataclass(frozen=True, slots=True)
class Reassignment:
    """`replicas` are wanted, as they were sent: maybe wrong. None cancels the reassignment that is under way."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class AlterReassignments(ControllerEvent[tuple[PartitionOutcome, ...]]):
    reassignments: tuple[Reassignment, ...]
    allow_replication_factor_change: bool = True


@dataclass(frozen=True, slots=True)
class LogsRemoved(ControllerEvent[None]):
    """A broker has removed its logs of these deleted topics."""

    broker_id: BrokerId
    topic_ids: tuple[uuid.UUID, ...]


@dataclass(frozen=True, slots=True)
class AssignDirectories(ControllerEvent[None]):
    """In which of its log directories a broker has the logs of these partitions: topic id, partition, directory id."""

    broker_id: BrokerId
    directories: tuple[tuple[uuid.UUID, int, uuid.UUID], ...]


@dataclass(frozen=True, slots=True)
class DirectoriesFailed(ControllerEvent[None]):
    """A broker cannot use these of its log directories any more (KIP-858)."""

    broker_id: BrokerId
    broker_epoch: int
    directories: tuple[uuid.UUID, ...]


@dataclass(frozen=True, slots=True)
class LogsLost(ControllerEvent[tuple[tuple[uuid.UUID, int], ...]]):
    """A broker wants to give up its logs of these partitions (topic id, partition), and will recreate them empty. The
    reply has those that it may.
    """

    broker_id: BrokerId
    partitions: tuple[tuple[uuid.UUID, int], ...]


@dataclass(frozen=True, slots=True)
class IsrChange:
    """What the leader of a partition asks for, and the state it believes the partition to be in. `new_isr_epochs` has
    the broker epoch of each member of `new_isr` as the leader knows it, -1 where it does not (KIP-903); nothing stands
    for -1 everywhere.
    """

    topic_id: uuid.UUID
    partition: int
    leader_epoch: LeaderEpoch
    partition_epoch: int
    new_isr: tuple[BrokerId, ...]
    new_isr_epochs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class IsrOutcome:
    """`partition` is its new state. It is also there with NEW_LEADER_ELECTED: the change was carried out, completed a
    reassignment, and moved leadership away from the leader that asked for it.
    """

    change: IsrChange
    outcome: Outcome
    partition: PartitionImage | None = None


@dataclass(frozen=True, slots=True)
class AlterPartitions(ControllerEvent[tuple[IsrOutcome, ...]]):
    broker_id: BrokerId
    broker_epoch: int
    changes: tuple[IsrChange, ...]


@dataclass(frozen=True, slots=True)
class CreateAcls(ControllerEvent[tuple[Outcome, ...]]):
    """The reply has an outcome for each. One that is there already is a success."""

    acls: tuple[Acl, ...]


@dataclass(frozen=True, slots=True)
class DeletedAcls:
    """The ACLs that one filter selected."""

    acls: tuple[Acl, ...]
    outcome: Outcome = DONE


@dataclass(frozen=True, slots=True)
class DeleteAcls(ControllerEvent[tuple[DeletedAcls, ...]]):
    filters: tuple[AclFilter, ...]


Event: TypeAlias = (
    CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterConfigs
    | AlterClientQuotas
    | UpdateFeatures
    | AlterScramCredentials
    | PutDelegationToken
    | RemoveDelegationToken
    | AllocateProducerIds
    | BrokersSeen
    | FenceBrokers
    | ControlledShutdown
    | UnregisterBroker
    | ElectLeaders
    | RebalanceLeaders
    | AlterReassignments
    | LogsRemoved
    | AssignDirectories
    | DirectoriesFailed
    | LogsLost
    | AlterPartitions
    | CreateAcls
    | DeleteAcls
)


def reply_type(event: type[ControllerEvent[R]]) -> Any:
    """The R of an event's class, by which its reply is decoded."""
    (base,) = event.__dict__["__orig_bases__"]
    return get_args(base)[0]
