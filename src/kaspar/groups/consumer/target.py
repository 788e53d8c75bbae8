"""The target of a consumer group: the assignment of each member, computed by an assignor and written to the log.

A large target is computed in a thread and not on the event loop, which it would block. Until the result comes back as
an event, the members continue with the last target.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from kaspar.coordination import StoredRecord
from kaspar.groups.consumer.assignors import ASSIGNORS, GroupAssignment, GroupSpec, MemberSpec
from kaspar.groups.consumer.member import NO_PARTITIONS, Member
from kaspar.groups.consumer.records import target_epoch_record, target_record
from kaspar.groups.consumer.state import ConsumerState
from kaspar.groups.context import ShardContext

INLINE_SIZE: Final = 1500
"""The number of members and partitions up to which computing an assignment takes about a millisecond."""


@dataclass(frozen=True, slots=True)
class AssignmentComputed:
    group_id: str
    epoch: int
    spec: GroupSpec
    assignment: GroupAssignment


@dataclass(frozen=True, slots=True)
class ComputeAssignment:
    """Computes an assignment. To be run in a thread unless it is small."""

    group_id: str
    epoch: int
    assignor: str
    spec: GroupSpec

    @property
    def is_small(self) -> bool:
        return len(self.spec.members) + sum(self.spec.partition_counts.values()) <= INLINE_SIZE

    def run(self) -> AssignmentComputed:
        assignment = ASSIGNORS[self.assignor](self.spec)
        return AssignmentComputed(self.group_id, self.epoch, self.spec, assignment)


def group_spec(state: ConsumerState, updated: Member, context: ShardContext) -> GroupSpec:
    """The group with a member that has changed or joined, possibly in place of a static member."""
    members: dict[str, MemberSpec] = {}
    counts: dict[uuid.UUID, int] = {}
    subscriptions: set[frozenset[str]] = set()
    replaced = state.static_ids.get(updated.instance_id) if updated.instance_id is not None else None
    for member in _with(state.members.values(), updated, replaced):
        names = state.topics_of(member)
        if names not in subscriptions:
            subscriptions.add(names)
            views = [view for name in names if (view := context.topic(name)) is not None]
            counts.update((view.topic_id, view.partition_count) for view in views)
        target = state.target_of(member.member_id, member.instance_id)
        members[member.member_id] = MemberSpec(context.topic_ids(names), target, member.instance_id)
    return GroupSpec(members, counts)


def _with(members: Iterable[Member], updated: Member, replaced: str | None) -> Iterable[Member]:
    is_new = True
    for member in members:
        if member.member_id == updated.member_id:
            is_new = False
            yield updated
        elif member.member_id != replaced:
            yield member
    if is_new:
        yield updated


def target_records(state: ConsumerState, computed: AssignmentComputed, timestamp_ms: int) -> list[StoredRecord]:
    """The targets that have changed, then the epoch. A member that has left since the computation needs no target. One
    that has joined since has none yet, and its join has begun another epoch.
    """
    records = []
    for member_id in computed.spec.members:
        target = computed.assignment.get(member_id, NO_PARTITIONS)
        if target != state.targets.get(member_id):
            records.append(target_record(state.group_id, member_id, target))
    records.append(target_epoch_record(state.group_id, computed.epoch, timestamp_ms))
    return records


def as_of_now(state: ConsumerState, computed: AssignmentComputed) -> AssignmentComputed:
    """The assignment for the current members: a static one may have rejoined under another id since it was computed."""
    members: dict[str, MemberSpec] = {}
    assignment: GroupAssignment = {}
    for member_id, member in computed.spec.members.items():
        current_id = member_id if member.instance_id is None else state.static_ids.get(member.instance_id, member_id)
        if current_id in state.members:
            members[current_id] = member
            assignment[current_id] = computed.assignment.get(member_id, NO_PARTITIONS)
    return replace(computed, spec=computed.spec._replace(members=members), assignment=assignment)
