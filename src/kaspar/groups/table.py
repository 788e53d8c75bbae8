"""All groups of a shard by id, as stored in the log.

`replay` applies records one by one, in the same way after a restart as while running. A group that is followed by
records of the other kind has been converted, and is replaced. A new group is added when its first record is in the log,
and not before.
"""

from collections.abc import Mapping
from typing import TypeAlias

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.coordination import StoredRecord
from kaspar.groups.classic_group import ClassicGroup
from kaspar.groups.consumer_group import ConsumerGroup
from kaspar.groups.context import ShardContext
from kaspar.groups.counts import GroupCounts
from kaspar.groups.group import Group, group_not_found
from kaspar.groups.offsets.commits import SingleCommit
from kaspar.groups.offsets.committed import Offsets
from kaspar.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kaspar.protocol.schema import Message

ConsumerGroupKey: TypeAlias = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)


class GroupTable:
    def __init__(self, context: ShardContext, offsets: Offsets, counts: GroupCounts) -> None:
        self._context = context
        self._offsets = offsets
        self._counts = counts
        self._groups: dict[str, Group] = {}
        self._new: dict[str, ClassicGroup] = {}
        """Groups that have just been created, until their first record is in the log."""
        self._is_loading = True
        self.get = self._groups.get

    @property
    def groups(self) -> Mapping[str, Group]:
        return self._groups

    def __getitem__(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise group_not_found(group_id)
        return group

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """The group, unless it is not, or no longer, a consumer group."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    # -- new groups ----------------------------------------------------------------------------------------------------

    def add_new(self, group: ClassicGroup) -> None:
        """Keep a new group whose first record is about to be appended."""
        self._new[group.group_id] = group

    def discard_new(self, group_id: str) -> None:
        """Drop a new group whose first record was refused by the log."""
        del self._new[group_id]

    def add_group_of_offsets(self, group_id: str) -> None:
        """Create the group of offsets that belong to none. It has no record of its own."""
        self._groups[group_id] = ClassicGroup(group_id, self._context)

    # -- the log -------------------------------------------------------------------------------------------------------

    def replay(self, record: StoredRecord, producer: ProducerIdAndEpoch | None) -> None:
        key, value = record
        if isinstance(key, OffsetCommitKey):
            self._replay_offset(key, value, producer)
        elif isinstance(key, GroupMetadataKey):
            self._replay_classic(key.group, value)
        else:
            assert isinstance(key, ConsumerGroupKey)
            self._replay_consumer(key.group_id, record)

    def replay_single(self, commit: SingleCommit, offset: int, leader_epoch: int, now_ms: int) -> None:
        """Apply a commit whose group did not exist when it was decided on."""
        if commit.group_id not in self._groups:
            self.add_group_of_offsets(commit.group_id)
        self._offsets.replay_single(commit, offset, leader_epoch, now_ms)

    def loaded(self) -> None:
        """Called when all of the log has been replayed."""
        self._is_loading = False
        for group_id in self._offsets.groups() - self._groups.keys():
            self.add_group_of_offsets(group_id)

    def _replay_offset(self, key: OffsetCommitKey, value: Message | None, producer: ProducerIdAndEpoch | None) -> None:
        assert value is None or isinstance(value, OffsetCommitValue)
        if value is not None and key.group not in self._groups:
            self.add_group_of_offsets(key.group)
        self._offsets.replay(key, value, None if producer is None else producer.producer_id)

    def _replay_classic(self, group_id: str, value: Message | None) -> None:
        known = self._groups.get(group_id)
        if value is None:
            if isinstance(known, ClassicGroup):
                known.replay_tombstone()
                del self._groups[group_id]
            return
        assert isinstance(value, GroupMetadataValue)
        group = self._new.pop(group_id, known)
        if isinstance(group, ClassicGroup) and not self._is_loading:
            self._counts.classic_rebalances += group.replay(value)
        else:
            group = ClassicGroup.restored(group_id, self._context, value)
        self._groups[group_id] = group

    def _replay_consumer(self, group_id: str, record: StoredRecord) -> None:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                return
            group = self._groups[group_id] = ConsumerGroup(group_id, self._context)
        group.replay(record)
        if isinstance(record.key, ConsumerGroupMetadataKey) and record.value is not None and not self._is_loading:
            self._counts.consumer_rebalances += 1
        if group.is_gone:
            del self._groups[group_id]
