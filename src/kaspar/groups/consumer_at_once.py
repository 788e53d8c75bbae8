"""Heartbeats of the consumer protocol that only say that their member lives, carried out without a decision being made.

Most of them come from a member that has all it is meant to have: its session goes on. When the group has a new target,
most come from a member whose part of it is what it has: it moves on to the epoch of the target, and that is one record.
Wherever else something is to be done (a partition to give up or to take, a new target, a pattern, another client) it is
for `consumer_requests` to say; then nothing has happened here but that a session goes on.
"""

import struct
from typing import Final

from kaspar.coordination import Now, OneRecord
from kaspar.groups import records
from kaspar.groups.consumer import ConsumerGroup
from kaspar.groups.consumer_member import JOINS, NO_PARTITIONS, NOTHING_OWNED, Member, OwnedPartitions
from kaspar.groups.consumer_records import current_record
from kaspar.groups.consumer_requests import NOT_SAID
from kaspar.groups.consumer_states import MemberState
from kaspar.groups.group import Group
from kaspar.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

# What the record of a current assignment begins with: version, epoch, the epoch before, state.
_NUMBERS = struct.Struct(">hiib")
_VERSION: Final = 0

_new = tuple.__new__  # a named tuple's own constructor takes three times as long


class PlainHeartbeat:
    """All that is known of such a heartbeat before its epoch comes, and the last record that was made of one."""

    __slots__ = ("_assigned", "_key", "_rest_of_value", "client_host", "client_id", "group_id", "member_id")

    def __init__(self, group_id: str, member_id: str, client_id: str, client_host: str) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.client_id = client_id
        self.client_host = client_host
        self._assigned: OwnedPartitions | None = None
        self._key = self._rest_of_value = b""

    def record(self, moved: Member) -> tuple[bytes, bytes]:
        """As `current_record` has it. What the member has is written again only if it is something else."""
        if moved.assigned is not self._assigned:
            self._key, value = records.encode(current_record(self.group_id, moved))
            assert value is not None
            self._rest_of_value = value[_NUMBERS.size :]
            self._assigned = moved.assigned
        numbers = _NUMBERS.pack(_VERSION, moved.member_epoch, moved.previous_member_epoch, moved.state.value)
        return self._key, numbers + self._rest_of_value


def says_nothing(request: ConsumerGroupHeartbeatRequest) -> bool:
    """But that its member, which is no static one, lives."""
    return (
        request.topic_partitions is None
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == NOT_SAID
        and request.server_assignor is None
        and request.rack_id is None
        and request.instance_id is None
        and request.member_epoch > JOINS
    )


def live_on(group: Group | None, heartbeat: PlainHeartbeat, epoch: int, now: Now) -> bool:
    """The member has all it is meant to have: whether that is so, and its session goes on."""
    if type(group) is not ConsumerGroup or epoch != group.state.assignment_epoch:
        return False
    return _undisturbed(group, heartbeat, epoch) is not None and _session_goes_on(group, heartbeat, now)


def move_on(group: Group | None, heartbeat: PlainHeartbeat, epoch: int, now: Now) -> OneRecord | None:
    """The member is at an epoch before the target's, and has what that says: the record that takes it there."""
    if type(group) is not ConsumerGroup or epoch >= group.state.assignment_epoch:
        return None
    member = _undisturbed(group, heartbeat, epoch)
    if member is None or not _has_its_target(group, member) or not _session_goes_on(group, heartbeat, now):
        return None
    state = group.state
    moved = member.moved(state.assignment_epoch, epoch, MemberState.STABLE, member.assigned, NOTHING_OWNED)
    key, value = heartbeat.record(moved)
    return _new(OneRecord, (key, value, lambda: state.move_on(moved)))


def _undisturbed(group: ConsumerGroup, heartbeat: PlainHeartbeat, epoch: int) -> Member | None:
    """The member, if all that is to be known for its heartbeat is its target."""
    state = group.state
    member = state.members.get(heartbeat.member_id)
    if (
        member is None
        or epoch != member.member_epoch
        or epoch <= JOINS
        or member.state is not MemberState.STABLE
        or state.group_epoch != state.assignment_epoch
        or group.has_to_look_at_topics
        or state.pattern_subscribers
        or member.instance_id is not None
        or member.classic is not None
        or member.client_id != heartbeat.client_id
        or member.client_host != heartbeat.client_host
    ):
        return None
    return member


def _has_its_target(group: ConsumerGroup, member: Member) -> bool:
    target, assigned = group.state.targets.get(member.member_id, NO_PARTITIONS), member.assigned
    if target.keys() != assigned.keys() or not target.keys() <= group.topic_ids_of(member):
        return False
    for topic_id, partitions in target.items():
        if assigned[topic_id].keys() != partitions:
            return False
    return not group.timers.awaits_revocation(member.member_id)


def _session_goes_on(group: ConsumerGroup, heartbeat: PlainHeartbeat, now: Now) -> bool:
    timeout_ms = group.surroundings.session_timeout_ms(group.group_id)
    return group.timers.move_session(heartbeat.member_id, timeout_ms, now)
