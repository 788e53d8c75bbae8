"""What a request of a member changes in its group, step by step, for both protocols.

The steps have the order of Kafka's, because it is the order of the records: the member, its pattern, the group's epoch,
the target, the current assignment. A step reads the state and the results of the steps before; it writes only to the
decision.
"""

import enum
from collections.abc import Iterable
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.coordination import AnyRecord, Decision, Now
from kaspar.groups.consumer.member import JOINS, NO_PARTITIONS, Member, Partitions
from kaspar.groups.consumer.membership import ConsumerMembership
from kaspar.groups.consumer.pattern_resolution import maybe_resolve
from kaspar.groups.consumer.patterns import ResolvePatterns, problem_with
from kaspar.groups.consumer.reconciliation import Goal, reconcile
from kaspar.groups.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    partition_metadata_tombstone,
    pattern_tombstone,
    target_record,
)
from kaspar.groups.consumer.states import MemberState
from kaspar.groups.consumer.target import ComputeAssignment, group_spec, target_records
from kaspar.groups.group import GroupClient
from kaspar.protocol.messages.consumer_group_heartbeat import RequestTopicPartitions

NOTHING_COMPUTED = 0


class MemberTarget(NamedTuple):
    """The target of one member, and its assignment epoch."""

    epoch: int
    partitions: Partitions


class PatternChange(enum.Enum):
    NONE = enum.auto()
    UNRESOLVED = enum.auto()
    """Changed, and the new one is not resolved yet: the epoch is bumped when it is."""
    RESOLVED = enum.auto()
    """Changed, and the topics of the new one are known."""


