"""The events that a controller decides about, and its replies. One bad entry in a request never fails the others.

Events and replies are plain frozen data that msgspec can encode: a broker that does not run the controller sends them.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Generic, TypeAlias, TypeVar, get_args

import msgspec

from kaspar.acls.acl import Acl, AclFilter
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID, BrokerId, LeaderEpoch, ProducerId, TopicPartition
from kaspar.config import AlterOperation
from kaspar.metadata.image import BrokerRegistration, Configs, PartitionImage
from kaspar.security.delegation_tokens import DelegationToken

R = TypeVar("R")


class ControllerEvent(msgspec.Struct, Generic[R], frozen=True):
    """An event whose reply is an R."""


class ResourceType(IntEnum):
    """The resource codes of the config APIs."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Outcome(msgspec.Struct, frozen=True):
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


class NewTopic(msgspec.Struct, frozen=True):
    """-1 asks for the default. `assignments` are (partition, replicas) pairs, as they were sent: maybe wrong."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


class CreatedTopic(msgspec.Struct, frozen=True):
    name: str
    outcome: Outcome
    topic_id: uuid.UUID = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Configs = msgspec.field(default_factory=dict)


class CreateTopics(ControllerEvent[tuple[CreatedTopic, ...]], frozen=True):
    topics: tuple[NewTopic, ...]
    validate_only: bool = False


class TopicReference(msgspec.Struct, frozen=True):
    """By name or by id."""

    name: str | None = None
    topic_id: uuid.UUID = ZERO_UUID


class TopicDeletion(msgspec.Struct, frozen=True):
    name: str | None
    topic_id: uuid.UUID
    outcome: Outcome


class DeleteTopics(ControllerEvent[tuple[TopicDeletion, ...]], frozen=True):
    topics: tuple[TopicReference, ...]


class MorePartitions(msgspec.Struct, frozen=True):
    """`count` is wanted in all. `assignments` are the replicas of the new ones; None leaves them to the controller."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


class NamedOutcome(msgspec.Struct, frozen=True):
    name: str
    outcome: Outcome


class CreatePartitions(ControllerEvent[tuple[NamedOutcome, ...]], frozen=True):
    topics: tuple[MorePartitions, ...]
    validate_only: bool = False


class ConfigResource(msgspec.Struct, frozen=True):
    """`type` is an int, because a request may hold any."""

    type: int
    name: str


class ConfigOperation(msgspec.Struct, frozen=True):
    name: str
    operation: int
    value: str | None

    @classmethod
    def set(cls, name: str, value: str | None) -> "ConfigOperation":
        return cls(name, AlterOperation.SET, value)


class ConfigChange(msgspec.Struct, frozen=True):
    """`replace` first drops what was set before, as the older AlterConfigs does."""

    resource: ConfigResource
    operations: tuple[ConfigOperation, ...]
    replace: bool = False


class ResourceOutcome(msgspec.Struct, frozen=True):
    resource: ConfigResource
    outcome: Outcome


class AlterConfigs(ControllerEvent[tuple[ResourceOutcome, ...]], frozen=True):
    """`received_by` is the broker that the request was sent to: as in Kafka, it takes settings of no other broker. None
    stands for the controller's own.
    """

    changes: tuple[ConfigChange, ...]
    validate_only: bool = False
    received_by: BrokerId | None = None


class QuotaAlteration(msgspec.Struct, frozen=True):
    """`entity` has the parts of the entity as they were sent, maybe wrong: type and name, None for the default.
    `operations` set a quota to a value, or remove it with None.
    """

    entity: tuple[tuple[str, str | None], ...]
    operations: tuple[tuple[str, float | None], ...]


class QuotaOutcome(msgspec.Struct, frozen=True):
    entity: tuple[tuple[str, str | None], ...]
    outcome: Outcome


class AlterClientQuotas(ControllerEvent[tuple[QuotaOutcome, ...]], frozen=True):
    """The reply has one outcome for each entity, however often it was named."""

    alterations: tuple[QuotaAlteration, ...]
    validate_only: bool = False


class FeatureUpdate(msgspec.Struct, frozen=True):
    """`upgrade_type` is an int, because a request may hold any."""

    name: str
    level: int
    upgrade_type: int


class FeatureOutcome(msgspec.Struct, frozen=True):
    name: str
    outcome: Outcome


class UpdateFeatures(ControllerEvent[tuple[FeatureOutcome, ...]], frozen=True):
    updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False


