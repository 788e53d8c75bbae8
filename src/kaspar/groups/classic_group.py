"""A group of the classic protocol, as its shard uses it: ClassicGroup and its part of GroupMetadataManager in Kafka.

Its state is in `membership`, the rules of its requests in `requests`, those of a rebalance in `rebalance`.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_TIMESTAMP
from kaspar.coordination import Decision, Now, Reply, StoredRecord, Ticket
from kaspar.groups.classic import rebalance, requests
from kaspar.groups.classic.membership import ClassicMembership
from kaspar.groups.classic.state import ClassicState
from kaspar.groups.consumer import requests as consumer_requests
from kaspar.groups.consumer.member import JOINS
from kaspar.groups.consumer.migration import DOWNGRADED, DOWNGRADED_AND_REBALANCES
from kaspar.groups.context import ShardContext
from kaspar.groups.group import (
    Committer,
    Group,
    GroupClient,
    GroupKind,
    GroupTimer,
    group_not_empty,
    not_of_kind,
    unknown_member,
)
from kaspar.groups.records import GroupMetadataValue
from kaspar.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from kaspar.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kaspar.protocol.messages.describe_groups import DescribedGroup
from kaspar.protocol.messages.heartbeat import HeartbeatRequest
from kaspar.protocol.messages.join_group import JoinGroupRequest
from kaspar.protocol.messages.leave_group import LeaveGroupRequest
from kaspar.protocol.messages.sync_group import SyncGroupRequest


class ClassicGroup:
    kind = GroupKind.CLASSIC
    yields_to_classic = False

    def __init__(self, group_id: str, context: ShardContext) -> None:
        self.group_id = group_id
        self.membership = ClassicMembership(group_id, context.settings)
        self._context = context

    @classmethod
    def restored(cls, group_id: str, context: ShardContext, value: GroupMetadataValue) -> "ClassicGroup":
        """The group as stored in the log. No request waits."""
        group = cls(group_id, context)
        group.membership.restore(value)
        return group

    @property
    def state_name(self) -> str:
        return self.membership.state.value

    @property
    def is_empty(self) -> bool:
        return self.membership.is_empty

    @property
    def is_awaited(self) -> bool:
        return bool(self.membership.roster.pending)

    @property
    def protocol_type(self) -> str | None:
        return self.membership.protocol_type

    @property
    def member_count(self) -> int:
        return len(self.membership.roster)

    # -- the classic protocol ------------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, client: GroupClient, ticket: Ticket, now: Now) -> Decision:
        return requests.join(self.membership, request, client, ticket, now)

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: Now) -> Decision:
        return requests.sync(self.membership, request, ticket, now)

    def heartbeat(self, request: HeartbeatRequest, now: Now) -> Decision:
        return requests.heartbeat(self.membership, request, now)

    def leave(self, request: LeaveGroupRequest, now: Now) -> Decision:
        return requests.leave(self.membership, request, now)

    def refuse_waiting(self, code: ErrorCode) -> Sequence[Reply]:
        return self.membership.refuse_waiting(code)

    def describe(self) -> DescribedGroup:
        membership = self.membership
        stable_protocol = membership.protocol_name if membership.state is ClassicState.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=membership.protocol_type or "",
            protocol_data=stable_protocol or "",
            members=tuple(member.described(stable_protocol) for member in membership.roster),
        )

    # -- the consumer protocol -----------------------------------------------------------------------------------------

    def consumer_heartbeat(self, request: ConsumerGroupHeartbeatRequest, client: GroupClient, now: Now) -> Decision:
        """Upgrade the group for a member that joins with the consumer protocol, if an upgrade is allowed."""
        if request.member_epoch != JOINS:
            raise not_of_kind(self.group_id, GroupKind.CONSUMER)
        return consumer_requests.join_classic_group(self.membership, request, client, now, self._context)

    def consumer_describe(self) -> DescribedConsumerGroup:
        raise not_of_kind(self.group_id, GroupKind.CONSUMER)

    # -- offsets -------------------------------------------------------------------------------------------------------

    def check_offset_commit(self, committer: Committer, *, transactional: bool) -> None:
        """ClassicGroup.validateOffsetCommit. Transactional commits of old clients contain no member id."""
        membership = self.membership
        generation_id, is_empty = committer.generation_or_epoch, membership.state is ClassicState.EMPTY
        if generation_id < 0 and is_empty:
            return
        if generation_id >= 0 or committer.member_id or committer.instance_id is not None:
            membership.member(committer.member_id, committer.instance_id)
            membership.check_generation(generation_id)
        elif not transactional and not is_empty:
            raise unknown_member(self.group_id, committer.member_id)
        if not transactional and membership.state is ClassicState.COMPLETING_REBALANCE:
            raise Refused(ErrorCode.REBALANCE_IN_PROGRESS, f"Group {self.group_id} is rebalancing.")

    def offsets_committed(self, member_id: str, now: Now) -> None:
        """Extend the session of the member, as a heartbeat does."""
        membership = self.membership
        member = membership.roster.get(member_id)
        if member is not None and membership.state in (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE):
            member.deadline_ms = now.steady_ms + member.session_timeout_ms

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Accept every request: any client may read the committed offsets of a classic group."""

    def check_offset_delete(self) -> None:
        """Refused if the group has members that are not consumers. Only consumers tell which topics they read, so that
        offsets of other topics can be deleted while they are members.
        """
        if not self.is_empty and not self.membership.uses_consumer_protocol:
            raise group_not_empty(self.group_id)

    def is_subscribed_to(self, topic: str) -> bool:
        topics = self.membership.subscribed_topics
        return self.membership.uses_consumer_protocol if topics is None else topic in topics

    def offsets_expire_from(self, topic: str, committed_at_ms: int) -> int | None:
        if self.protocol_type is None:
            return committed_at_ms
        if self.is_subscribed_to(topic):
            return None
        if self.is_empty:
            since_ms = self.membership.state_timestamp_ms
            return committed_at_ms if since_ms == NO_TIMESTAMP else since_ms
        if self.membership.state is ClassicState.STABLE and self.membership.subscribed_topics is not None:
            return committed_at_ms
        return None

    # -- lifecycle -----------------------------------------------------------------------------------------------------

    def resume(self, now: Now) -> Decision:
        decision = Decision()
        rebalance.resume(self.membership, now, decision)
        return decision

    def timer_fired(self, timer: GroupTimer, now: Now) -> Decision:
        """Handle a timer. Timers that were set while this group was a consumer group have no effect."""
        if timer.name not in (DOWNGRADED, DOWNGRADED_AND_REBALANCES):
            return rebalance.timer_fired(self.membership, timer, now)
        decision = self.resume(now)
        if timer.name == DOWNGRADED_AND_REBALANCES:
            reason = "the group was downgraded from a consumer group"
            rebalance.maybe_prepare_rebalance(self.membership, reason, now, decision)
        return decision

    def topics_changed(self, changed: Collection[str]) -> None:
        """Ignored: the leader watches the topics, and the broker does not assign partitions."""

    def check_delete(self) -> None:
        if not self.is_empty:
            raise group_not_empty(self.group_id)

    def tombstones(self) -> list[StoredRecord]:
        return self.membership.tombstones()

    # -- the log -------------------------------------------------------------------------------------------------------

    def new_group_record(self, now: Now) -> StoredRecord:
        return self.membership.new_group_record(now)

    def replay(self, value: GroupMetadataValue) -> bool:
        """Apply a record. Returns whether it completes a rebalance."""
        was_rebalancing = self.membership.state is ClassicState.COMPLETING_REBALANCE
        self.membership.replay(value)
        return was_rebalancing and self.membership.state is ClassicState.STABLE

    def replay_tombstone(self) -> None:
        self.membership.replay_tombstone()


if TYPE_CHECKING:
    _is_a_group: type[Group] = ClassicGroup
