"""The committed offsets of all groups of one shard: OffsetMetadataManager in Kafka.

Rules kept here:
- Of several commits for a partition the last one in the log counts, within transactions or not (`PendingOffsets`).
- An offset expires `offsets.retention.minutes` after its group stopped using it (the group says when that was), or at
  the time given in its commit; never while a transaction is about to replace it.
- An offset that was committed for another topic of the same name, which has another id, is not returned.

There are many offsets, so each is kept as one small `bytes` object, which Python's garbage collector does not traverse.
"""

import struct
import sys
import uuid
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Set
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_OFFSET, NO_TIMESTAMP, ZERO_UUID
from kaspar.config.broker.groups import GroupSettings
from kaspar.config.units import MINUTE_MS
from kaspar.coordination import StoredRecord
from kaspar.groups.counts import GroupCounts
from kaspar.groups.group import OffsetsOwner, PartitionCheck
from kaspar.groups.offsets.commits import SingleCommit, commit_record, metadata_code
from kaspar.groups.offsets.pending import GroupTopicPartition, PendingOffsets
from kaspar.groups.offsets.records import (
    COMMIT_TIMESTAMP,
    OFFSET_AND_EPOCH,
    PARTITION_BYTES,
    TOPIC_ID,
    OffsetCommitKey,
    OffsetCommitValue,
    is_usual,
    read_names,
    topic_id_of,
)
from kaspar.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kaspar.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_NO_METADATA: Final = ""
PIECE: Final = 100
"""The number of partitions of a topic that are visited at once."""

_NO_EXPIRE_TIMESTAMP: Final = NO_TIMESTAMP.to_bytes(8, "big", signed=True)
_NO_TOPIC_ID: Final = ZERO_UUID.bytes
_FIXED = struct.Struct(">qiqq16s")  # offset, leader epoch, commit timestamp, expire timestamp, topic id; then metadata


def _pack(value: OffsetCommitValue) -> bytes:
    fixed = _FIXED.pack(
        value.offset, value.leader_epoch, value.commit_timestamp, value.expire_timestamp, value.topic_id.bytes
    )
    return fixed + value.metadata.encode()


def _pack_stored(value: bytes) -> bytes | None:
    """The packed form of an encoded value from the log. None if the value does not have the usual form."""
    if not is_usual(value):
        return None
    topic_id = value[TOPIC_ID] or _NO_TOPIC_ID
    return b"".join((value[OFFSET_AND_EPOCH], value[COMMIT_TIMESTAMP], _NO_EXPIRE_TIMESTAMP, topic_id))


def _unpack(packed: bytes) -> OffsetCommitValue:
    offset, leader_epoch, commit_timestamp, expire_timestamp, topic_id = _FIXED.unpack_from(packed)
    return OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=packed[_FIXED.size :].decode(),
        commit_timestamp=commit_timestamp,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id_of(topic_id),
    )


def _topic_id(packed: bytes) -> uuid.UUID:
    return topic_id_of(packed[_FIXED.size - 16 : _FIXED.size])


class Piece(NamedTuple):
    """Some of the partitions of a topic for which a group has committed offsets. They are visited at once."""

    topic: str
    partitions: list[int]


class Expired(NamedTuple):
    """Tombstones of expired offsets, whether nothing is left that keeps the group, and how many offsets were looked
    at.
    """

    records: list[StoredRecord]
    nothing_left: bool
    looked_at: int


