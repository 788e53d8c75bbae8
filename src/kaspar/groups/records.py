"""The records of `__consumer_offsets`, as Kafka 4.3 lays them out: committed offsets, classic groups, consumer groups.

Messages have the field names of Kafka's definitions. Other kinds (of share and streams groups) are skipped when a log
is loaded, and are never deleted.
"""

import functools
import uuid
from dataclasses import dataclass
from typing import ClassVar, Final

from kaspar.base.ids import NO_TIMESTAMP
from kaspar.coordination.decision import StoredRecord
from kaspar.coordination.record_kinds import RecordKind, RecordKinds
from kaspar.groups.offsets.records import OffsetCommitKey as OffsetCommitKey
from kaspar.groups.offsets.records import OffsetCommitValue as OffsetCommitValue
from kaspar.groups.offsets.records import read_commit, write_commit
from kaspar.protocol import codec
from kaspar.protocol.schema import Field, Message, Schema

# --- Classic groups ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataKey(Message):
    group: str

    SCHEMA: ClassVar[Schema] = Schema(versions="0", flexible="", fields=(Field("group", "string", "0"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata(Message):
    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    rebalance_timeout: int = -1
    session_timeout: int
    subscription: bytes
    assignment: bytes

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0-4",
        flexible="4+",
        fields=(
            Field("member_id", "string", "0+"),
            Field("group_instance_id", "string", "3+", nullable="3+"),
            Field("client_id", "string", "0+"),
            Field("client_host", "string", "0+"),
            Field("rebalance_timeout", "int32", "1+"),
            Field("session_timeout", "int32", "0+"),
            Field("subscription", "bytes", "0+"),
            Field("assignment", "bytes", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataValue(Message):
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int = NO_TIMESTAMP
    members: tuple[MemberMetadata, ...]

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0-4",
        flexible="4+",
        fields=(
            Field("protocol_type", "string", "0+"),
            Field("generation", "int32", "0+"),
            Field("protocol", "string", "0+", nullable="0+"),
            Field("leader", "string", "0+", nullable="0+"),
            Field("current_state_timestamp", "int64", "2+"),
            Field("members", "[]MemberMetadata", "0+"),
        ),
    )


# --- Consumer groups (KIP-848) ----------------------------------------------------------------------------------------

_GROUP_KEY: Final = Schema(versions="0", flexible="", fields=(Field("group_id", "string", "0"),))
_MEMBER_KEY: Final = Schema(
    versions="0", flexible="", fields=(Field("group_id", "string", "0"), Field("member_id", "string", "0"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadataKey(Message):
    group_id: str

    SCHEMA: ClassVar[Schema] = _GROUP_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadataValue(Message):
    epoch: int
    metadata_hash: int = 0

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("epoch", "int32", "0+"),
            Field("metadata_hash", "int64", "0+", tag=0),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPartitionMetadataKey(Message):
    """Written before Kafka 4.1, and replaced by the metadata hash. It is read, and deleted where it is found."""

    group_id: str

    SCHEMA: ClassVar[Schema] = _GROUP_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata(Message):
    partition: int
    racks: tuple[str, ...]

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("partition", "int32", "0+"),
            Field("racks", "[]string", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata(Message):
    topic_id: uuid.UUID
    topic_name: str
    num_partitions: int
    partition_metadata: tuple[PartitionMetadata, ...]

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("topic_id", "uuid", "0+"),
            Field("topic_name", "string", "0+"),
            Field("num_partitions", "int32", "0+"),
            Field("partition_metadata", "[]PartitionMetadata", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPartitionMetadataValue(Message):
    topics: tuple[TopicMetadata, ...]

    SCHEMA: ClassVar[Schema] = Schema(versions="0", flexible="0+", fields=(Field("topics", "[]TopicMetadata", "0+"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataKey(Message):
    group_id: str
    member_id: str

    SCHEMA: ClassVar[Schema] = _MEMBER_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicProtocol(Message):
    name: str
    metadata: bytes

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("name", "string", "0+"),
            Field("metadata", "bytes", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberMetadata(Message):
    """What is stored about a member that uses the classic protocol in a consumer group."""

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocol, ...]

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("session_timeout_ms", "int32", "0+"),
            Field("supported_protocols", "[]ClassicProtocol", "0+"),
        ),
    )


_EMPTY_CLASSIC_MEMBER_METADATA: Final = ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataValue(Message):
    """A member of the consumer protocol has an explicit null for `classic_member_metadata`: in Kafka's classes null is
    not that field's default, and if the field is missing they take the member for a classic one.
    """

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None = _EMPTY_CLASSIC_MEMBER_METADATA

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("instance_id", "string", "0+", nullable="0+"),
            Field("rack_id", "string", "0+", nullable="0+"),
            Field("client_id", "string", "0+"),
            Field("client_host", "string", "0+"),
            Field("subscribed_topic_names", "[]string", "0+"),
            Field("subscribed_topic_regex", "string", "0+", nullable="0+"),
            Field("rebalance_timeout_ms", "int32", "0+"),
            Field("server_assignor", "string", "0+", nullable="0+"),
            Field("classic_member_metadata", "ClassicMemberMetadata", "0+", nullable="0+", tag=0),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMetadataKey(Message):
    group_id: str

    SCHEMA: ClassVar[Schema] = _GROUP_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int
    assignment_timestamp: int = 0

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("assignment_epoch", "int32", "0+"),
            Field("assignment_timestamp", "int64", "0+", tag=0),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMemberKey(Message):
    group_id: str
    member_id: str

    SCHEMA: ClassVar[Schema] = _MEMBER_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTopicPartitions(Message):
    topic_id: uuid.UUID
    partitions: tuple[int, ...]

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("topic_id", "uuid", "0+"),
            Field("partitions", "[]int32", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMemberValue(Message):
    topic_partitions: tuple[TargetTopicPartitions, ...]

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0", flexible="0+", fields=(Field("topic_partitions", "[]TargetTopicPartitions", "0+"),)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    group_id: str
    member_id: str

    SCHEMA: ClassVar[Schema] = _MEMBER_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentTopicPartitions(Message):
    """`assignment_epochs` are the epochs at which the member got each partition, so that commits of zombies are fenced.
    Kafka wrote none before 4.3.
    """

    topic_id: uuid.UUID
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None = ()

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("topic_id", "uuid", "0+"),
            Field("partitions", "[]int32", "0+"),
            Field("assignment_epochs", "[]int32", "0+", nullable="0+", tag=0),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[CurrentTopicPartitions, ...]
    partitions_pending_revocation: tuple[CurrentTopicPartitions, ...]

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("member_epoch", "int32", "0+"),
            Field("previous_member_epoch", "int32", "0+"),
            Field("state", "int8", "0+"),
            Field("assigned_partitions", "[]CurrentTopicPartitions", "0+"),
            Field("partitions_pending_revocation", "[]CurrentTopicPartitions", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupRegularExpressionKey(Message):
    group_id: str
    regular_expression: str

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="",
        fields=(
            Field("group_id", "string", "0"),
            Field("regular_expression", "string", "0"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupRegularExpressionValue(Message):
    """The topics that a pattern matched, the version of the metadata, and when the pattern was resolved."""

    topics: tuple[str, ...]
    version: int
    timestamp: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("topics", "[]string", "0+"),
            Field("version", "int64", "0+"),
            Field("timestamp", "int64", "0+"),
        ),
    )


# --- All kinds, by the numbers that begin their keys ------------------------------------------------------------------

GROUP_VERSION: Final = 3
REMEMBERED_MEMBERS: Final = 4096

KINDS: Final = RecordKinds(
    (
        RecordKind((0, 1), OffsetCommitKey, OffsetCommitValue, 4),
        RecordKind((2,), GroupMetadataKey, GroupMetadataValue, GROUP_VERSION),
        RecordKind((3,), ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, 0),
        RecordKind((4,), ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue, 0),
        RecordKind((5,), ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue, 0),
        RecordKind((6,), ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue, 0),
        RecordKind((7,), ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue, 0),
        RecordKind((8,), ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue, 0),
        RecordKind((16,), ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue, 0),
    )
)
VERSION_WITH_EXPIRE_TIMESTAMP: Final = 1


def encode(record: StoredRecord) -> tuple[bytes, bytes | None]:
    """The key and the value as Kafka 4.3 writes them."""
    key, value = record
    if type(key) is OffsetCommitKey and type(value) is OffsetCommitValue:
        written = write_commit(key, value)
        if written is not None:
            return written
        if value.expire_timestamp != NO_TIMESTAMP:
            return KINDS.encode(record, value_version=VERSION_WITH_EXPIRE_TIMESTAMP)
    elif type(value) is GroupMetadataValue:
        return KINDS.encode(record, encoded={"members": [_written(member) for member in value.members]})
    return KINDS.encode(record)


@functools.lru_cache(maxsize=REMEMBERED_MEMBERS)
def _written(member: MemberMetadata) -> bytes:
    """Cached, because most members of a group do not change from one generation to the next."""
    return codec.write(member, GROUP_VERSION)


def decode(key: bytes, value: bytes | None) -> StoredRecord | None:
    """None for a kind that is not supported. Raises MalformedBytes if the bytes are not a record of a known kind."""
    return read_commit(key, value) or KINDS.decode(key, value)