class ScramDeletion(msgspec.Struct, frozen=True):
    """`mechanism` is the code of the request, which may be any."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)  # a Struct would show its secrets
class ScramUpsertion:
    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


class AlterScramCredentials(ControllerEvent[tuple[NamedOutcome, ...]], frozen=True):
    deletions: tuple[ScramDeletion, ...]
    upsertions: tuple[ScramUpsertion, ...]


class PutDelegationToken(ControllerEvent[None], frozen=True):
    """Store a new token, or one whose expiry has changed. A broker has checked who asks for it."""

    token: DelegationToken
    now_ms: int
    is_new: bool


class RemoveDelegationToken(ControllerEvent[None], frozen=True):
    token_id: str


class ProducerIdBlock(msgspec.Struct, frozen=True):
    first: ProducerId
    count: int


class AllocateProducerIds(ControllerEvent[ProducerIdBlock], frozen=True):
    broker_id: BrokerId


class BrokersSeen(ControllerEvent[None], frozen=True):
    """The brokers that are up now."""

    brokers: Mapping[BrokerId, BrokerRegistration]


class FenceBrokers(ControllerEvent[None], frozen=True):
    """These brokers (id, epoch) are dead, though their sessions with the store may not have ended yet. One that has
    registered again since has another epoch, and is left alone.
    """

    brokers: tuple[tuple[BrokerId, int], ...]


class ControlledShutdown(ControllerEvent[tuple[TopicPartition, ...]], frozen=True):
    """A broker is about to stop. The reply has the partitions that it still leads, because no other replica is in sync;
    asked again later, it may have fewer.
    """

    broker_id: BrokerId
    broker_epoch: int


class UnregisterBroker(ControllerEvent[None], frozen=True):
    """A broker that is down does not come back, and is to be forgotten."""

    broker_id: BrokerId


class ElectionType(IntEnum):
    """The codes of the ElectLeaders API."""

    PREFERRED = 0
    UNCLEAN = 1


class PartitionOutcome(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    outcome: Outcome


class ElectLeaders(ControllerEvent[tuple[PartitionOutcome, ...]], frozen=True):
    """`partitions` None stands for all; then the reply leaves out those that need no election. `election_type` is an
    int, because a request may hold any.
    """

    election_type: int
    partitions: tuple[tuple[str, int], ...] | None = None


class RebalanceLeaders(ControllerEvent[bool], frozen=True):
    """Leadership goes back to the preferred replicas, for a limited number of partitions. The reply says whether there
    may be more.
    """


class Reassignment(msgspec.Struct, frozen=True):
    """`replicas` are wanted, as they were sent: maybe wrong. None cancels the reassignment that is under way."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


class AlterReassignments(ControllerEvent[tuple[PartitionOutcome, ...]], frozen=True):
    reassignments: tuple[Reassignment, ...]
    allow_replication_factor_change: bool = True


class LogsRemoved(ControllerEvent[None], frozen=True):
    """A broker has removed its logs of these deleted topics."""

    broker_id: BrokerId
    topic_ids: tuple[uuid.UUID, ...]


class AssignDirectories(ControllerEvent[None], frozen=True):
    """In which of its log directories a broker has the logs of these partitions: topic id, partition, directory id."""

    broker_id: BrokerId
    directories: tuple[tuple[uuid.UUID, int, uuid.UUID], ...]


class DirectoriesFailed(ControllerEvent[None], frozen=True):
    """A broker cannot use these of its log directories any more (KIP-858)."""

    broker_id: BrokerId
    broker_epoch: int
    directories: tuple[uuid.UUID, ...]


class LogsLost(ControllerEvent[tuple[tuple[uuid.UUID, int], ...]], frozen=True):
    """A broker wants to give up its logs of these partitions (topic id, partition), and will recreate them empty. The
    reply has those that it may.
    """

    broker_id: BrokerId
    partitions: tuple[tuple[uuid.UUID, int], ...]


class IsrChange(msgspec.Struct, frozen=True):
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


class IsrOutcome(msgspec.Struct, frozen=True):
    """`partition` is its new state. It is also there with NEW_LEADER_ELECTED: the change was carried out, completed a
    reassignment, and moved leadership away from the leader that asked for it.
    """

    change: IsrChange
    outcome: Outcome
    partition: PartitionImage | None = None


class AlterPartitions(ControllerEvent[tuple[IsrOutcome, ...]], frozen=True):
    broker_id: BrokerId
    broker_epoch: int
    changes: tuple[IsrChange, ...]


class CreateAcls(ControllerEvent[tuple[Outcome, ...]], frozen=True):
    """The reply has an outcome for each. One that is there already is a success."""

    acls: tuple[Acl, ...]


class DeletedAcls(msgspec.Struct, frozen=True):
    """The ACLs that one filter selected."""

    acls: tuple[Acl, ...]
    outcome: Outcome = DONE


class DeleteAcls(ControllerEvent[tuple[DeletedAcls, ...]], frozen=True):
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
