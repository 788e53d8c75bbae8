"""A committed offset as a record of `__consumer_offsets`.

These are the most frequent records of that topic, and a start may have to read a million of them. So the form that
nearly all of them have is read and written here in a few steps. All other forms (metadata, an expire timestamp, an
older version) are read and written by their SCHEMA, like all messages. Both give the same bytes.
"""

import functools
import struct
import uuid
from dataclasses import dataclass
from typing import ClassVar, Final

from kaspar.base.ids import NO_EPOCH, NO_TIMESTAMP, ZERO_UUID
from kaspar.coordination.decision import StoredRecord
from kaspar.protocol.schema import Field, Message, Schema

NUMBER: Final = 1
"""The number at the start of a committed offset's key."""
VERSION: Final = 4
MAX_STRING_BYTES: Final = 0x7FFF

_KEY_START = struct.Struct(">hh")  # number, length of the group's id
_LENGTH = struct.Struct(">h")
_PARTITION = struct.Struct(">i")
PARTITION_BYTES: Final = _PARTITION.size

# The usual value: version, offset, leader epoch, empty metadata, commit timestamp; then the number of tagged fields,
# which is zero, or one for the topic id, which follows its tag and size.
_VALUE = struct.Struct(">hqiBq")
_BEGINS: Final = VERSION.to_bytes(2, "big")
_EMPTY_TEXT: Final = 1
_NO_TAGS: Final = b"\0"
_TOPIC_ID_FOLLOWS: Final = b"\x01\x00\x10"
OFFSET_AND_EPOCH: Final = slice(2, 14)
_TEXT: Final = 14
COMMIT_TIMESTAMP: Final = slice(15, _VALUE.size)
_TAGS: Final = slice(_VALUE.size, 26)
TOPIC_ID: Final = slice(26, 42)
_SIZE_WITH_TOPIC_ID: Final = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitKey(Message):
    group: str
    topic: str
    partition: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="",
        fields=(
            Field("group", "string", "0"),
            Field("topic", "string", "0"),
            Field("partition", "int32", "0"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValue(Message):
    """Only version 1 contains the time at which an offset expires; with the others the settings decide."""

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = NO_TIMESTAMP
    topic_id: uuid.UUID = ZERO_UUID

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0-4",
        flexible="4+",
        fields=(
            Field("offset", "int64", "0+"),
            Field("leader_epoch", "int32", "3+"),
            Field("metadata", "string", "0+"),
            Field("commit_timestamp", "int64", "0+"),
            Field("expire_timestamp", "int64", "1"),
            Field("topic_id", "uuid", "4+", tag=0),
        ),
    )


@functools.lru_cache(maxsize=1024)
def topic_id_of(octets: bytes) -> uuid.UUID:
    """Cached, because the same few topics occur again and again."""
    return uuid.UUID(bytes=octets)


def is_usual(value: bytes) -> bool:
    """Whether the value of a commit has the usual form."""
    if value[:2] != _BEGINS or len(value) <= _VALUE.size or value[_TEXT] != _EMPTY_TEXT:
        return False
    if len(value) == _SIZE_WITH_TOPIC_ID:
        return value[_TAGS] == _TOPIC_ID_FOLLOWS
    return value[_VALUE.size :] == _NO_TAGS


def write_numbers(offset: int, leader_epoch: int, commit_timestamp: int) -> bytes:
    """The start of a usual value. `rest_of_value` follows."""
    return _VALUE.pack(VERSION, offset, leader_epoch, _EMPTY_TEXT, commit_timestamp)


def rest_of_value(topic_id: uuid.UUID) -> bytes:
    return _NO_TAGS if topic_id == ZERO_UUID else _TOPIC_ID_FOLLOWS + topic_id.bytes


def write_commit(key: OffsetCommitKey, value: OffsetCommitValue) -> tuple[bytes, bytes] | None:
    """The bytes of a commit of the usual form; None if it has another."""
    if value.metadata or value.expire_timestamp != NO_TIMESTAMP:
        return None
    group, topic = key.group.encode(), key.topic.encode()
    if len(group) > MAX_STRING_BYTES or len(topic) > MAX_STRING_BYTES:
        return None
    key_bytes = b"".join(
        (_KEY_START.pack(NUMBER, len(group)), group, _LENGTH.pack(len(topic)), topic, _PARTITION.pack(key.partition))
    )
    numbers = write_numbers(value.offset, value.leader_epoch, value.commit_timestamp)
    return key_bytes, numbers + rest_of_value(value.topic_id)


def read_commit(key: bytes, value: bytes | None) -> StoredRecord | None:
    """The commit, if it has the usual form; None if it has another form, or is not a commit."""
    if value is None or not is_usual(value):
        return None
    place = _read_key(key)
    if place is None:
        return None
    _, offset, leader_epoch, _, commit_timestamp = _VALUE.unpack_from(value)
    topic_id = value[TOPIC_ID]
    return StoredRecord(
        place,
        OffsetCommitValue(
            offset=offset,
            leader_epoch=leader_epoch,
            metadata="",
            commit_timestamp=commit_timestamp,
            topic_id=topic_id_of(topic_id) if topic_id else ZERO_UUID,
        ),
    )


def _read_key(key: bytes) -> OffsetCommitKey | None:
    end = len(key) - _PARTITION.size
    names = read_names(key[:end]) if end > 0 else None
    if names is None:
        return None
    return OffsetCommitKey(group=names[0], topic=names[1], partition=_PARTITION.unpack_from(key, end)[0])


@functools.lru_cache(maxsize=1024)
def read_names(octets: bytes) -> tuple[str, str] | None:
    """The group and topic at the start of a key. Cached, because keys with the same names follow each other."""
    if len(octets) < _KEY_START.size:
        return None
    number, length = _KEY_START.unpack_from(octets)
    group_end = _KEY_START.size + length
    topic_start = group_end + _LENGTH.size
    if number != NUMBER or length < 0 or topic_start > len(octets):
        return None
    (length,) = _LENGTH.unpack_from(octets, group_end)
    if length < 0 or topic_start + length != len(octets):
        return None
    try:
        return octets[_KEY_START.size : group_end].decode(), octets[topic_start:].decode()
    except UnicodeDecodeError:
        return None
