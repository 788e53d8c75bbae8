"""The state of a consumer group as stored in the log: epochs, members, targets, resolved patterns.

Only `replay` changes it, record by record, in the same way after a restart as while running. Counts and indexes (owners
of partitions, subscribers of topics) are derived from the records and updated with them, so that no heartbeat has to
look at all members. Invariant: a partition has at most one owner.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from kaspar.coordination import StoredRecord
from kaspar.groups.consumer.member import LEAVES, NO_PARTITIONS, NOTHING_OWNED, Member, Partitions
from kaspar.groups.consumer.records import group_tombstones, read_target, with_current, with_metadata
from kaspar.groups.consumer.states import GroupState
from kaspar.groups.metadata_hash import NO_METADATA
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
)

NEW_GROUP: Final = 1
"""The epoch of a group that no member has joined yet, and of its assignment. As in Kafka, the first join bumps it."""
ASSIGNMENT_GONE: Final = -1


class ResolvedPattern(NamedTuple):
    """The topics that a pattern matched at this version of the cluster's topics, and when (wall clock)."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerState:
    """`has_partition_metadata`: the log has a record of kind 4, from before Kafka 4.1, that has to be deleted."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = NEW_GROUP
        self.metadata_hash = NO_METADATA
        self.assignment_epoch = NEW_GROUP
        self.assignment_timestamp_ms = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Partitions] = {}
        self.resolved: dict[str, ResolvedPattern] = {}
        self.has_partition_metadata = False
        self.is_gone = False
        self.static_ids: dict[str, str] = {}
        """The member id of each instance id."""
        self.owners: dict[uuid.UUID, dict[int, str]] = {}
        """The member that has each partition, or has yet to give it up."""
        self.subscribers: dict[str, int] = {}
        """How many members subscribe to each topic by name."""
        self.pattern_subscribers: dict[str, int] = {}
        self.assignors: dict[str, int] = {}
        """How many members ask for each assignor."""
        self.classic_count = 0
        self.classic_protocols: dict[str, int] = {}
        """How many members of the classic protocol support each embedded protocol."""

    # -- the log -------------------------------------------------------------------------------------------------------

    def replay(self, record: StoredRecord) -> None:
        match record.key, record.value:
            case ConsumerGroupCurrentMemberAssignmentKey() as key, ConsumerGroupCurrentMemberAssignmentValue() as now:
                self._put_current(with_current(self._member(key.member_id), now))  # first, as the most frequent
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue() as group:
                self.group_epoch = group.epoch
                self.metadata_hash = group.metadata_hash
            case ConsumerGroupMetadataKey(), None:
                self.is_gone = True
            case ConsumerGroupPartitionMetadataKey(), value:
                self.has_partition_metadata = value is not None
            case ConsumerGroupMemberMetadataKey() as key, ConsumerGroupMemberMetadataValue() as metadata:
                self._put_metadata(with_metadata(self._member(key.member_id), metadata))
            case ConsumerGroupMemberMetadataKey() as key, None:
                self._remove(key.member_id)
            case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue() as target:
                self.assignment_epoch = target.assignment_epoch
                self.assignment_timestamp_ms = target.assignment_timestamp
            case ConsumerGroupTargetAssignmentMetadataKey(), None:
                self.assignment_epoch = ASSIGNMENT_GONE
                self.assignment_timestamp_ms = 0
            case ConsumerGroupTargetAssignmentMemberKey() as key, ConsumerGroupTargetAssignmentMemberValue() as target:
                self.targets[key.member_id] = read_target(target)
            case ConsumerGroupTargetAssignmentMemberKey() as key, None:
                self.targets.pop(key.member_id, None)
            case ConsumerGroupCurrentMemberAssignmentKey() as key, None:
                if (member := self.members.get(key.member_id)) is not None:
                    self._put_current(
                        member._replace(
                            member_epoch=LEAVES,
                            previous_member_epoch=LEAVES,
                            assigned=NOTHING_OWNED,
                            pending_revocation=NOTHING_OWNED,
                        )
                    )
            case ConsumerGroupRegularExpressionKey() as key, ConsumerGroupRegularExpressionValue() as resolved:
                self.resolved[key.regular_expression] = ResolvedPattern(
                    frozenset(resolved.topics), resolved.version, resolved.timestamp
                )
            case ConsumerGroupRegularExpressionKey() as key, None:
                self.resolved.pop(key.regular_expression, None)
            case _:
                raise AssertionError(f"no record of a consumer group: {record}")

    def replay_move(self, member: Member) -> None:
        """Apply a current assignment in which only the epoch or the state of the member has changed."""
        self.members[member.member_id] = member

    def tombstones(self) -> list[StoredRecord]:
        return group_tombstones(self.group_id, self.members, self.resolved)

    # -- members -------------------------------------------------------------------------------------------------------

    def _member(self, member_id: str) -> Member:
        """Return the member or a new one. Compaction may have left either of a member's records first."""
        return self.members.get(member_id) or Member(member_id)

    def _put_metadata(self, member: Member) -> None:
        """Store a changed subscription or setting. The current assignment stays the same."""
        previous = self.members.get(member.member_id)
        if previous is not None:
            self._count(previous, -1)
        self.members[member.member_id] = member
        self._count(member, 1)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id

    def _put_current(self, member: Member) -> None:
        """Store a changed current assignment. Subscription and settings stay the same."""
        previous = self.members.get(member.member_id)
        self.members[member.member_id] = member
        has = member.assigned, member.pending_revocation
        if previous is not None:
            if has == (previous.assigned, previous.pending_revocation):
                return  # only the epoch or the state has changed
            self._disown(previous)
        for partitions in has:
            for topic_id, epochs in partitions.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(epochs, member.member_id))

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._count(member, -1)
        self._disown(member)
        self.targets.pop(member_id, None)
        if member.instance_id is not None and self.static_ids.get(member.instance_id) == member_id:
            del self.static_ids[member.instance_id]

    def _disown(self, member: Member) -> None:
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, epochs in partitions.items():
                owners = self.owners.get(topic_id, {})
                for partition in epochs:
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    self.owners.pop(topic_id, None)

    def _count(self, member: Member, step: int) -> None:
        for name in member.subscribed_topic_names:
            _add(self.subscribers, name, step)
        if member.pattern:
            _add(self.pattern_subscribers, member.pattern, step)
        if member.server_assignor is not None:
            _add(self.assignors, member.server_assignor, step)
        if member.classic is not None:
            self.classic_count += step
            for protocol in member.classic.supported_protocols:
                _add(self.classic_protocols, protocol.name, step)

    # -- queries -------------------------------------------------------------------------------------------------------

    @property
    def group_state(self) -> GroupState:
        if self.is_gone:
            return GroupState.DEAD
        if not self.members:
            return GroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def static_member(self, instance_id: str) -> Member | None:
        member_id = self.static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str, instance_id: str | None) -> Partitions:
        """The member's target. A static member that rejoins under another id has the target of its old id."""
        if instance_id is not None:
            member_id = self.static_ids.get(instance_id, member_id)
        return self.targets.get(member_id, NO_PARTITIONS)

    def is_owned(self, topic_id: uuid.UUID, partition: int) -> bool:
        return partition in self.owners.get(topic_id, ())

    def topics_of(self, member: Member) -> frozenset[str]:
        """The names of all topics that a member reads. A pattern that is not resolved yet matches nothing."""
        resolved = self.resolved.get(member.pattern) if member.pattern else None
        return member.subscribed_topic_names | resolved.topics if resolved else member.subscribed_topic_names

    def subscribed_topics(self) -> set[str]:
        return self._subscribed(self.subscribers, self.resolved)

    def subscribed_topics_with(self, previous: Member, updated: Member) -> set[str]:
        """The subscribed topics after this update of a member. A new member was subscribed to nothing."""
        subscribers, patterns = dict(self.subscribers), dict(self.pattern_subscribers)
        _count_topics(subscribers, patterns, previous, -1)
        _count_topics(subscribers, patterns, updated, 1)
        return self._subscribed(subscribers, patterns)

    def subscribed_topics_without(self, members: Iterable[Member]) -> set[str]:
        subscribers, patterns = dict(self.subscribers), dict(self.pattern_subscribers)
        for member in members:
            _count_topics(subscribers, patterns, member, -1)
        return self._subscribed(subscribers, patterns)

    def _subscribed(self, subscribers: Mapping[str, int], patterns: Collection[str]) -> set[str]:
        topics = set(subscribers)
        for pattern, resolved in self.resolved.items():
            if pattern in patterns:
                topics |= resolved.topics
        return topics


def _count_topics(subscribers: dict[str, int], patterns: dict[str, int], member: Member, step: int) -> None:
    for name in member.subscribed_topic_names:
        _add(subscribers, name, step)
    if member.pattern:
        _add(patterns, member.pattern, step)


def _add(counts: dict[str, int], key: str, step: int) -> None:
    count = counts.get(key, 0) + step
    if count:
        counts[key] = count
    else:
        del counts[key]
