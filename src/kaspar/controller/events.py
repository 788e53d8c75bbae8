"""The events that a controller decides about, and its replies. One bad entry in a request never fails the others.

Events and replies are plain frozen data that msgspec can encode, because other brokers send events over the wire.
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
    """The result of one entry of a request."""

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
    """A topic to create. -1 stands for the default. `assignments` are (partition, replicas) pairs as received, not yet
    checked.
    """

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
    """A topic, identified by its name or its id."""

    name: str | None = None
    topic_id: uuid.UUID = ZERO_UUID


class TopicDeletion(msgspec.Struct, frozen=True):
    name: str | None
    topic_id: uuid.UUID
    outcome: Outcome


class DeleteTopics(ControllerEvent[tuple[TopicDeletion, ...]], frozen=True):
    topics: tuple[TopicReference, ...]


class MorePartitions(msgspec.Struct, frozen=True):
    """`count` is the new total. `assignments` are the replicas of the new partitions; if None, the controller chooses
    them.
    """

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
    """`type` is an int, because a request may contain any number."""

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
    """Changes of one resource. `replace` first drops the existing settings, as the older AlterConfigs does."""

    resource: ConfigResource
    operations: tuple[ConfigOperation, ...]
    replace: bool = False


class ResourceOutcome(msgspec.Struct, frozen=True):
    resource: ConfigResource
    outcome: Outcome


class AlterConfigs(ControllerEvent[tuple[ResourceOutcome, ...]], frozen=True):
    """`received_by` is the broker that received the request: as in Kafka, it refuses the settings of other brokers.
    None stands for the controller's own broker.
    """

    changes: tuple[ConfigChange, ...]
    validate_only: bool = False
    received_by: BrokerId | None = None


class QuotaAlteration(msgspec.Struct, frozen=True):
    """`entity` has the parts of the entity as received, not yet checked: type and name, None for the default.
    `operations` set a quota to a value, or remove it (None).
    """

    entity: tuple[tuple[str, str | None], ...]
    operations: tuple[tuple[str, float | None], ...]


class QuotaOutcome(msgspec.Struct, frozen=True):
    entity: tuple[tuple[str, str | None], ...]
    outcome: Outcome


class AlterClientQuotas(ControllerEvent[tuple[QuotaOutcome, ...]], frozen=True):
    """The reply has one outcome for each entity, even if it was named several times."""

    alterations: tuple[QuotaAlteration, ...]
    validate_only: bool = False


class FeatureUpdate(msgspec.Struct, frozen=True):
    """`upgrade_type` is an int, because a request may contain any number."""

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
    """`mechanism` is the code in the request, which may be any number."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)  # the repr of a Struct would contain the secrets
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
    """Store a new token, or one whose expiry has changed. The sending broker has checked the client's permission."""

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
    """These brokers (id, epoch) are dead, although their sessions with the store may not have ended yet. A broker that
    has registered again since has another epoch and is not fenced.
    """

    brokers: tuple[tuple[BrokerId, int], ...]


class ControlledShutdown(ControllerEvent[tuple[TopicPartition, ...]], frozen=True):
    """A broker is about to stop. The reply has the partitions that it still leads because no other replica is in sync.
    If the event is repeated later, there may be fewer.
    """

    broker_id: BrokerId
    broker_epoch: int


class UnregisterBroker(ControllerEvent[None], frozen=True):
    """A broker that is down will not come back; remove it from the cluster."""

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
    """`partitions`: None stands for all; then the reply omits those that need no election. `election_type` is an int,
    because a request may contain any number.
    """

    election_type: int
    partitions: tuple[tuple[str, int], ...] | None = None


class RebalanceLeaders(ControllerEvent[bool], frozen=True):
    """Move leadership back to the preferred replicas, for a limited number of partitions. The reply is whether there
    may be more.
    """


class Reassignment(msgspec.Struct, frozen=True):
    """`replicas` are the target as received, not yet checked. None cancels the reassignment in progress."""

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
    """The log directories in which a broker has its logs of these partitions: topic id, partition, directory id."""

    broker_id: BrokerId
    directories: tuple[tuple[uuid.UUID, int, uuid.UUID], ...]


class DirectoriesFailed(ControllerEvent[None], frozen=True):
    """A broker can no longer use these log directories (KIP-858)."""

    broker_id: BrokerId
    broker_epoch: int
    directories: tuple[uuid.UUID, ...]


class LogsLost(ControllerEvent[tuple[tuple[uuid.UUID, int], ...]], frozen=True):
    """A broker wants to give up its lost logs of these partitions (topic id, partition), and to recreate them empty.
    The reply has the partitions for which it may do so.
    """

    broker_id: BrokerId
    partitions: tuple[tuple[uuid.UUID, int], ...]


class IsrChange(msgspec.Struct, frozen=True):
    """The in-sync replicas that the leader of a partition requests, and the partition's epochs as it knows them.
    `new_isr_epochs` has the broker epoch of each member of `new_isr` as the leader knows it, or -1 (KIP-903); empty
    stands for -1 everywhere.
    """

    topic_id: uuid.UUID
    partition: int
    leader_epoch: LeaderEpoch
    partition_epoch: int
    new_isr: tuple[BrokerId, ...]
    new_isr_epochs: tuple[int, ...] = ()


class IsrOutcome(msgspec.Struct, frozen=True):
    """`partition` is the new state. It is also set with NEW_LEADER_ELECTED: the change was applied, completed a
    reassignment, and moved leadership away from the leader that requested it.
    """

    change: IsrChange
    outcome: Outcome
    partition: PartitionImage | None = None


class AlterPartitions(ControllerEvent[tuple[IsrOutcome, ...]], frozen=True):
    broker_id: BrokerId
    broker_epoch: int
    changes: tuple[IsrChange, ...]


class CreateAcls(ControllerEvent[tuple[Outcome, ...]], frozen=True):
    """The reply has an outcome for each ACL. Creating an ACL that already exists succeeds."""

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
    """The R of an event's class: the type that its reply is decoded to."""
    (base,) = event.__dict__["__orig_bases__"]
    return get_args(base)[0]
