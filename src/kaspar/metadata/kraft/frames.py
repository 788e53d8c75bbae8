"""The frames of records in Kafka's metadata log.

A frame has its own version, the key of the record's kind and the version of the message, as unsigned varints, and then
the message. `IGNORED` are kinds about running nodes, or without effect; any other unknown kind is from a later Kafka.
"""

from typing import Final, NamedTuple

from kaspar.base.errors import KasparError, MalformedBytes
from kaspar.base.primitives import read_varint, unsigned_varint_value, varint_size
from kaspar.metadata.kraft.node_records import NODE_RECORDS
from kaspar.metadata.kraft.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from kaspar.metadata.kraft.security_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kaspar.protocol import codec
from kaspar.protocol.schema import Message, VersionRange

KINDS: Final[dict[int, type[Message]]] = {
    kind.SCHEMA.api_key: kind
    for kind in (
        RegisterBrokerRecord,
        UnregisterBrokerRecord,
        TopicRecord,
        PartitionRecord,
        ConfigRecord,
        PartitionChangeRecord,
        RemoveTopicRecord,
        DelegationTokenRecord,
        UserScramCredentialRecord,
        FeatureLevelRecord,
        ClientQuotaRecord,
        ProducerIdsRecord,
        AccessControlEntryRecord,
        RemoveAccessControlEntryRecord,
        RemoveUserScramCredentialRecord,
        BeginTransactionRecord,
        EndTransactionRecord,
        AbortTransactionRecord,
        RemoveDelegationTokenRecord,
        ClearElrRecord,
    )
}
"""The kinds of records, by the key in the frame."""

IGNORED: Final[dict[int, type[Message]]] = {kind.SCHEMA.api_key: kind for kind in NODE_RECORDS}
_FRAME_VERSION: Final = 1


class UnknownRecord(KasparError):
    """A record that only a later Kafka knows."""


class Frame(NamedTuple):
    """The kind of record in a value, its version, and the position of the message."""

    kind: type[Message]
    version: int
    position: int


def read_frame(value: bytes | None) -> Frame:
    """Read the frame of a value. Raises UnknownRecord, and MalformedBytes if the bytes are not a frame."""
    if value is None:
        raise MalformedBytes("a metadata record has no value")
    frame_version, position = _varint(value, 0)
    if frame_version != _FRAME_VERSION:
        raise UnknownRecord(f"a metadata record is in a frame of version {frame_version}")
    key, position = _varint(value, position)
    version, position = _varint(value, position)
    kind = KINDS.get(key) or IGNORED.get(key)
    if kind is None:
        raise UnknownRecord(f"a metadata record is of kind {key}")
    return Frame(kind, version, position)


def read_record(value: bytes | None) -> Message | None:
    """Read a record. None for a kind that is ignored. Raises UnknownRecord, and MalformedBytes for invalid bytes."""
    frame = read_frame(value)
    return None if frame.kind in NODE_RECORDS else read_message(value, frame)


def read_message(value: bytes | None, frame: Frame) -> Message:
    """Read the record of a frame, also of an ignored kind. Raises UnknownRecord and MalformedBytes."""
    assert value is not None, "it has a frame"
    if frame.version not in VersionRange.parse(frame.kind.SCHEMA.versions):
        raise UnknownRecord(f"a {frame.kind.__name__} has version {frame.version}")
    message, _ = codec.read(frame.kind, frame.version, value, frame.position)
    return message


def _varint(data: bytes, position: int) -> tuple[int, int]:
    varint = read_varint(data, position, len(data))
    if varint < 0:
        raise MalformedBytes("a metadata record is cut off")
    return unsigned_varint_value(varint), position + varint_size(varint)
