"""A group of the classic protocol: its state, its members, its record in the log, and what it allows.

What the log has of a group is its last stable generation, `stored`: that is all that a restart brings back, and
`replay` alone writes it. Everything else (who has joined again, who waits for what, deadlines) is of the moment. The
rules of the protocol are in `classic_requests` and `classic_rebalance`; this is what they work on, and keep true:
- the state goes from one to another only as `TRANSITIONS` has it;
- a group is Stable if and only if its members and their assignments are those of `stored`.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.ids import NO_TIMESTAMP
from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import Decision, Now, Reply, StoredRecord
from kaspar.groups.classic_answers import join_refused, sync_refused
from kaspar.groups.classic_member import NO_ASSIGNMENT, ClassicMember
from kaspar.groups.classic_roster import Roster
from kaspar.groups.classic_state import TRANSITIONS, ClassicState
from kaspar.groups.consumer_protocol import read_subscription
from kaspar.groups.group import (
    CONSUMER_PROTOCOL_TYPE,
    Group,
    GroupKind,
    fenced_instance,
    group_not_empty,
    unknown_member,
)
from kaspar.groups.records import GroupMetadataKey, GroupMetadataValue
from kaspar.protocol.messages.describe_groups import DescribedGroup
from kaspar.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from kaspar.protocol.messages.sync_group import SyncGroupResponse

_new = tuple.__new__  # a named tuple's own constructor takes three times as long


class InitialDelay(NamedTuple):
    """The first rebalance of an empty group waits for more members: `delay_ms` now, then, if somebody came, for as long
    again, as far as `remaining_ms` goes.
    """

    delay_ms: int
    remaining_ms: int


class Replacement(NamedTuple):
    """A static member that comes back under another id while the group is stable: done once it is in the log."""

    old_id: str
    member: ClassicMember


class ClassicGroup:
    kind = GroupKind.CLASSIC

    def __init__(self, group_id: str, settings: GroupSettings) -> None:
        self.group_id = group_id
        self.settings = settings
        self.state = ClassicState.EMPTY
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.state_timestamp_ms = NO_TIMESTAMP
        """Since when it is in its state (wall clock): the offsets of an empty group expire from then on."""
        self.roster = Roster()
        self.stored: GroupMetadataValue | None = None
        self.initial_delay: InitialDelay | None = None
        self.member_came_while_waiting = False
        self.replacement: Replacement | None = None
        self._subscriptions: tuple[bytes, ...] = ()
        """What the members of this generation have said of themselves: not read before somebody asks."""
        self._has_read_subscriptions = True
        self._subscribed_topics: frozenset[str] | None = None

    # -- the log -------------------------------------------------------------------------------------------------------

    def new_group_record(self, now: Now) -> StoredRecord:
        """That the group exists, before there is anything to say of it."""
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
        """The group at this generation with these members. Whoever the leader forgot gets an empty assignment."""
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

    @classmethod
    def restored(cls, group_id: str, settings: GroupSettings, value: GroupMetadataValue) -> "ClassicGroup":
        """As the log has it, with nobody waiting for anything."""
        group = cls(group_id, settings)
        group.stored = value
        group.generation_id = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.state_timestamp_ms = value.current_state_timestamp
        for stored in value.members:
            group.roster.add(ClassicMember.restored(stored, value.protocol_type, value.protocol))
        group.roster.leader_id = value.leader
        group.state = ClassicState.STABLE if value.members else ClassicState.EMPTY
        group._remember_subscriptions()
        return group

    def replay(self, value: GroupMetadataValue) -> None:
        """What this group has decided is in the log. A record without members tells of a group that is empty already,
        or has only just come to be; one with members brings their assignments.
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
        """All who are in it have joined: the next generation, which an empty group begins as well."""
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
        """The topics that its members read. None: they are no consumers, or cannot be understood."""
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

    # -- what members are told -----------------------------------------------------------------------------------------

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse, decision: Decision) -> None:
        """If it waits for one."""
        ticket = self.roster.await_join(member, None)
        if ticket is not None:
            decision.replies.append(_new(Reply, (ticket, response)))

    def answer_sync(self, member: ClassicMember, response: SyncGroupResponse, decision: Decision) -> None:
        ticket, member.awaiting_sync = member.awaiting_sync, None
        if ticket is not None:
            decision.replies.append(Reply(ticket, response))

    def answer_waiting(self, code: ErrorCode) -> list[Reply]:
        """Whoever waits for anything is told this: the group is not what it was, or never came to be."""
        decision = Decision()
        for member in self.roster:
            self.answer_join(member, join_refused(code, member.member_id), decision)
            self.answer_sync(member, sync_refused(code), decision)
        return decision.replies

    def joined_members(self) -> tuple[JoinGroupResponseMember, ...]:
        """Everybody, with their metadata: what the leader needs to assign."""
        assert self.protocol_name is not None
        return tuple(member.as_joined(self.protocol_name) for member in self.roster)

    def described(self) -> DescribedGroup:
        stable_protocol = self.protocol_name if self.state is ClassicState.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=self.protocol_type or "",
            protocol_data=stable_protocol or "",
            members=tuple(member.described(stable_protocol) for member in self.roster),
        )

    # -- what a group of any kind is asked -----------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Refused if there is no such member, or a static member has another id by now."""
        if instance_id is not None:
            current = self.roster.static_id(instance_id)
            if current is None:
                raise unknown_member(self.group_id, member_id)
            if current != member_id:
                raise fenced_instance(self.group_id, instance_id, member_id)
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

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> None:
        """Without a generation it is an admin tool, or a consumer that assigns its partitions itself: that may commit
        while the group is empty. Transactional commits of old clients name no member at all.
        """
        if generation_or_epoch < 0 and self.is_empty:
            return
        if generation_or_epoch >= 0 or member_id or instance_id is not None:
            self.member(member_id, instance_id)
            self.check_generation(generation_or_epoch)
        elif not transactional and not self.is_empty:
            raise unknown_member(self.group_id, member_id)
        if not transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise Refused(ErrorCode.REBALANCE_IN_PROGRESS, f"Group {self.group_id} has yet to assign its partitions.")

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may know what a classic group has committed."""

    def check_offset_delete(self) -> None:
        """Only consumers say which topics they read, so that what they do not read can be deleted under their eyes."""
        if not self.is_empty and not self.uses_consumer_protocol:
            raise group_not_empty(self.group_id)

    def check_delete(self) -> None:
        if not self.is_empty:
            raise group_not_empty(self.group_id)

    def is_subscribed_to(self, topic: str) -> bool:
        topics = self.subscribed_topics
        return self.uses_consumer_protocol if topics is None else topic in topics

    def offsets_expire_from(self, topic: str, committed_at_ms: int) -> int | None:
        if self.protocol_type is None:
            return committed_at_ms
        if self.is_subscribed_to(topic):
            return None
        if self.is_empty:
            return committed_at_ms if self.state_timestamp_ms == NO_TIMESTAMP else self.state_timestamp_ms
        if self.state is ClassicState.STABLE and self.subscribed_topics is not None:
            return committed_at_ms
        return None


if TYPE_CHECKING:
    _is_a_group: type[Group] = ClassicGroup
