"""Builds and reads the records of a consumer group: kinds 3 to 8 and 16 of `__consumer_offsets`.

Partitions and names are sorted, so that the same state gives the same bytes.
"""

import functools
import struct
import uuid
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from kaspar.base.named_tuples import new_tuple
from kaspar.coordination import EncodedRecord, StoredRecord
from kaspar.groups.consumer.member import NOTHING_OWNED, Member, OwnedPartitions, Partitions
from kaspar.groups.consumer.states import MemberState
from kaspar.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    TargetTopicPartitions,
    encode,
)

# -- writing -----------------------------------------------------------------------------------------------------------


def member_record(group_id: str, member: Member) -> StoredRecord:
    """The member's subscription and settings."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )
    return StoredRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> StoredRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return StoredRecord(ConsumerGroupMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Partitions) -> StoredRecord:
    """The member's target."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TargetTopicPartitions(topic_id=topic_id, partitions=tuple(sorted(target[topic_id])))
            for topic_id in _sorted(target)
        )
    )
    return StoredRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> StoredRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return StoredRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: Member) -> StoredRecord:
    """The member's current assignment."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state.value,
        assigned_partitions=_written(member.assigned),
        partitions_pending_revocation=_written(member.pending_revocation),
    )
    return StoredRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def pattern_record(
    group_id: str, pattern: str, topics: Collection[str], version: int, timestamp_ms: int
) -> StoredRecord:
    value = ConsumerGroupRegularExpressionValue(topics=tuple(sorted(topics)), version=version, timestamp=timestamp_ms)
    return StoredRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), value)


def pattern_tombstone(group_id: str, pattern: str) -> StoredRecord:
    return StoredRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)


def partition_metadata_tombstone(group_id: str) -> StoredRecord:
    return StoredRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[StoredRecord]:
    """Tombstones of the current assignment, the target and the member. In this order a reader never finds partitions of
    a member that does not exist.
    """
    return [
        StoredRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        StoredRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        StoredRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], patterns: Iterable[str]) -> list[StoredRecord]:
    of_members = [member_tombstones(group_id, member_id) for member_id in member_ids]
    return [
        *(current for current, _, _ in of_members),
        *(target for _, target, _ in of_members),
        StoredRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(member for _, _, member in of_members),
        *(pattern_tombstone(group_id, pattern) for pattern in patterns),
        partition_metadata_tombstone(group_id),
        StoredRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def _written(owned: OwnedPartitions) -> tuple[CurrentTopicPartitions, ...]:
    written = []
    for topic_id in _sorted(owned):
        epochs = owned[topic_id]
        partitions = tuple(sorted(epochs))
        written.append(
            CurrentTopicPartitions(
                topic_id=topic_id,
                partitions=partitions,
                assignment_epochs=tuple(epochs[partition] for partition in partitions),
            )
        )
    return tuple(written)


def _sorted(partitions: Partitions | OwnedPartitions) -> list[uuid.UUID]:
    return sorted(partitions)


class _WrittenMember(NamedTuple):
    """The encoded current assignment of a member with these partitions: its key, and its value after the numbers."""

    assigned: OwnedPartitions
    pending_revocation: OwnedPartitions
    key: bytes
    rest_of_value: bytes


_NUMBERS: Final = struct.Struct(">hiib")
"""The first part of a current assignment's value: its version, the two epochs, and the state."""
_CURRENT_VERSION: Final = 0


class CurrentRecords:
    """Encodes the current assignments of members that move to another epoch and keep their partitions, as nearly all
    members do in nearly all rebalances. The partitions are encoded once.
    """

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self.written: dict[str, _WrittenMember] = {}

    def record(self, member: Member, replay: Callable[[Member], None]) -> EncodedRecord:
        """The same bytes as from `current_record`. `replay` is called with the member when they are in the log."""
        written = self.written.get(member.member_id)
        if (
            written is None
            or written.assigned is not member.assigned
            or written.pending_revocation is not member.pending_revocation
        ):
            written = self.written[member.member_id] = self._write(member)
        numbers = _NUMBERS.pack(_CURRENT_VERSION, member.member_epoch, member.previous_member_epoch, member.state.value)
        encoded = (written.key, numbers + written.rest_of_value)
        return new_tuple(EncodedRecord, (encoded, functools.partial(replay, member)))

    def _write(self, member: Member) -> _WrittenMember:
        key, value = encode(current_record(self._group_id, member))
        assert value is not None, "a member that has left has no such record"
        return _WrittenMember(member.assigned, member.pending_revocation, key, value[_NUMBERS.size :])

    def forget(self, member_id: str) -> None:
        self.written.pop(member_id, None)


# -- reading -----------------------------------------------------------------------------------------------------------


def with_metadata(member: Member, value: ConsumerGroupMemberMetadataValue) -> Member:
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def with_current(member: Member, value: ConsumerGroupCurrentMemberAssignmentValue) -> Member:
    return member.moved(
        value.member_epoch,
        value.previous_member_epoch,
        MemberState.of(value.state),
        _read_owned(value.assigned_partitions, value.member_epoch),
        _read_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def read_target(value: ConsumerGroupTargetAssignmentMemberValue) -> Partitions:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def _read_owned(written: Collection[CurrentTopicPartitions], member_epoch: int) -> OwnedPartitions:
    """Before Kafka 4.3 records contained no assignment epochs: these are at most the member's epoch."""
    if not written:
        return NOTHING_OWNED
    owned: dict[uuid.UUID, dict[int, int]] = {}
    for topic in written:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = (max(member_epoch, 0),) * len(topic.partitions)
        owned.setdefault(topic.topic_id, {}).update(zip(topic.partitions, epochs, strict=True))
    return owned
