"""The classic group protocol of one member: a response in, the next request out. No I/O, no clock.

    request = membership.next_request()
    next_step = membership.apply(response)

A member that the coordinator no longer knows has lost its leadership: it joins again as a new member and does not claim
to lead. The group's own leader (the member that computes the assignment) is not the registry's leader.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.log import get_log
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kaspar.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kaspar.protocol.schema import Message
from kaspar.registry.election.choice import choose_leader
from kaspar.registry.election.identity import (
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    Assignment,
    AssignmentError,
    Identity,
    NotInstanceJson,
)

log = get_log(__name__)

_COORDINATOR_MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_FIRST_GENERATION: Final = -1


class Phase(Enum):
    JOIN = auto()
    """Not in the current generation: the next request is JoinGroup."""
    SYNC = auto()
    """In a generation, without its assignment yet: the next request is SyncGroup."""
    STABLE = auto()


class NextStep(Enum):
    """When the next request is sent, and where."""

    AT_ONCE = auto()
    AFTER_HEARTBEAT_INTERVAL = auto()
    AFTER_BACKOFF = auto()
    TO_ANOTHER_COORDINATOR = auto()


@dataclass(frozen=True, slots=True)
class GroupTerms:
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    heartbeat_interval_ms: int
    sticky: bool


class Membership:
    def __init__(self, terms: GroupTerms, identity: Identity) -> None:
        self.terms = terms
        self.identity = identity
        self.phase = Phase.JOIN
        self.member_id = ""
        self.generation_id = _FIRST_GENERATION
        self.leader: Identity | None = None
        """The registry's leader, as far as this member knows."""
        self.problem: str | None = None
        """Why the last election had no valid result."""
        self._assignments: dict[str, bytes] = {}

    @property
    def is_leader(self) -> bool:
        return self.identity.is_leader

    # --- Requests -----------------------------------------------------------------------------------------------------

    def next_request(self) -> JoinGroupRequest | SyncGroupRequest | HeartbeatRequest:
        match self.phase:
            case Phase.JOIN:
                return self._join_request()
            case Phase.SYNC:
                return SyncGroupRequest(
                    group_id=self.terms.group_id,
                    generation_id=self.generation_id,
                    member_id=self.member_id,
                    protocol_type=PROTOCOL_TYPE,
                    protocol_name=PROTOCOL_NAME,
                    assignments=tuple(
                        SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                        for member_id, assignment in self._assignments.items()
                    ),
                )
            case Phase.STABLE:
                return HeartbeatRequest(
                    group_id=self.terms.group_id, generation_id=self.generation_id, member_id=self.member_id
                )

    def _join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.terms.group_id,
            session_timeout_ms=self.terms.session_timeout_ms,
            rebalance_timeout_ms=self.terms.rebalance_timeout_ms,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=(JoinGroupRequestProtocol(name=PROTOCOL_NAME, metadata=self.identity.encode()),),
        )

    def leave_request(self) -> LeaveGroupRequest | None:
        """None if the coordinator does not know this member."""
        if not self.member_id:
            return None
        return LeaveGroupRequest(
            group_id=self.terms.group_id,
            member_id=self.member_id,
            members=(MemberIdentity(member_id=self.member_id, reason="the registry is shutting down"),),
        )

    # --- Events -------------------------------------------------------------------------------------------------------

    def apply(self, response: Message) -> NextStep:
        """Raises Refused for an error that retries do not resolve: another protocol's group, or missing permission."""
        match response:
            case JoinGroupResponse():
                return self._joined(response)
            case SyncGroupResponse():
                return self._synced(response)
            case HeartbeatResponse():
                return self._heard(response)
        raise TypeError(f"{type(response).__name__} is not a group response")

    def rejoin(self) -> None:
        """Take part in a new election, as a member that does not lead: its producer was fenced."""
        self._resign()
        self.phase = Phase.JOIN

    def on_disconnect(self) -> None:
        """If the assignment of the generation has not been received, join again."""
        if self.phase is Phase.SYNC:
            self.phase = Phase.JOIN

    def _joined(self, response: JoinGroupResponse) -> NextStep:
        match response.error_code:
            case ErrorCode.NONE:
                self.member_id, self.generation_id = response.member_id, response.generation_id
                self._assignments = self._assign(response) if response.leader == response.member_id else {}
                self.phase = Phase.SYNC
                return NextStep.AT_ONCE
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
                return NextStep.AT_ONCE
            case _:
                return self._failed(response.error_code, "joining")

    def _assign(self, response: JoinGroupResponse) -> dict[str, bytes]:
        members: dict[str, Identity] = {}
        for member in response.members:
            try:
                members[member.member_id] = Identity.decode(member.metadata)
            except NotInstanceJson as problem:
                log.warning("a member of the registry's group cannot lead", member=member.member_id, problem=problem)
        assignment = choose_leader(members, sticky=self.terms.sticky).encode()
        return {member.member_id: assignment for member in response.members}

    def _synced(self, response: SyncGroupResponse) -> NextStep:
        if response.error_code != ErrorCode.NONE:
            return self._failed(response.error_code, "receiving the assignment")
        self.phase = Phase.STABLE
        try:
            self._elected(Assignment.decode(response.assignment))
        except NotInstanceJson as problem:
            self._resign()
            self.leader, self.problem = None, f"the assignment of the group is not Confluent's JSON: {problem}"
        return NextStep.AFTER_HEARTBEAT_INTERVAL

    def _elected(self, assignment: Assignment) -> None:
        match assignment.error:
            case AssignmentError.NONE:
                self.problem = None
                self.leader = assignment.leader
                self.identity = replace(self.identity, is_leader=assignment.leader_id == self.member_id)
            case AssignmentError.DUPLICATE_URLS:
                self._resign()
                self.leader = None
                self.problem = (
                    f"several instances of the group {self.terms.group_id} have the same URL, probably "
                    f"{self.identity.url}: set host.name and listeners so that each instance has its own"
                )
            case other:
                self._resign()
                self.leader, self.problem = None, f"the group reported the unknown error {other}"

    def _heard(self, response: HeartbeatResponse) -> NextStep:
        if response.error_code == ErrorCode.NONE:
            return NextStep.AFTER_HEARTBEAT_INTERVAL
        return self._failed(response.error_code, "sending a heartbeat")

    def _failed(self, error_code: int, what: str) -> NextStep:
        code = ErrorCode(error_code)
        if code in _COORDINATOR_MOVED:
            self.on_disconnect()
            return NextStep.TO_ANOTHER_COORDINATOR
        match code:
            case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return NextStep.AFTER_BACKOFF
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self.phase = Phase.JOIN
                if not self.terms.sticky:
                    self._resign()
                    self.leader = None
                return NextStep.AT_ONCE
            case ErrorCode.ILLEGAL_GENERATION:
                self._resign()
                self.phase, self.generation_id = Phase.JOIN, _FIRST_GENERATION
                return NextStep.AT_ONCE
            case ErrorCode.UNKNOWN_MEMBER_ID:
                self._resign()
                self.phase, self.generation_id, self.member_id = Phase.JOIN, _FIRST_GENERATION, ""
                return NextStep.AFTER_BACKOFF
        raise Refused(code, f"{what} in the group {self.terms.group_id}: {code.name}")

    def _resign(self) -> None:
        if self.identity.is_leader:
            self.leader = None
        self.identity = replace(self.identity, is_leader=False)
