"""The shell of a group shard in its simplest form: a log in memory, timers that fire when told to, answers kept.

It carries out decisions as the broker's own does. Every record goes through its bytes. The log can be made to refuse,
and the coordinator can crash: then another shard reads the log from its beginning. Whatever can be carried out at once,
without a decision, is tried beside the decision, and must come to the same.
"""

import copy
import uuid
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Protocol

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import Decision, Now, StoredRecord, Ticket
from kaspar.groups import classic_at_once
from kaspar.groups.classic import ClassicGroup
from kaspar.groups.classic_member import ClassicMember, protocols_by_name
from kaspar.groups.group import Client
from kaspar.groups.records import GroupMetadataValue
from kaspar.groups.shard import GroupShard
from kaspar.protocol.messages.delete_groups import DeletableGroupResult
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kaspar.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kaspar.protocol.schema import Message

GROUP = "readers"
STEADY_BEGINS_MS = 1_000
WALL_BEGINS_MS = 1_700_000_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000


class Waiting:
    """A ticket. `answer` is None as long as there is none; a second answer is a bug."""

    def __init__(self, refused: Callable[[ErrorCode], Message]) -> None:
        self._refused = refused
        self.answer: Any = None

    def refused(self, code: ErrorCode) -> Message:
        return self._refused(code)

    def take(self, message: Message) -> None:
        assert self.answer is None, f"answered twice: {self.answer}, {message}"
        self.answer = message

    @property
    def waits(self) -> bool:
        return self.answer is None

    @property
    def code(self) -> ErrorCode:
        assert self.answer is not None, "there is no answer yet"
        return ErrorCode(self.answer.error_code)


class _Decides(Protocol):
    def __call__(self, shard: GroupShard, ticket: Ticket, now: Now) -> Decision: ...


