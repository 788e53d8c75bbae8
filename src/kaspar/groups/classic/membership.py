"""The members, the generation and the state of a classic group. Requests and rebalances operate on it.

`stored` is the last stable generation, as in the log. A restart restores nothing else, and only `restore` and `replay`
write it. Everything else (who has rejoined, requests that wait, deadlines) is not durable. Rules kept here:
- the state changes only as `TRANSITIONS` allows;
- a group is Stable if and only if its members and their assignments are those of `stored`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.ids import NO_TIMESTAMP
from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import Decision, Now, Reply, StoredRecord
from kaspar.groups.classic.member import NO_ASSIGNMENT, ClassicMember
from kaspar.groups.classic.refusals import join_refused, sync_refused
from kaspar.groups.classic.roster import Roster
from kaspar.groups.classic.state import TRANSITIONS, ClassicState
from kaspar.groups.group import CONSUMER_PROTOCOL_TYPE, fenced_instance, unknown_member
from kaspar.groups.records import GroupMetadataKey, GroupMetadataValue
from kaspar.protocol.consumer_protocol import read_subscription
from kaspar.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from kaspar.protocol.messages.sync_group import SyncGroupResponse


class InitialDelay(NamedTuple):
    """The first rebalance of an empty group waits for more members: `delay_ms` now, then, if a member joined meanwhile,
    the same again, until `remaining_ms` is used up.
    """

    delay_ms: int
    remaining_ms: int


class Replacement(NamedTuple):
    """A static member that rejoins under another id while the group is stable. Takes effect once it is in the log."""

    old_id: str
    member: ClassicMember


class ClassicMembership:
    def __init__(self, group_id: str, settings: GroupSettings) -> None:
        self.group_id = group_id
        self.settings = settings
        self.state = ClassicState.EMPTY
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.state_timestamp_ms = NO_TIMESTAMP
        """Wall-clock time at which the group entered its state. The offsets of an empty group expire from then on."""
        self.roster = Roster()
        self.stored: GroupMetadataValue | None = None
        self.initial_delay: InitialDelay | None = None
        self.member_came_while_waiting = False
        self.replacement: Replacement | None = None
        self._subscriptions: tuple[bytes, ...] = ()
        """The subscriptions of this generation's members, decoded when they are needed."""
        self._has_read_subscriptions = True
        self._subscribed_topics: frozenset[str] | None = None

    # -- the log -------------------------------------------------------------------------------------------------------

    def new_group_record(self, now: Now) -> StoredRecord:
        """The record that creates the group, before it has a generation."""
        self.state_timestamp_ms = now.wall_ms
        value = GroupMetadataValue(
            protocol_type="",
            generation=0,
            protocol=None,
            leader=None,
            current_state_timestamp=self.state_timestamp_ms,
            members=(),
        )
        return StoredRecord(GroupMetadataKey(group=self.group_id), value)

    def record(
        self, members: Iterable[ClassicMember], leader_id: str | None, assignments: Mapping[str, bytes]
    ) -> StoredRecord:
        """The group's record with these members. A member that the leader left out is assigned nothing."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=leader_id,
            current_state_timestamp=self.state_timestamp_ms,
            members=tuple(
                member.as_stored(self.protocol_name, assignments.get(member.member_id, NO_ASSIGNMENT))
                for member in members
            ),
        )
        return StoredRecord(GroupMetadataKey(group=self.group_id), value)

    def tombstones(self) -> list[StoredRecord]:
        return [StoredRecord(GroupMetadataKey(group=self.group_id), None)]

    def restore(self, value: GroupMetadataValue) -> None:
        """Set the group to the state in this record while the log is loaded. No request waits."""
        self.stored = value
        self.generation_id = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol_name = value.protocol
        self.state_timestamp_ms = value.current_state_timestamp
        for stored in value.members:
            self.roster.add(ClassicMember.restored(stored, value.protocol_type, value.protocol))
        self.roster.leader_id = value.leader
        self.state = ClassicState.STABLE if value.members else ClassicState.EMPTY
        self._remember_subscriptions()

    def replay(self, value: GroupMetadataValue) -> None:
        """Apply a record that this group decided on and that is now in the log. A record without members is that of a
        group that is already empty, or new; one with members has their assignments.
        """
        self.stored = value
        if not value.members:
            return
        if self.replacement is not None:
            self.roster.replace(*self.replacement)
            self.replacement = None
        for stored in value.members:
            self.roster[stored.member_id].assignment = stored.assignment
        if self.state is not ClassicState.STABLE:
            self._enter(ClassicState.STABLE)

    def replay_tombstone(self) -> None:
        self._enter(ClassicState.DEAD)

    # -- states --------------------------------------------------------------------------------------------------------

    def transition_to(self, state: ClassicState, now: Now) -> None:
        self._enter(state)
        self.state_timestamp_ms = now.wall_ms

    def _enter(self, state: ClassicState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state.value} to {state.value}"
        self.state = state

    def begin_generation(self, now: Now) -> None:
        """Begin the next generation: all members have joined. An empty group begins a generation as well."""
        self.generation_id += 1
        self.roster.pending_sync.clear()
        if len(self.roster):
            self.protocol_name = self.roster.elect_protocol()
            self.transition_to(ClassicState.COMPLETING_REBALANCE, now)
        else:
            self.protocol_name = None
            self.transition_to(ClassicState.EMPTY, now)
        self._remember_subscriptions()

    def _remember_subscriptions(self) -> None:
        self._has_read_subscriptions = False
        protocol = self.protocol_name
        self._subscriptions = () if protocol is None else tuple(member.protocols[protocol] for member in self.roster)

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics that the members read. None if they are not consumers, or if a subscription cannot be decoded."""
        if not self._has_read_subscriptions:
            self._has_read_subscriptions = True
            self._subscribed_topics = self._read_subscriptions()
        return self._subscribed_topics

    def _read_subscriptions(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        try:
            return frozenset(
                topic for subscription in self._subscriptions for topic in read_subscription(subscription).topics
            )
        except MalformedBytes:
            return None

    # -- replies to members -------------------------------------------------------------------------------------------

    def reply_to_join(self, member: ClassicMember, response: JoinGroupResponse, decision: Decision) -> None:
        """Reply to the member's JoinGroup, if one waits."""
        ticket = self.roster.await_join(member, None)
        if ticket is not None:
            decision.add_reply(ticket, response)

    def reply_to_sync(self, member: ClassicMember, response: SyncGroupResponse, decision: Decision) -> None:
        ticket, member.awaiting_sync = member.awaiting_sync, None
        if ticket is not None:
            decision.add_reply(ticket, response)

    def refuse_waiting(self, code: ErrorCode) -> Sequence[Reply]:
        """Refuse all requests that wait: the group has been converted, or was never created."""
        decision = Decision()
        for member in self.roster:
            self.reply_to_join(member, join_refused(code, member.member_id), decision)
            self.reply_to_sync(member, sync_refused(code), decision)
        return decision.replies

    def joined_members(self) -> tuple[JoinGroupResponseMember, ...]:
        """All members with their metadata, which the leader needs to assign partitions."""
        assert self.protocol_name is not None
        return tuple(member.as_joined(self.protocol_name) for member in self.roster)

    # -- members -------------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Return the member. Refused if there is none with this id, or if the static member has another id by now."""
        if instance_id is not None:
            current = self.roster.static_id(instance_id)
            if current is None:
                raise unknown_member(self.group_id, member_id)
            if current != member_id:
                raise fenced_instance(instance_id, member_id, current)
        member = self.roster.get(member_id)
        if member is None:
            raise unknown_member(self.group_id, member_id)
        return member

    def check_generation(self, generation_id: int) -> None:
        if generation_id != self.generation_id:
            raise Refused(
                ErrorCode.ILLEGAL_GENERATION,
                f"Group {self.group_id} is at generation {self.generation_id}, not {generation_id}.",
            )
