"""The requests that most of a classic group's rebalance consists of, carried out without a decision being made of them.

A member joins again and waits for the others; it asks for its assignment, and waits for the leader or has it at once.
All that this changes is who waits for what: nothing of it is in the log, and no timer is set. Where that is all, these
functions do what `classic_requests` does. What moves the group on, what is unusual and what is refused is for
`classic_requests` to say; then nothing has happened here.
"""

from kaspar.coordination import Ticket
from kaspar.groups.classic import ClassicGroup
from kaspar.groups.classic_member import ClassicMember
from kaspar.groups.classic_state import ClassicState
from kaspar.protocol.messages.join_group import JoinGroupRequest
from kaspar.protocol.messages.sync_group import SyncGroupRequest


def join_again(group: ClassicGroup, request: JoinGroupRequest, protocols: dict[str, bytes], ticket: Ticket) -> bool:
    """A member joins again while others have yet to, and waits with them. Its protocols are those of the request, by
    name: of the same names as before, so that whatever all could agree on they still can.
    """
    roster = group.roster
    member = roster.get(request.member_id)
    waiting = roster.awaiting_join_count
    if (
        member is None
        or group.state is not ClassicState.PREPARING_REBALANCE
        or member.awaiting_join is not None
        or waiting + 1 >= len(roster)
        or waiting >= group.settings.group_max_size
        or member.session_timeout_ms != request.session_timeout_ms
        or member.rebalance_timeout_ms != request.rebalance_timeout_ms
        or member.instance_id != request.group_instance_id
        or group.protocol_type != request.protocol_type
        or protocols.keys() != member.protocols.keys()
    ):
        return False
    member.protocols = protocols
    roster.await_join(member, ticket)
    return True


def assignment_of(group: ClassicGroup, request: SyncGroupRequest, generation_id: int) -> bytes | None:
    """The assignment of a member that asks for it when it is there, as most do. None: it is for others to say."""
    if group.state is not ClassicState.STABLE:
        return None
    member = _expected(group, request, generation_id)
    if member is None:
        return None
    group.roster.pending_sync.discard(member.member_id)
    return member.assignment


def await_assignment(group: ClassicGroup, request: SyncGroupRequest, generation_id: int, ticket: Ticket) -> bool:
    """A member that does not lead asks for its assignment before the leader has brought it, and waits."""
    if group.state is not ClassicState.COMPLETING_REBALANCE or group.roster.leader_id == request.member_id:
        return False
    member = _expected(group, request, generation_id)
    if member is None or member.awaiting_sync is not None:
        return False
    group.roster.pending_sync.discard(member.member_id)
    member.awaiting_sync = ticket
    return True


def _expected(group: ClassicGroup, request: SyncGroupRequest, generation_id: int) -> ClassicMember | None:
    """The member that asks, if it asks as it should; not the last one that is waited for, for whom a timer is taken
    back.
    """
    member = group.roster.get(request.member_id)
    if (
        member is None
        or generation_id != group.generation_id
        or request.protocol_name not in (None, group.protocol_name)
        or request.protocol_type not in (None, group.protocol_type)
        or member.instance_id != request.group_instance_id
        or len(group.roster.pending_sync) == 1
    ):
        return None
    return member