class Shell:
    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.settings = settings or GroupSettings(group_initial_rebalance_delay_ms=DELAY_MS)
        self.log: list[tuple[bytes, bytes | None, ProducerIdAndEpoch | None]] = []
        self.now = Now(WALL_BEGINS_MS, STEADY_BEGINS_MS, WALL_BEGINS_MS)
        self.timers: dict[Hashable, int] = {}
        self.tickets: list[Waiting] = []
        self.actions: list[Any] = []
        self.refuses: ErrorCode | None = None
        """With what the log refuses to take anything, until it is told otherwise ..."""
        self.refuse_at_most: int | None = None
        """... or has done so this many times."""
        self.waited_at_once = 0
        """How often a short way was there, and came to the same."""
        self._ids = 0
        self.start()

    def start(self) -> None:
        """A coordinator that knows nothing but the log."""
        self.shard = GroupShard(self.settings, 0)
        self.timers = {}
        for key, value, producer in self.log:
            record = self.shard.decode(key, value)
            assert record is not None
            self.shard.replay(record, producer)
        self.carry_out(self.shard.loaded(self.now))

    def crash(self) -> None:
        """Whoever waits is told by the connection that breaks."""
        for ticket in self.tickets:
            if ticket.answer is None:
                ticket.take(ticket.refused(ErrorCode.NOT_COORDINATOR))
        self.start()

    # -- decisions -----------------------------------------------------------------------------------------------------

    def submit(self, decide: _Decides, refused: Callable[[ErrorCode], Message]) -> Waiting:
        ticket = Waiting(refused)
        self.tickets.append(ticket)
        try:
            decision = decide(self.shard, ticket, self.now)
        except Refused as refusal:
            ticket.take(refused(refusal.code))
        else:
            self.carry_out(decision)
        return ticket

    def carry_out(self, decision: Decision) -> None:
        for timer in decision.timers:
            if timer.at_ms is None:
                self.timers.pop(timer.key, None)
            else:
                self.timers[timer.key] = timer.at_ms
        if decision.records and self.refuses is not None:
            code = self.refuses
            if self.refuse_at_most is not None:
                self.refuse_at_most -= 1
                if not self.refuse_at_most:
                    self.refuses = self.refuse_at_most = None
            for reply in decision.replies:
                _waiting(reply.ticket).take(reply.ticket.refused(code))
            if decision.if_refused is not None:
                self.carry_out(decision.if_refused(code, self.now))
            return
        for record in decision.records:
            self.append(record, decision.producer)
        for reply in decision.replies:
            _waiting(reply.ticket).take(reply.message)
        self.actions += decision.actions

    def append(self, record: StoredRecord, producer: ProducerIdAndEpoch | None = None) -> None:
        key, value = self.shard.encode(record)
        self.log.append((key, value, producer))
        decoded = self.shard.decode(key, value)
        assert decoded == record
        self.shard.replay(decoded, producer)

    @property
    def records(self) -> list[StoredRecord]:
        decoded = [self.shard.decode(key, value) for key, value, _ in self.log]
        return [record for record in decoded if record is not None]

    # -- time ----------------------------------------------------------------------------------------------------------

    def advance(self, milliseconds: int) -> None:
        """Time goes by, and timers fire as it does."""
        until_ms = self.now.steady_ms + milliseconds
        while self.timers:
            key, at_ms = min(self.timers.items(), key=lambda timer: timer[1])
            if at_ms > until_ms:
                break
            self._be_at(max(at_ms, self.now.steady_ms))
            del self.timers[key]
            self.carry_out(self.shard.timer_fired(key, self.now))
        self._be_at(until_ms)

    def _be_at(self, steady_ms: int) -> None:
        passed = steady_ms - self.now.steady_ms
        self.now = Now(self.now.wall_ms + passed, steady_ms, self.now.believed_ms + passed)

    # -- requests ------------------------------------------------------------------------------------------------------

    def client(self, version: int, client_id: str = "client") -> Client:
        self._ids += 1
        return Client(client_id, "/10.0.0.1", version, uuid.UUID(int=self._ids))

    def join(
        self,
        member_id: str = "",
        *,
        group_id: str = GROUP,
        instance_id: str | None = None,
        protocols: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_timeout_ms: int = SESSION_MS,
        rebalance_timeout_ms: int = REBALANCE_MS,
        version: int = 9,
        client_id: str = "client",
    ) -> Waiting:
        names = {"range": b"", "roundrobin": b""} if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms if version else -1,  # which the first version does not have
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in names.items()),
        )
        client = self.client(version, client_id)
        by_name = protocols_by_name(request.protocols)
        twin = self._twin(group_id, lambda group, ticket: classic_at_once.join_again(group, request, by_name, ticket))
        asked = self.submit(
            lambda shard, ticket, now: shard.join(request, client, ticket, now),
            lambda code: JoinGroupResponse(error_code=code, member_id="", leader="", members=()),
        )
        self._check_twin(group_id, twin, asked)
        return asked

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group_id: str = GROUP,
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Waiting:
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=each, assignment=assignment)
                for each, assignment in (assignments or {}).items()
            ),
        )
        twin = self._twin(
            group_id, lambda group, ticket: classic_at_once.await_assignment(group, request, generation_id, ticket)
        )
        at_once = self.shard.sync_at_once(request)
        asked = self.submit(
            lambda shard, ticket, now: shard.sync(request, ticket, now),
            lambda code: SyncGroupResponse(error_code=code, assignment=b""),
        )
        assert at_once is None or at_once == asked.answer, "the short way gives the same answer"
        self._check_twin(group_id, twin, asked)
        return asked

    def _twin(self, group_id: str, wait: Callable[[ClassicGroup, Ticket], bool]) -> "_Twin | None":
        """A group as it is when somebody waits without a decision; None if there is more to it."""
        group = self.shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return None
        twin = copy.deepcopy(group, {id(group.settings): group.settings})
        before = _seen(twin)
        if wait(twin, Waiting(lambda code: HeartbeatResponse(error_code=code))):
            return _Twin(twin, len(self.log), dict(self.timers))
        assert _seen(twin) == before, "who is not taken has changed nothing"
        return None

    def _check_twin(self, group_id: str, twin: "_Twin | None", asked: Waiting) -> None:
        if twin is not None:
            self.waited_at_once += 1
            assert asked.waits, "the short way waits where the decision waits"
            assert _seen(self.classic(group_id)) == _seen(twin.group)
            assert (len(self.log), self.timers) == (twin.log_length, twin.timers)

    def heartbeat(
        self, member_id: str, generation_id: int, *, group_id: str = GROUP, instance_id: str | None = None
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group_id, generation_id=generation_id, member_id=member_id, group_instance_id=instance_id
        )
        ticket = self.submit(
            lambda shard, ticket, now: shard.heartbeat(request, ticket, now),
            lambda code: HeartbeatResponse(error_code=code),
        )
        return ticket.code

    def leave(self, *identities: tuple[str, str | None], group_id: str = GROUP) -> Waiting:
        request = LeaveGroupRequest(
            group_id=group_id,
            members=tuple(
                MemberIdentity(member_id=member_id, group_instance_id=instance_id)
                for member_id, instance_id in identities
            ),
        )
        return self.submit(
            lambda shard, ticket, now: shard.leave(request, ticket, now),
            lambda code: LeaveGroupResponse(error_code=code),
        )

    def delete(self, group_id: str = GROUP) -> Waiting:
        return self.submit(
            lambda shard, ticket, now: shard.delete(group_id, ticket, now),
            lambda code: DeletableGroupResult(group_id=group_id, error_code=code),
        )

    # -- what tests often need -----------------------------------------------------------------------------------------

    def enter(self, *, group_id: str = GROUP, **how: Any) -> tuple[str, Waiting]:
        """A dynamic member comes: it is given its id, and joins with it. Its JoinGroup may wait."""
        member_id = self.join(group_id=group_id, **how).answer.member_id
        return member_id, self.join(member_id, group_id=group_id, **how)

    def stable(self, count: int = 2, *, group_id: str = GROUP, **how: Any) -> list[str]:
        """A group of so many dynamic members, with the leader first, each assigned its own name."""
        entered = [self.enter(group_id=group_id, **how) for _ in range(count)]
        self.advance(2 * DELAY_MS)
        return self.settle(dict(entered), group_id=group_id)

    def settle(self, joined: dict[str, Waiting], *, group_id: str = GROUP) -> list[str]:
        """All have their answer to JoinGroup: the leader assigns everybody its own name."""
        answer: JoinGroupResponse = next(iter(joined.values())).answer
        members = [answer.leader, *(each for each in joined if each != answer.leader)]
        assignments = {member_id: member_id.encode() for member_id in members}
        followers = [self.sync(each, answer.generation_id, group_id=group_id) for each in members[1:]]
        leader = self.sync(members[0], answer.generation_id, assignments, group_id=group_id)
        assert all(each.code is ErrorCode.NONE for each in (leader, *followers))
        return members

    @property
    def generation_id(self) -> int:
        return self.classic().generation_id

    def classic(self, group_id: str = GROUP) -> ClassicGroup:
        group = self.shard.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    @property
    def stored(self) -> GroupMetadataValue:
        """The group as the log has it."""
        stored = self.classic().stored
        assert stored is not None
        return stored

    @property
    def state(self) -> str:
        return self.shard.groups[GROUP].state_name


class _Twin(NamedTuple):
    """A group after the short way, and what must not have changed."""

    group: ClassicGroup
    log_length: int
    timers: dict[Hashable, int]


def _seen(group: ClassicGroup) -> dict[str, Any]:
    """All that a group knows, but for the objects that stand for those who wait."""
    roster = group.roster
    members = {
        member.member_id: {
            name: (value is not None) if name in ("awaiting_join", "awaiting_sync") else value
            for name in ClassicMember.__slots__
            for value in (getattr(member, name),)
        }
        for member in roster
    }
    counted = roster.awaiting_join_count, roster.leader_id, set(roster.pending), set(roster.pending_sync)
    return {**vars(group), "roster": (members, counted)}


def _waiting(ticket: Ticket) -> Waiting:
    assert isinstance(ticket, Waiting)
    return ticket
