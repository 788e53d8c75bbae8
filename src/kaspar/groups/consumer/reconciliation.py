"""One step of a member from its current assignment towards its target.

The most important rule: no member gets a partition before its last owner has reported that it gave it up, or has left.
So a member first gives up partitions, at its old epoch. Then it moves to the epoch of the target and takes the free
partitions, and the others as they become free.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.groups.consumer.member import NOTHING_OWNED, Member, OwnedPartitions, Partitions
from kaspar.groups.consumer.states import MEMBER_TRANSITIONS, MemberState
from kaspar.protocol.messages.consumer_group_heartbeat import RequestTopicPartitions

_NONE: Final[Mapping[int, int]] = {}


class Goal(NamedTuple):
    """The target of a member, and what the member reported. `owned` is None if it reported no partitions."""

    epoch: int
    target: Partitions
    subscribed: Collection[uuid.UUID]
    subscription_changed: bool
    is_owned: Callable[[uuid.UUID, int], bool]
    owned: Iterable[RequestTopicPartitions] | None


def reconcile(member: Member, goal: Goal) -> Member:
    """Take one step. Returns the same member if no step is possible now."""
    stepped = _step(member, goal)
    assert stepped.state in MEMBER_TRANSITIONS[member.state], f"{member.state.name} to {stepped.state.name}"
    return stepped


def _step(member: Member, goal: Goal) -> Member:
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch != goal.epoch:
                return _towards_target(member, goal, epoch_until_revoked=member.member_epoch)
            return _without_unsubscribed(member, goal) if goal.subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if _may_own(goal.owned, member.pending_revocation):
                return _without_unsubscribed(member, goal) if goal.subscription_changed else member
            return _towards_target(member, goal, epoch_until_revoked=member.member_epoch)
        case MemberState.UNRELEASED_PARTITIONS:
            return _towards_target(member, goal, epoch_until_revoked=member.member_epoch)
        case MemberState.UNKNOWN:
            if goal.owned is None or any(True for _ in goal.owned):
                raise Refused(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    f"Member {member.member_id} is in a state that is not known here: it must give up all partitions "
                    "and join again.",
                )
            return _towards_target(member, goal, epoch_until_revoked=goal.epoch)


def _towards_target(member: Member, goal: Goal, *, epoch_until_revoked: int) -> Member:
    if _has_target(member, goal):
        return _at_epoch(member, goal.epoch, MemberState.STABLE, member.assigned, NOTHING_OWNED)
    subscribed = goal.subscribed
    assigned: dict[uuid.UUID, Mapping[int, int]] = {}
    to_revoke: dict[uuid.UUID, dict[int, int]] = {}
    to_assign: dict[uuid.UUID, list[int]] = {}
    waits = False
    for topic_id in dict.fromkeys((*goal.target, *member.assigned)):
        current = member.assigned.get(topic_id, _NONE)
        target = goal.target.get(topic_id, frozenset()) if topic_id in subscribed else frozenset()
        if current.keys() == target:
            if current:
                assigned[topic_id] = current
            continue
        kept = {partition: epoch for partition, epoch in current.items() if partition in target}
        if kept:
            assigned[topic_id] = kept
        if len(kept) < len(current):
            to_revoke[topic_id] = {partition: epoch for partition, epoch in current.items() if partition not in target}
        given_up = member.pending_revocation.get(topic_id, {})
        for partition in sorted(target - kept.keys()):
            # Partitions that it had to give up itself are still its own: no other member can have them yet.
            if goal.is_owned(topic_id, partition) and partition not in given_up:
                waits = True
            else:
                to_assign.setdefault(topic_id, []).append(partition)
    if to_revoke and _may_own(goal.owned, to_revoke):
        return _at_epoch(member, epoch_until_revoked, MemberState.UNREVOKED_PARTITIONS, assigned, to_revoke)
    for topic_id, partitions in to_assign.items():
        assigned[topic_id] = {**assigned.get(topic_id, _NONE), **dict.fromkeys(partitions, goal.epoch)}
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return _at_epoch(member, goal.epoch, state, assigned, NOTHING_OWNED)


def _has_target(member: Member, goal: Goal) -> bool:
    """Whether it already has its whole target, in the same order, as is nearly always the case."""
    assigned, target = member.assigned, goal.target
    if [*assigned] != [*target]:
        return False
    for topic_id, partitions in target.items():
        if assigned[topic_id].keys() != partitions or topic_id not in goal.subscribed:
            return False
    return True


def _without_unsubscribed(member: Member, goal: Goal) -> Member:
    """Give up the partitions that the member no longer subscribes to, before there is a new target."""
    subscribed = goal.subscribed
    dropped = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in subscribed}
    if not dropped:
        return member
    kept = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in dropped}
    to_revoke = {
        topic_id: {**member.pending_revocation.get(topic_id, {}), **dropped.get(topic_id, {})}
        for topic_id in dict.fromkeys((*member.pending_revocation, *dropped))
    }
    if _may_own(goal.owned, to_revoke):
        return _at_epoch(member, member.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, to_revoke)
    return _at_epoch(member, member.member_epoch, member.state, kept, member.pending_revocation)


def _at_epoch(
    member: Member, epoch: int, state: MemberState, assigned: OwnedPartitions, pending_revocation: OwnedPartitions
) -> Member:
    return member.moved(epoch, member.member_epoch, state, assigned, pending_revocation)


def _may_own(owned: Iterable[RequestTopicPartitions] | None, partitions: OwnedPartitions) -> bool:
    """Whether the member may still have one of these partitions, according to its last report."""
    if owned is None:
        return True
    return any(
        partition in partitions[topic.topic_id]
        for topic in owned
        if topic.topic_id in partitions
        for partition in topic.partitions
    )
