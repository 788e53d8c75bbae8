"""The state of the cluster after Kafka's metadata records. `replay` is the only writer.

The records of a metadata transaction (KIP-868) are applied when it ends. A transaction that was aborted, or never
ended, is ignored: a controller aborts the transaction that its predecessor left open.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from kaspar.base.errors import MalformedBytes
from kaspar.base.ids import ZERO_UUID, BrokerId, LeaderEpoch
from kaspar.metadata.image import PartitionImage
from kaspar.metadata.kraft import records, security_records
from kaspar.metadata.kraft.frames import read_record
from kaspar.metadata.kraft.metadata_log import MetadataBatch
from kaspar.protocol import codec
from kaspar.protocol.messages.leader_change_message import LeaderChangeMessage
from kaspar.protocol.messages.voters_record import VotersRecord
from kaspar.protocol.schema import Message, VersionRange
from kaspar.records import ControlType, Record, control_type

M = TypeVar("M", bound=Message)

_NO_LEADER_CHANGE: Final = -2
_RESERVED_DIRECTORIES: Final = 100
"""The first ids are not real directories: unassigned, lost, migrating (Kafka's DirectoryId)."""
_VERSION_BYTES: Final = 2

Entity = tuple[tuple[str, str | None], ...]
"""The entity of a quota: types and names, such as (("user", "alice"),). None is the default."""


@dataclass(slots=True)
class KafkaTopic:
    name: str
    topic_id: uuid.UUID
    partitions: dict[int, PartitionImage] = field(default_factory=dict)


@dataclass(slots=True)
class KRaftState:
    """`configs` are by the type and name of the resource. `removed_topics` are the names of deleted topics by id."""

    voters: frozenset[int] = frozenset()
    brokers: dict[int, records.RegisterBrokerRecord] = field(default_factory=dict)
    topics: dict[uuid.UUID, KafkaTopic] = field(default_factory=dict)
    removed_topics: dict[uuid.UUID, str] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    next_producer_id: int = 0
    acls: dict[uuid.UUID, security_records.AccessControlEntryRecord] = field(default_factory=dict)
    scram_credentials: dict[tuple[str, int], security_records.UserScramCredentialRecord] = field(default_factory=dict)
    delegation_tokens: dict[str, security_records.DelegationTokenRecord] = field(default_factory=dict)
    quotas: dict[tuple[Entity, str], float] = field(default_factory=dict)
    _transaction: list[Message] | None = None

    def replay(self, batch: MetadataBatch) -> None:
        """Apply a batch. Raises UnknownRecord for a record of a later Kafka, and MalformedBytes for an invalid one."""
        for record in batch.records:
            if batch.is_control:
                self._replay_control(record)
            elif (message := read_record(record.value)) is not None:
                self._replay(message)

    def _replay_control(self, record: Record) -> None:
        """Read the voters. They are in every LeaderChangeMessage and, if the quorum is dynamic, in a VotersRecord. A
        snapshot has the VotersRecord, but no LeaderChangeMessage.
        """
        match control_type(record):
            case ControlType.LEADER_CHANGE:
                self.voters = frozenset(voter.voter_id for voter in _read_control(LeaderChangeMessage, record).voters)
            case ControlType.KRAFT_VOTERS:
                self.voters = frozenset(voter.voter_id for voter in _read_control(VotersRecord, record).voters)
            case _:
                pass

    def _replay(self, message: Message) -> None:
        match message:
            case records.BeginTransactionRecord():
                self._transaction = []
            case records.AbortTransactionRecord():
                self._transaction = None
            case records.EndTransactionRecord():
                waiting, self._transaction = self._transaction, None
                for each in waiting or ():
                    self._apply(each)
            case _ if self._transaction is not None:
                self._transaction.append(message)
            case _:
                self._apply(message)

    def _apply(self, message: Message) -> None:
        _APPLY[type(message)](self, message)

    # -- brokers and topics ------------------------------------------------------------------------------------------

    def _register_broker(self, record: records.RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = record

    def _unregister_broker(self, record: records.UnregisterBrokerRecord) -> None:
        self.brokers.pop(record.broker_id, None)

    def _topic(self, record: records.TopicRecord) -> None:
        self.topics[record.topic_id] = KafkaTopic(record.name, record.topic_id)

    def _remove_topic(self, record: records.RemoveTopicRecord) -> None:
        topic = self._known(record.topic_id)
        del self.topics[record.topic_id]
        self.configs.pop((TOPIC, topic.name), None)
        self.removed_topics[record.topic_id] = topic.name

    def _partition(self, record: records.PartitionRecord) -> None:
        self._known(record.topic_id).partitions[record.partition_id] = PartitionImage(
            _ids(record.replicas),
            _ids(record.isr),
            BrokerId(record.leader),
            LeaderEpoch(record.leader_epoch),
            record.partition_epoch,
            _ids(record.eligible_leader_replicas or ()),
            _ids(record.last_known_elr or ()),
            _directories(record.directories),
            _ids(record.adding_replicas),
            _ids(record.removing_replicas),
        )

    def _change_partition(self, record: records.PartitionChangeRecord) -> None:
        """Change a partition. Null fields are unchanged. A change of the leader, even to the same one, starts a new
        leader epoch.
        """
        partitions = self._known(record.topic_id).partitions
        old = partitions.get(record.partition_id)
        if old is None:
            raise MalformedBytes(f"partition {record.partition_id} of {record.topic_id} is changed before it exists")
        fields = {
            "isr": record.isr,
            "replicas": record.replicas,
            "removing_replicas": record.removing_replicas,
            "adding_replicas": record.adding_replicas,
            "elr": record.eligible_leader_replicas,
            "last_known_elr": record.last_known_elr,
        }
        changed: dict[str, Any] = {name: _ids(value) for name, value in fields.items() if value is not None}
        if record.directories is not None:
            changed["directories"] = _directories(record.directories)
        elif record.replicas is not None and len(record.replicas) != len(old.replicas):
            changed["directories"] = ()
        if record.leader != _NO_LEADER_CHANGE:
            changed |= {"leader": BrokerId(record.leader), "leader_epoch": LeaderEpoch(old.leader_epoch + 1)}
        partitions[record.partition_id] = old._replace(partition_epoch=old.partition_epoch + 1, **changed)

    def _clear_elr(self, record: records.ClearElrRecord) -> None:
        """Clear the eligible leader replicas of one topic, or of all topics if the name is empty."""
        for topic in self.topics.values():
            if record.topic_name in ("", topic.name):
                for number, partition in topic.partitions.items():
                    topic.partitions[number] = partition._replace(elr=(), last_known_elr=())

    def _known(self, topic_id: uuid.UUID) -> KafkaTopic:
        topic = self.topics.get(topic_id)
        if topic is None:
            raise MalformedBytes(f"a metadata record is about a topic that does not exist: {topic_id}")
        return topic

    # -- everything else ---------------------------------------------------------------------------------------------

    def _config(self, record: records.ConfigRecord) -> None:
        resource = record.resource_type, record.resource_name
        if record.value is not None:
            self.configs.setdefault(resource, {})[record.name] = record.value
            return
        values = self.configs.get(resource, {})
        values.pop(record.name, None)
        if not values:
            self.configs.pop(resource, None)

    def _feature_level(self, record: records.FeatureLevelRecord) -> None:
        self.features[record.name] = record.feature_level
        if not record.feature_level:
            del self.features[record.name]

    def _producer_ids(self, record: records.ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def _acl(self, record: security_records.AccessControlEntryRecord) -> None:
        self.acls[record.id] = record

    def _remove_acl(self, record: security_records.RemoveAccessControlEntryRecord) -> None:
        self.acls.pop(record.id, None)

    def _scram(self, record: security_records.UserScramCredentialRecord) -> None:
        self.scram_credentials[record.name, record.mechanism] = record

    def _remove_scram(self, record: security_records.RemoveUserScramCredentialRecord) -> None:
        self.scram_credentials.pop((record.name, record.mechanism), None)

    def _token(self, record: security_records.DelegationTokenRecord) -> None:
        self.delegation_tokens[record.token_id] = record

    def _remove_token(self, record: security_records.RemoveDelegationTokenRecord) -> None:
        self.delegation_tokens.pop(record.token_id, None)

    def _quota(self, record: security_records.ClientQuotaRecord) -> None:
        entity = tuple((each.entity_type, each.entity_name) for each in record.entity)
        if record.remove:
            self.quotas.pop((entity, record.key), None)
        else:
            self.quotas[entity, record.key] = record.value


TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
GROUP: Final = 32
"""TOPIC, BROKER, CLIENT_METRICS and GROUP are the types of resources in a ConfigRecord (ConfigResource.Type)."""

_APPLY: Final[dict[type[Message], Callable[[KRaftState, Any], None]]] = {
    records.RegisterBrokerRecord: KRaftState._register_broker,
    records.UnregisterBrokerRecord: KRaftState._unregister_broker,
    records.TopicRecord: KRaftState._topic,
    records.RemoveTopicRecord: KRaftState._remove_topic,
    records.PartitionRecord: KRaftState._partition,
    records.PartitionChangeRecord: KRaftState._change_partition,
    records.ClearElrRecord: KRaftState._clear_elr,
    records.ConfigRecord: KRaftState._config,
    records.FeatureLevelRecord: KRaftState._feature_level,
    records.ProducerIdsRecord: KRaftState._producer_ids,
    security_records.AccessControlEntryRecord: KRaftState._acl,
    security_records.RemoveAccessControlEntryRecord: KRaftState._remove_acl,
    security_records.UserScramCredentialRecord: KRaftState._scram,
    security_records.RemoveUserScramCredentialRecord: KRaftState._remove_scram,
    security_records.DelegationTokenRecord: KRaftState._token,
    security_records.RemoveDelegationTokenRecord: KRaftState._remove_token,
    security_records.ClientQuotaRecord: KRaftState._quota,
}


def _read_control(kind: type[M], record: Record) -> M:
    """Read a control record, whose value begins with its version."""
    value = record.value
    if value is None or len(value) < _VERSION_BYTES:
        raise MalformedBytes(f"a {kind.__name__} has no version")
    version = min(int.from_bytes(value[:_VERSION_BYTES], "big"), VersionRange.parse(kind.SCHEMA.versions).last)
    message, _ = codec.read(kind, version, value, 0)
    return message


def _directories(ids: tuple[uuid.UUID, ...]) -> tuple[uuid.UUID, ...]:
    known = tuple(directory if directory.int >= _RESERVED_DIRECTORIES else ZERO_UUID for directory in ids)
    return known if any(directory.int for directory in known) else ()


def _ids(values: tuple[int, ...]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, values))