class CommittedOffsets(NamedTuple):
    """The committed offsets of one group, as OffsetFetch returns them."""

    committed: Mapping[str, Mapping[int, bytes]]
    unstable: Collection[GroupTopicPartition] | PendingOffsets
    """Partitions whose offset an open transaction is about to replace, and is therefore not returned."""

    def to_wire(self, request: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        group_id = request.group_id
        topics = []
        if request.topics is None:
            for topic, offsets in self.committed.items():
                partitions = tuple(
                    self._partition(group_id, topic, ZERO_UUID, partition, packed)
                    for partition, packed in offsets.items()
                )
                topics.append(OffsetFetchResponseTopics(name=topic, partitions=partitions))
        else:
            for wanted in request.topics:
                offsets = self.committed.get(wanted.name, {})
                partitions = tuple(
                    self._partition(group_id, wanted.name, wanted.topic_id, partition, offsets.get(partition))
                    for partition in wanted.partition_indexes
                )
                topics.append(
                    OffsetFetchResponseTopics(name=wanted.name, topic_id=wanted.topic_id, partitions=partitions)
                )
        return OffsetFetchResponseGroup(group_id=group_id, topics=tuple(topics))

    def _partition(
        self, group_id: str, topic: str, topic_id: uuid.UUID, partition: int, packed: bytes | None
    ) -> OffsetFetchResponsePartitions:
        if self.unstable and GroupTopicPartition(group_id, topic, partition) in self.unstable:
            return _no_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        if packed is None:
            return _no_offset(partition)
        value = _unpack(packed)
        if ZERO_UUID not in (topic_id, value.topic_id) and topic_id != value.topic_id:
            return _no_offset(partition)
        return OffsetFetchResponsePartitions(
            partition_index=partition,
            committed_offset=value.offset,
            committed_leader_epoch=value.leader_epoch,
            metadata=value.metadata,
        )


class Offsets:
    def __init__(self, settings: GroupSettings, counts: GroupCounts) -> None:
        self.max_metadata_bytes = settings.offset_metadata_max_bytes
        self._settings = settings
        self._counts = counts
        self._is_loading = True
        self._committed: dict[str, dict[str, dict[int, bytes]]] = {}
        self._pending = PendingOffsets()
        self._count = 0
        self._loading: dict[bytes, dict[int, bytes]] = {}
        """While the log is loaded: the offsets of a group and topic by partition, by the start of their keys."""

    @property
    def count(self) -> int:
        """The number of committed offsets of all groups."""
        return self._count

    def groups(self) -> Set[str]:
        """The groups that have committed offsets."""
        return self._committed.keys()

    def committed(self, group_id: str) -> Iterator[tuple[str, int, OffsetCommitValue]]:
        """The topic, the partition and the value of each committed offset of one group."""
        for topic, partitions in self._committed.get(group_id, {}).items():
            for partition, packed in partitions.items():
                yield topic, partition, _unpack(packed)

    # -- commits -------------------------------------------------------------------------------------------------------

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, check: PartitionCheck | None, now_ms: int
    ) -> tuple[list[StoredRecord], TxnOffsetCommitResponse]:
        """Returns the records, to be appended as part of the transaction, and the response."""
        records: list[StoredRecord] = []
        topics = []
        for topic in request.topics:
            partitions = []
            for wanted in topic.partitions:
                code = metadata_code(wanted, self.max_metadata_bytes)
                if code is ErrorCode.NONE:
                    if check is not None:
                        _check_in_transaction(check, topic.name, wanted.partition_index)
                    records.append(commit_record(request.group_id, topic.name, ZERO_UUID, wanted, now_ms, NO_TIMESTAMP))
                partitions.append(
                    TxnOffsetCommitResponsePartition(partition_index=wanted.partition_index, error_code=code)
                )
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=tuple(partitions)))
        return records, TxnOffsetCommitResponse(topics=tuple(topics))

    # -- queries -------------------------------------------------------------------------------------------------------

    def fetch(self, request: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        """The committed offsets of all named partitions, or all that the group has. With `require_stable`, an offset
        that a transaction is about to replace is not returned.
        """
        committed = self._committed.get(request.group_id, {})
        return CommittedOffsets(committed, self._pending if require_stable else ()).to_wire(request)

    def count_of(self, group_id: str) -> int:
        """The number of offsets that a group has committed."""
        return sum(map(len, self._committed.get(group_id, {}).values()))

    def copy_of(self, group_id: str, *, require_stable: bool) -> "CommittedOffsets":
        """A copy of what `fetch` reads, which another thread can use since it does not change."""
        committed = {topic: dict(offsets) for topic, offsets in self._committed.get(group_id, {}).items()}
        return CommittedOffsets(committed, frozenset(self._pending.places_of(group_id)) if require_stable else ())

    # -- deletion ------------------------------------------------------------------------------------------------------

    def delete(
        self, request: OffsetDeleteRequest, group: OffsetsOwner
    ) -> tuple[list[StoredRecord], OffsetDeleteResponse]:
        """Delete offsets. The group has agreed, but offsets of topics to which it is subscribed stay."""
        records: list[StoredRecord] = []
        topics = []
        for topic in request.topics:
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic.name) else ErrorCode.NONE
            partitions = []
            for wanted in topic.partitions:
                place = GroupTopicPartition(request.group_id, topic.name, wanted.partition_index)
                if code is ErrorCode.NONE and (self._is_committed(place) or place in self._pending):
                    records.append(_tombstone(place))
                partitions.append(
                    OffsetDeleteResponsePartition(partition_index=wanted.partition_index, error_code=code)
                )
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=tuple(partitions)))
        return records, OffsetDeleteResponse(topics=tuple(topics))

    def pieces_of(self, group_id: str, topics: Container[str] | None = None) -> list[Piece]:
        """All committed offsets of a group, or those for these topics, in pieces. They may change between two
        pieces.
        """
        return [
            Piece(topic, partitions)
            for topic, committed in self._committed.get(group_id, {}).items()
            if topics is None or topic in topics
            for partitions in _pieces(list(committed))
        ]

    def expire(self, group: OffsetsOwner, pieces: list[Piece], now_ms: int, *, at_most: int) -> Expired:
        """Find the expired offsets in these pieces, which are removed from the list, until `at_most` offsets were
        looked at. `now_ms` is the believed time, since expiry cannot be undone.
        """
        group_id = group.group_id
        records = []
        looked_at = 0
        while pieces and looked_at < at_most:
            topic, partitions = pieces.pop()
            if group.is_subscribed_to(topic):
                continue
            committed = self._committed.get(group_id, {}).get(topic, {})
            looked_at += len(partitions)
            for partition in partitions:
                packed = committed.get(partition)
                place = GroupTopicPartition(group_id, topic, partition)
                if packed and self._is_expired(group, topic, packed, now_ms) and place not in self._pending:
                    records.append(_tombstone(place))
        nothing_left = not pieces and not self._pending.has_group(group_id)
        if nothing_left:
            nothing_left = len(records) == sum(map(len, self._committed.get(group_id, {}).values()))
        return Expired(records, nothing_left, looked_at)

    def _is_expired(self, group: OffsetsOwner, topic: str, packed: bytes, now_ms: int) -> bool:
        _, _, commit_timestamp, expire_timestamp, _ = _FIXED.unpack_from(packed)
        expire_from = group.offsets_expire_from(topic, commit_timestamp)
        if expire_from is None:
            return False
        if expire_timestamp != NO_TIMESTAMP:
            return bool(now_ms >= expire_timestamp)
        return now_ms - expire_from >= self._settings.offsets_retention_minutes * MINUTE_MS

    def forget_group(self, group_id: str) -> list[StoredRecord]:
        """Tombstones for all committed offsets of a group, including those in open transactions."""
        places = {
            GroupTopicPartition(group_id, topic, partition): None
            for topic, partitions in self._committed.get(group_id, {}).items()
            for partition in partitions
        }
        places.update(dict.fromkeys(self._pending.places_of(group_id)))
        return [_tombstone(place) for place in places]

    def groups_with_offsets(self) -> list[str]:
        """The groups that have committed offsets, including those in open transactions."""
        return [*self._committed, *(group for group in self._pending.groups() if group not in self._committed)]

    def topic_deleted(self, group_id: str, piece: Piece, is_deleted: Callable[[uuid.UUID], bool]) -> list[StoredRecord]:
        """Tombstones for a group's offsets of deleted topics. Offsets of a newer topic with the same name stay, since
        `is_deleted` checks the topic id, which is ZERO_UUID for offsets without one.
        """
        committed = self._committed.get(group_id, {}).get(piece.topic, {})
        return [
            _tombstone(GroupTopicPartition(group_id, piece.topic, partition))
            for partition in piece.partitions
            if (packed := committed.get(partition)) and is_deleted(_topic_id(packed))
        ]

    def pending_for(self, group_id: str, topics: Container[str]) -> list[StoredRecord]:
        """Tombstones for a group's offsets of deleted topics in open transactions."""
        return [_tombstone(place) for place in self._pending.places_of(group_id) if place.topic in topics]

    def _is_committed(self, place: GroupTopicPartition) -> bool:
        return place.partition in self._committed.get(place.group, {}).get(place.topic, ())

    # -- the log -------------------------------------------------------------------------------------------------------

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int | None) -> None:
        if value is not None and not self._is_loading:
            self._counts.offset_commits += 1
        if value is not None and producer_id is None and not self._pending:
            self._put(key.group, key.topic, key.partition, _pack(value))
            return
        place = GroupTopicPartition(key.group, key.topic, key.partition)
        if value is None:
            self._pending.drop(place)
            self._remove(place)
        elif producer_id is None:
            self._pending.committed_behind(place)
            self._put(*place, _pack(value))
        else:
            self._pending.add(producer_id, place, _pack(value))

    def replay_single(self, commit: SingleCommit, offset: int, leader_epoch: int, now_ms: int) -> None:
        self._counts.offset_commits += 1
        packed = _FIXED.pack(offset, leader_epoch, now_ms, NO_TIMESTAMP, commit.topic_id_bytes)
        if self._pending:
            self._pending.committed_behind(GroupTopicPartition(commit.group_id, commit.topic, commit.partition))
        self._put(commit.group_id, commit.topic, commit.partition, packed)

    def load(self, key: bytes, value: bytes) -> bool:
        """Fast path of `replay` while the log is loaded, for a commit outside of transactions that has the usual form,
        and whose group has committed for that topic before. False if the commit needs the normal path.
        """
        begins = key[:-PARTITION_BYTES]
        partitions = self._loading.get(begins)
        if partitions is None:
            partitions = self._partitions_of(begins)
            if not partitions:
                return False
            self._loading[begins] = partitions
        packed = _pack_stored(value)
        if packed is None or self._pending:
            return False
        partition = int.from_bytes(key[-PARTITION_BYTES:], "big", signed=True)
        if partition not in partitions:
            self._count += 1
        partitions[partition] = packed
        return True

    def _partitions_of(self, begins: bytes) -> dict[int, bytes] | None:
        names = read_names(begins)
        return None if names is None else self._committed.get(names[0], {}).get(names[1])

    def loaded(self) -> None:
        self._is_loading = False
        self._loading.clear()

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        for place, packed in self._pending.end(producer_id, committed=committed):
            self._put(*place, packed)

    def _put(self, group: str, topic: str, partition: int, packed: bytes) -> None:
        topics = self._committed.get(group)
        if topics is None:
            topics = self._committed[group] = {}
        partitions = topics.get(topic)
        if partitions is None:
            # The same few names are keys in very many groups.
            partitions = topics[sys.intern(topic)] = {}
        if partition not in partitions:
            self._count += 1
        partitions[partition] = packed

    def _remove(self, place: GroupTopicPartition) -> None:
        if not self._is_committed(place):
            return
        topics = self._committed[place.group]
        del topics[place.topic][place.partition]
        self._count -= 1
        if not topics[place.topic]:
            del topics[place.topic]
            self._loading.clear()
        if not topics:
            del self._committed[place.group]


def _pieces(partitions: list[int]) -> Iterator[list[int]]:
    for first in range(0, len(partitions), PIECE):
        yield partitions[first : first + PIECE]


def _check_in_transaction(check: PartitionCheck, topic: str, partition: int) -> None:
    """Check a partition. TxnOffsetCommit has no epochs, so it is refused with an error code about generations."""
    try:
        check(topic, ZERO_UUID, partition)
    except Refused as refusal:
        if refusal.code is ErrorCode.STALE_MEMBER_EPOCH:
            raise Refused(ErrorCode.ILLEGAL_GENERATION, refusal.message) from refusal
        raise


def _tombstone(place: GroupTopicPartition) -> StoredRecord:
    return StoredRecord(OffsetCommitKey(group=place.group, topic=place.topic, partition=place.partition), None)


def _no_offset(partition: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition, committed_offset=NO_OFFSET, metadata=_NO_METADATA, error_code=code
    )
