"""A group of the consumer protocol (KIP-848), as its shard uses it: ConsumerGroup and its part of GroupMetadataManager
in Kafka.

Its state is in `membership`, the rules of its heartbeats in `requests`, those of members that use the classic protocol
in `classic_members`.
"""

import uuid
from collections.abc import Collection
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.coordination import Decision, Now, StoredRecord, Ticket
from kaspar.groups.consumer import assigning, classic_members, departures, pattern_resolution, requests
from kaspar.groups.consumer.member import JOINS, NO_PARTITIONS, Member, Partitions
from kaspar.groups.consumer.membership import ConsumerMembership
from kaspar.groups.consumer.patterns import PatternsResolved
from kaspar.groups.consumer.target import AssignmentComputed
from kaspar.groups.context import ShardContext
from kaspar.groups.group import (
    CONSUMER_PROTOCOL_TYPE,
    Committer,
    Group,
    GroupClient,
    GroupKind,
    GroupTimer,
    PartitionCheck,
    group_not_empty,
    not_of_kind,
)
from kaspar.protocol.messages.consumer_group_describe import Assignment, DescribedGroup, TopicPartitions
from kaspar.protocol.messages.consumer_group_describe import Member as DescribedMember
from kaspar.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kaspar.protocol.messages.describe_groups import DescribedGroup as DescribedClassicGroup
from kaspar.protocol.messages.heartbeat import HeartbeatRequest
from kaspar.protocol.messages.join_group import JoinGroupRequest
from kaspar.protocol.messages.leave_group import LeaveGroupRequest
from kaspar.protocol.messages.sync_group import SyncGroupRequest

FIRST_COMMIT_WITH_EPOCHS = 9
"""The first version of OffsetCommit that has the epochs of the consumer protocol."""
CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