class MemberUpdate:
    def __init__(self, group: ConsumerMembership, client: GroupClient, now: Now) -> None:
        self.group = group
        self.client = client
        self.state = group.state
        self.context = group.context
        self.now = now
        self.decision = Decision(if_refused=self._refused)

    def _refused(self, code: ErrorCode, now: Now) -> Decision:
        """Clear the notes of the threads' work that will not be done, since the log has refused the decision."""
        for action in self.decision.actions:
            if isinstance(action, ResolvePatterns):
                self.context.resolving.discard(action.group_id)
            else:
                self.context.computing.pop(action.group_id, None)
        return Decision()

    # -- the member ----------------------------------------------------------------------------------------------------

    def check_room(self, member_id: str) -> None:
        most = self.context.settings.group_consumer_max_size
        if len(self.state.members) >= most and member_id not in self.state.members:
            raise Refused(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {most} members.",
            )

    def known_or_new(self, member_id: str) -> Member:
        return self.state.members.get(member_id) or Member(member_id)

    def replace_static(self, old: Member, member_id: str) -> Member:
        """Replace a static member that rejoins under another id. It keeps its partitions, and begins at the first
        epoch. When timers of the old id fire, they find no member.
        """
        group_id = self.group.group_id
        member = old._replace(member_id=member_id, member_epoch=JOINS, previous_member_epoch=JOINS)
        self.decision.add_records(member_tombstones(group_id, old.member_id))
        self.decision.add_record(member_record(group_id, member))
        target = self.state.targets.get(old.member_id, NO_PARTITIONS)
        self.decision.add_record(target_record(group_id, member_id, target))
        self.decision.add_record(current_record(group_id, member))
        return member

    def write_member(self, member: Member, updated: Member) -> bool:
        """Write the member if it has changed. Returns whether its topic names have changed."""
        if updated is member or updated == member:
            return False
        self.decision.add_record(member_record(self.group.group_id, updated))
        return updated.subscribed_topic_names != member.subscribed_topic_names

    # -- its pattern ---------------------------------------------------------------------------------------------------

    def change_pattern(self, member: Member, updated: Member) -> PatternChange:
        """Handle a change of the member's pattern. One that no other member has is checked, and resolved together with
        all other patterns of the group, so that there is one rebalance and not one for each.
        """
        subscribers, old, new = self.state.pattern_subscribers, member.pattern, updated.pattern
        change = PatternChange.NONE
        if not (subscribers or new):
            return change  # no member has a pattern, as is nearly always the case
        if new != old:
            change = PatternChange.UNRESOLVED
            if old and subscribers.get(old) == 1:
                self.decision.add_record(pattern_tombstone(self.group.group_id, old))
            if new and new not in subscribers:
                _check_pattern(new)
            elif new in self.state.resolved or (old and not new):
                change = PatternChange.RESOLVED
        patterns = _with_change(subscribers, old, new)
        maybe_resolve(self.group, patterns, self.client.describes, self.now, self.decision)
        return change

    # -- the group's epoch ---------------------------------------------------------------------------------------------

    def look_at_topics(self, member: Member, updated: Member, *, bump: bool) -> int:
        """Check the topics. Returns the group's epoch, which is bumped if a new assignment is due."""
        state, group_id = self.state, self.group.group_id
        epoch = state.group_epoch
        metadata_hash = self.context.metadata_hash(state.subscribed_topics_with(member, updated))
        if bump or metadata_hash != state.metadata_hash:
            epoch += 1
            self.decision.add_record(epoch_record(group_id, epoch, metadata_hash))
        self.group.looked_at_topics(epoch)
        if state.has_partition_metadata:
            self.decision.add_record(partition_metadata_tombstone(group_id))
        return epoch

    # -- the target ----------------------------------------------------------------------------------------------------

    def target_for(self, member: Member, updated: Member, epoch: int) -> MemberTarget:
        """The target of the member and its epoch. A new one is computed if the group's epoch is ahead of the last
        target, and the assignment interval has passed.
        """
        state, group_id = self.state, self.group.group_id
        last = self.last_target(updated)
        if epoch <= state.assignment_epoch or self._was_assigned_just_now():
            return last
        if self.context.computing.get(group_id, NOTHING_COMPUTED) >= epoch:
            return last
        compute = ComputeAssignment(
            group_id,
            epoch,
            self._preferred_assignor(member, updated),
            group_spec(state, updated, self.context),
        )
        if compute.is_small:
            computed = compute.run()
            self.decision.add_records(target_records(state, computed, self.now.wall_ms))
            return MemberTarget(epoch, computed.assignment.get(updated.member_id, NO_PARTITIONS))
        self.context.computing[group_id] = epoch
        self.decision.add_action(compute)
        return last

    def last_target(self, member: Member) -> MemberTarget:
        state = self.state
        return MemberTarget(state.assignment_epoch, state.target_of(member.member_id, member.instance_id))

    def _was_assigned_just_now(self) -> bool:
        """Whether the assignment interval has not passed yet, by the wall clock, whose time is in the log. A clock that
        went back delays nothing.
        """
        interval_ms = self.context.assignment_interval_ms(self.group.group_id)
        return 0 <= self.now.wall_ms - self.state.assignment_timestamp_ms < interval_ms

    def _preferred_assignor(self, member: Member, updated: Member) -> str:
        counts = dict(self.state.assignors)
        for asked, step in ((member.server_assignor, -1), (updated.server_assignor, 1)):
            if asked is not None:
                counts[asked] = counts.get(asked, 0) + step
        return self.group.preferred_assignor(counts)

    # -- the current assignment ----------------------------------------------------------------------------------------

    def reconcile(
        self,
        member: Member,
        target: MemberTarget,
        *,
        subscription_changed: bool,
        owned: Iterable[RequestTopicPartitions] | None,
    ) -> Member:
        epoch, partitions = target
        if not subscription_changed and member.is_reconciled_to(epoch):
            return member
        goal = Goal(
            epoch=epoch,
            target=partitions,
            subscribed=self.group.topic_ids_of(member),
            subscription_changed=subscription_changed,
            is_owned=self.state.is_owned,
            owned=owned,
        )
        reconciled = reconcile(member, goal)
        if reconciled != member:
            self.decision.add_record(self._current_record(member, reconciled))
            if not reconciled.uses_classic_protocol:
                if reconciled.state is MemberState.UNREVOKED_PARTITIONS:
                    self.group.timers.await_revocation(reconciled, self.now, self.decision)
                else:
                    self.group.timers.end_revocation(reconciled.member_id, self.decision)
        return reconciled

    def _current_record(self, member: Member, reconciled: Member) -> AnyRecord:
        """The record of the member's new current assignment. The fast path needs a member that is in the group as it
        was before the request, so that no other record of this decision writes it. The group is then neither new nor
        being converted, which would give it another state object on replay: a request creates or converts a group only
        by a join.
        """
        if (
            reconciled.assigned is member.assigned
            and reconciled.pending_revocation is member.pending_revocation
            and self.state.members.get(member.member_id) is member
        ):
            return self.group.current_records.record(reconciled, self.state.replay_move)
        return current_record(self.group.group_id, reconciled)


def _check_pattern(pattern: str) -> None:
    problem = problem_with(pattern)
    if problem is not None:
        raise Refused(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {problem}.",
        )


def _with_change(subscribers: dict[str, int], old: str, new: str) -> frozenset[str]:
    """The group's patterns after a member has changed from one to another. An empty string is no pattern."""
    patterns = set(subscribers)
    if old and subscribers.get(old) == 1:
        patterns.discard(old)
    if new:
        patterns.add(new)
    return frozenset(patterns)
