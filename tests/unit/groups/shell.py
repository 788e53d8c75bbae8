"""The shell of a group shard in its simplest form: a log in memory, timers that a test fires, responses kept.

It carries out decisions as the broker's own does. Every record goes through its bytes. The log can be made to refuse,
and the coordinator can crash: then another shard reads the log from its beginning.
"""

import uuid
from collections.abc import Callable, Hashable
from typing import Any, Protocol

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import AnyRecord, Decision, EncodedRecord, Now, StoredRecord, Ticket
from kaspar.groups.classic.membership import ClassicMembership
from kaspar.groups.classic_group import ClassicGroup
from kaspar.groups.group import GroupClient
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
    """A ticket. `response` is None until there is one; a second response is a bug."""

    def __init__(self, refused: Callable[[ErrorCode], Message]) -> None:
        self._refused = refused
        self.response: Any = None

    def refused(self, code: ErrorCode) -> Message:
        return self._refused(code)

    def take(self, message: Message) -> None:
        assert self.response is None, f"a second response: {self.response}, {message}"
        self.response = message

    @property
    def waits(self) -> bool:
        return self.response is None

    @property
    def code(self) -> ErrorCode:
        assert self.response is not None, "there is no response yet"
        return ErrorCode(self.response.error_code)


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
        """The error with which the log refuses every append, until a test resets it ..."""
        self.refuse_at_most: int | None = None
        """... or has done so this many times."""
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
        """Waiting requests end with their connection."""
        for ticket in self.tickets:
            if ticket.response is None:
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
            self.carry_out(decision, ticket)
        return ticket

    def carry_out(self, decision: Decision, ticket: Waiting | None = None) -> None:
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
            if ticket is not None and decision.response is not None:
                ticket.take(ticket.refused(code))
            for reply in decision.replies:
                _waiting(reply.ticket).take(reply.ticket.refused(code))
            if decision.if_refused is not None:
                self.carry_out(decision.if_refused(code, self.now))
            return
        for record in decision.records:
            self.append(record, decision.producer)
        if ticket is not None and decision.response is not None:
            ticket.take(decision.response)
        for reply in decision.replies:
            _waiting(reply.ticket).take(reply.message)
        self.actions += decision.actions

    def append(self, record: AnyRecord, producer: ProducerIdAndEpoch | None = None) -> None:
        if isinstance(record, EncodedRecord):
            stored = self.shard.decode(*record.encoded)
            assert stored is not None
            assert self.shard.encode(stored) == record.encoded
            self.log.append((*record.encoded, producer))
            record.replay()
            return
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

    def client(self, version: int, client_id: str = "client") -> GroupClient:
        self._ids += 1
        return GroupClient(client_id, "/10.0.0.1", version, uuid.UUID(int=self._ids))

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
        return self.submit(
            lambda shard, ticket, now: shard.join(request, client, ticket, now),
            lambda code: JoinGroupResponse(error_code=code, member_id="", leader="", members=()),
        )

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
        return self.submit(
            lambda shard, ticket, now: shard.sync(request, ticket, now),
            lambda code: SyncGroupResponse(error_code=code, assignment=b""),
        )

    def heartbeat(
        self, member_id: str, generation_id: int, *, group_id: str = GROUP, instance_id: str | None = None
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group_id, generation_id=generation_id, member_id=member_id, group_instance_id=instance_id
        )
        ticket = self.submit(
            lambda shard, ticket, now: shard.heartbeat(request, now),
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
            lambda shard, ticket, now: shard.leave(request, now),
            lambda code: LeaveGroupResponse(error_code=code),
        )

    def delete(self, group_id: str = GROUP) -> Waiting:
        return self.submit(
            lambda shard, ticket, now: shard.delete(group_id, now),
            lambda code: DeletableGroupResult(group_id=group_id, error_code=code),
        )

    # -- what tests often need -----------------------------------------------------------------------------------------

    def enter(self, *, group_id: str = GROUP, **how: Any) -> tuple[str, Waiting]:
        """A dynamic member comes: it is given its id, and joins with it. Its JoinGroup may wait."""
        member_id = self.join(group_id=group_id, **how).response.member_id
        return member_id, self.join(member_id, group_id=group_id, **how)

    def stable(self, count: int = 2, *, group_id: str = GROUP, **how: Any) -> list[str]:
        """A group of so many dynamic members, with the leader first, each assigned its own name."""
        entered = [self.enter(group_id=group_id, **how) for _ in range(count)]
        self.advance(2 * DELAY_MS)
        return self.settle(dict(entered), group_id=group_id)

    def settle(self, joined: dict[str, Waiting], *, group_id: str = GROUP) -> list[str]:
        """All have their JoinGroup response: the leader assigns each member its own name."""
        response: JoinGroupResponse = next(iter(joined.values())).response
        members = [response.leader, *(each for each in joined if each != response.leader)]
        assignments = {member_id: member_id.encode() for member_id in members}
        followers = [self.sync(each, response.generation_id, group_id=group_id) for each in members[1:]]
        leader = self.sync(members[0], response.generation_id, assignments, group_id=group_id)
        assert all(each.code is ErrorCode.NONE for each in (leader, *followers))
        return members

    @property
    def generation_id(self) -> int:
        return self.classic().generation_id

    def classic(self, group_id: str = GROUP) -> ClassicMembership:
        group = self.shard.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group.membership

    @property
    def stored(self) -> GroupMetadataValue:
        """The group as the log has it."""
        stored = self.classic().stored
        assert stored is not None
        return stored

    @property
    def state(self) -> str:
        return self.shard.groups[GROUP].state_name


def _waiting(ticket: Ticket) -> Waiting:
    assert isinstance(ticket, Waiting)
    return ticket