class ConsumerGroup:
    kind = GroupKind.CONSUMER
    protocol_type: str | None = CONSUMER_PROTOCOL_TYPE
    is_awaited = False

    def __init__(self, group_id: str, context: ShardContext) -> None:
        self.group_id = group_id
        self.membership = ConsumerMembership(group_id, context)
        self._context = context

    @property
    def state_name(self) -> str:
        return self.membership.state.group_state.value

    @property
    def is_empty(self) -> bool:
        return self.membership.is_empty

    @property
    def yields_to_classic(self) -> bool:
        return self.membership.is_empty

    @property
    def member_count(self) -> int:
        return len(self.membership.state.members)

    # -- the consumer protocol -----------------------------------------------------------------------------------------

    def consumer_heartbeat(self, request: ConsumerGroupHeartbeatRequest, client: GroupClient, now: Now) -> Decision:
        if request.member_epoch >= JOINS:
            return requests.heartbeat(self.membership, request, client, now)
        return departures.leave(self.membership, request, now)

    def patterns_resolved(self, event: PatternsResolved, now: Now) -> Decision:
        return pattern_resolution.patterns_resolved(self.membership, event, now)

    def assignment_computed(self, event: AssignmentComputed, now: Now) -> Decision:
        return assigning.assignment_computed(self.membership, event, now)

    def consumer_describe(self) -> DescribedGroup:
        state = self.membership.state
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            group_epoch=state.group_epoch,
            assignment_epoch=state.assignment_epoch,
            assignor_name=self.membership.preferred_assignor(),
            members=tuple(self._described(member) for member in state.members.values()),
        )

    def _described(self, member: Member) -> DescribedMember:
        has = {
            topic_id: frozenset((*member.assigned.get(topic_id, ()), *member.pending_revocation.get(topic_id, ())))
            for topic_id in dict.fromkeys((*member.assigned, *member.pending_revocation))
        }
        target = self.membership.state.targets.get(member.member_id, NO_PARTITIONS)
        return DescribedMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
            subscribed_topic_regex=member.pattern,
            assignment=self._described_partitions(has),
            target_assignment=self._described_partitions(target),
            member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
        )

    def _described_partitions(self, partitions: Partitions) -> Assignment:
        """The partitions with their topics' names. Deleted topics have no name, and are left out."""
        name_of = self._context.topics.name_of
        return Assignment(
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, topic_name=name, partitions=tuple(sorted(numbers)))
                for topic_id, numbers in partitions.items()
                if (name := name_of(topic_id)) is not None
            )
        )

    # -- members that use the classic protocol -------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, client: GroupClient, ticket: Ticket, now: Now) -> Decision:
        return classic_members.join(self.membership, request, client, now)

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: Now) -> Decision:
        return classic_members.sync(self.membership, request, now)

    def heartbeat(self, request: HeartbeatRequest, now: Now) -> Decision:
        return classic_members.heartbeat(self.membership, request, now)

    def leave(self, request: LeaveGroupRequest, now: Now) -> Decision:
        return classic_members.leave(self.membership, request, now)

    def describe(self) -> DescribedClassicGroup:
        raise not_of_kind(self.group_id, GroupKind.CLASSIC)

    # -- offsets -------------------------------------------------------------------------------------------------------

    def check_offset_commit(self, committer: Committer, *, transactional: bool) -> PartitionCheck | None:
        """ConsumerGroup.validateOffsetCommit. A client without an epoch is not a member, and may commit while the group
        has no members; in a transaction, old clients send no member id. A member whose epoch is behind may commit the
        partitions that it has owned since that epoch (KIP-1251): its commit has crossed a heartbeat.
        """
        epoch, member_id = committer.generation_or_epoch, committer.member_id
        if epoch < 0 and self.is_empty:
            return None
        if transactional and epoch == -1 and not member_id and committer.instance_id is None:
            return None
        member = self.membership.member(member_id)
        if not transactional and not member.uses_classic_protocol and committer.api_version < FIRST_COMMIT_WITH_EPOCHS:
            raise Refused(
                ErrorCode.UNSUPPORTED_VERSION,
                f"OffsetCommit version {FIRST_COMMIT_WITH_EPOCHS} or above must be used by members using the consumer "
                "group protocol.",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise _stale_epoch(member, _mismatch(epoch, member))
        return lambda topic, topic_id, partition: self._check_partition(member, epoch, topic, topic_id, partition)

    def _check_partition(self, member: Member, epoch: int, topic: str, topic_id: uuid.UUID, partition: int) -> None:
        if topic_id == ZERO_UUID and (view := self._context.topic(topic)) is not None:
            topic_id = view.topic_id
        since = member.epoch_of(topic_id, partition)
        if since is None:
            raise _stale_epoch(member, f"Partition {topic}-{partition} is not assigned to member {member.member_id}.")
        if epoch < since:
            raise _stale_epoch(member, f"Epoch {epoch} is from before {topic}-{partition} was assigned, at {since}.")

    def offsets_committed(self, member_id: str, now: Now) -> None:
        """Ignored: only heartbeats extend the session of a member."""

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse another epoch than the member's. An admin tool, or a client that does not know epochs, sends none."""
        if member_id is None and member_epoch < 0:
            return
        member = self.membership.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _stale_epoch(member, _mismatch(member_epoch, member))

    def check_offset_delete(self) -> None:
        """Accept every request: members tell which topics they read, so offsets of others may always be deleted."""

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.membership.state.subscribers or any(
            topic in resolved.topics for resolved in self.membership.state.resolved.values()
        )

    def offsets_expire_from(self, topic: str, committed_at_ms: int) -> int | None:
        return None if self.is_subscribed_to(topic) else committed_at_ms

    # -- lifecycle -----------------------------------------------------------------------------------------------------

    def resume(self, now: Now) -> Decision:
        return departures.loaded(self.membership, now)

    def timer_fired(self, timer: GroupTimer, now: Now) -> Decision:
        return departures.timer_fired(self.membership, timer, now)

    def topics_changed(self, changed: Collection[str]) -> None:
        self.membership.topics_changed(changed)

    def check_delete(self) -> None:
        if not self.is_empty:
            raise group_not_empty(self.group_id)

    def tombstones(self) -> list[StoredRecord]:
        return self.membership.state.tombstones()

    # -- the log -------------------------------------------------------------------------------------------------------

    def replay(self, record: StoredRecord) -> None:
        self.membership.state.replay(record)

    @property
    def is_gone(self) -> bool:
        """Whether its last record was replayed: the shard then removes the group."""
        return self.membership.state.is_gone


def _stale_epoch(member: Member, message: str) -> Refused:
    code = ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
    return Refused(code, message)


def _mismatch(epoch: int, member: Member) -> str:
    return f"The received member epoch {epoch} does not match the expected member epoch {member.member_epoch}."


if TYPE_CHECKING:
    _is_a_group: type[Group] = ConsumerGroup
