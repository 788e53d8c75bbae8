"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of a classic group: the rules, and their order, of
GroupMetadataManager.classicGroupJoin, classicGroupSync, classicGroupHeartbeat and classicGroupLeave in Kafka.

A refusal is a response where the API has a special form for it (JoinGroup contains the member id, LeaveGroup has a code
for each member); elsewhere it is raised.
"""

from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.coordination import Decision, Now, Ticket
from kaspar.groups.classic.member import NO_ASSIGNMENT, ClassicMember, protocols_by_name
from kaspar.groups.classic.membership import ClassicMembership, Replacement
from kaspar.groups.classic.rebalance import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    SESSION,
    SYNC,
    cancel_session_timer,
    expect_heartbeat,
    joined,
    maybe_complete_join,
    maybe_prepare_rebalance,
    prepare_rebalance,
    remove_member,
    synced,
)
from kaspar.groups.classic.refusals import join_refused, sync_refused
from kaspar.groups.classic.state import ClassicState
from kaspar.groups.group import GroupClient, GroupTimer, unknown_member
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from kaspar.protocol.messages.sync_group import SyncGroupRequest

UNKNOWN_MEMBER_ID: Final = ""
"""The member id of a client that has none yet, or of an admin tool that gives only an instance id."""
FIRST_JOIN_WITH_REBALANCE_TIMEOUT: Final = 1
FIRST_JOIN_WITH_REQUIRED_MEMBER_ID: Final = 4
FIRST_JOIN_WITH_SKIP_ASSIGNMENT: Final = 9
LONGEST_REASON: Final = 255

_HEARTBEAT_ACCEPTED: Final = Decision(response=HeartbeatResponse())
_REBALANCE_IN_PROGRESS: Final = Decision(response=HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

# -- JoinGroup ---------------------------------------------------------------------------------------------------------


def join(
    group: ClassicMembership, request: JoinGroupRequest, client: GroupClient, ticket: Ticket, now: Now
) -> Decision:
    try:
        return _Join(group, request, client, ticket, now).decide()
    except Refused as refusal:
        return Decision(response=join_refused(refusal.code, request.member_id))


class _Join:
    """Handles one JoinGroup."""

    def __init__(
        self, group: ClassicMembership, request: JoinGroupRequest, client: GroupClient, ticket: Ticket, now: Now
    ) -> None:
        self.group = group
        self.request = request
        self.client = client
        self.ticket = ticket
        self.now = now
        self.protocols = protocols_by_name(request.protocols)
        self.rebalance_timeout_ms = (
            request.session_timeout_ms
            if client.api_version < FIRST_JOIN_WITH_REBALANCE_TIMEOUT
            else request.rebalance_timeout_ms
        )
        self.decision = Decision()

    def decide(self) -> Decision:
        group, member_id = self.group, self.request.member_id
        if not self._there_is_room():
            self._turn_away()
        elif not self._protocols_fit():
            self.decision.response = join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        elif member_id == UNKNOWN_MEMBER_ID:
            self._join_as_new_member()
        elif member_id in group.roster.pending:
            if self.request.group_instance_id is not None:
                raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "A pending member cannot be a static member.")
            self._add_member(member_id)
        else:
            self._join_again(group.member(member_id, self.request.group_instance_id))
        return self.decision

    def _there_is_room(self) -> bool:
        """Whether the member may join. During a rebalance the members that have joined are counted, so that a group
        above its limit loses the last to join.
        """
        group, most = self.group, self.group.settings.group_max_size
        member = group.roster.get(self.request.member_id)
        if group.is_empty:
            return True
        if group.state is ClassicState.PREPARING_REBALANCE:
            is_waiting = member is not None and member.awaiting_join is not None
            return is_waiting or group.roster.awaiting_join_count < most
        return member is not None or len(group.roster) < most

    def _turn_away(self) -> None:
        member_id = self.request.member_id
        member = self.group.roster.get(member_id)
        if member is not None:
            remove_member(self.group, member, self.decision)
        elif member_id in self.group.roster.pending:
            self.group.roster.remove(member_id)
            cancel_session_timer(self.group, member_id, self.decision)
        self.decision.response = join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED)
        maybe_complete_join(self.group, self.now, self.decision)

    def _protocols_fit(self) -> bool:
        group, protocol_type = self.group, self.request.protocol_type
        if group.is_empty:
            return bool(protocol_type) and bool(self.protocols)
        return group.protocol_type == protocol_type and group.roster.all_support_one_of(self.protocols)

    def _join_as_new_member(self) -> None:
        instance_id, new_id = self.request.group_instance_id, self.client.new_id
        if instance_id is None:
            member_id = f"{self.client.client_id}-{new_id}"
            if self.client.api_version >= FIRST_JOIN_WITH_REQUIRED_MEMBER_ID:
                self._require_member_id(member_id)
            else:
                self._add_member(member_id)
            return
        member_id = f"{instance_id}-{new_id}"
        current_id = self.group.roster.static_id(instance_id)
        if current_id is None:
            self._add_member(member_id)
        else:
            self._replace_static_member(self.group.roster[current_id], member_id)

    def _require_member_id(self, member_id: str) -> None:
        """Make the client join again with this id (KIP-394), so that clients that give up leave no members behind."""
        self.group.roster.pending.add(member_id)
        at_ms = self.now.steady_ms + self.request.session_timeout_ms
        self.decision.add_timer(GroupTimer(self.group.group_id, SESSION, member_id), at_ms)
        self.decision.response = join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def _add_member(self, member_id: str) -> None:
        group = self.group
        member = ClassicMember(
            member_id,
            instance_id=self.request.group_instance_id,
            client_id=self.client.client_id,
            client_host=self.client.host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.request.session_timeout_ms,
            protocol_type=self.request.protocol_type,
            protocols=self.protocols,
        )
        member.is_new = True
        member.awaiting_join = self.ticket
        if not len(group.roster):
            group.protocol_type = member.protocol_type
        group.roster.add(member)
        group.member_came_while_waiting = True
        expect_heartbeat(group, member, self.now, self.decision, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._maybe_rebalance("is new", member)

    def _join_again(self, member: ClassicMember) -> None:
        """Return the current generation to a member without changes. The leader of a stable group always causes a
        rebalance: it may know of new partitions.
        """
        group = self.group
        if group.state is not ClassicState.PREPARING_REBALANCE:
            leads_stable = group.state is ClassicState.STABLE and group.roster.leader_id == member.member_id
            if member.has_same_protocols(self.protocols) and not leads_stable:
                self.decision.response = joined(group, member.member_id)
                return
        self._update(member)
        self._maybe_rebalance("joins again", member)

    def _update(self, member: ClassicMember) -> None:
        self.group.roster.update_protocols(member, self.protocols)
        member.rebalance_timeout_ms = self.rebalance_timeout_ms
        member.session_timeout_ms = self.request.session_timeout_ms
        lost = self.group.roster.await_join(member, self.ticket)
        if lost is not None:
            refused = join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
            self.decision.add_reply(lost, refused)

    # -- static members (KIP-345) --------------------------------------------------------------------------------------

    def _replace_static_member(self, old: ClassicMember, member_id: str) -> None:
        """Give a new member id to an instance that joins without one. The old id is fenced."""
        group = self.group
        member = old.replaced_by(member_id)
        member.client_id, member.client_host = self.client.client_id, self.client.host
        if group.state is ClassicState.STABLE and self._elects_same_protocol(old):
            self._replace_while_stable(old, member)
            return
        fenced = ErrorCode.FENCED_INSTANCE_ID
        group.reply_to_join(old, join_refused(fenced, old.member_id), self.decision)
        group.reply_to_sync(old, sync_refused(fenced), self.decision)
        cancel_session_timer(group, old.member_id, self.decision)
        group.roster.replace(old.member_id, member)
        expect_heartbeat(group, member, self.now, self.decision)
        self._update(member)
        self._maybe_rebalance(f"takes the place of instance {member.instance_id}", member)

    def _elects_same_protocol(self, member: ClassicMember) -> bool:
        before = member.protocols
        self.group.roster.update_protocols(member, self.protocols)
        elected = self.group.roster.elect_protocol()
        self.group.roster.update_protocols(member, before)
        return elected == self.group.protocol_name

    def _replace_while_stable(self, old: ClassicMember, member: ClassicMember) -> None:
        """Replace a static member without a rebalance: it keeps its assignment. It is replaced when that is in the log.
        A leader learns that it leads only if its version has SkipAssignment (KIP-814): otherwise it would assign again.
        """
        group = self.group
        member.protocols = self.protocols
        member.rebalance_timeout_ms = self.rebalance_timeout_ms
        member.session_timeout_ms = self.request.session_timeout_ms
        members = [member if each is old else each for each in group.roster]
        leads = group.roster.leader_id == old.member_id
        leader_id = member.member_id if leads else group.roster.leader_id
        assignments = {each.member_id: each.assignment for each in members}
        tells_leader = leads and self.client.api_version >= FIRST_JOIN_WITH_SKIP_ASSIGNMENT
        assert group.protocol_name is not None
        response = JoinGroupResponse(
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=(leader_id if tells_leader else group.roster.leader_id) or "",
            skip_assignment=tells_leader,
            member_id=member.member_id,
            members=tuple(each.as_joined(group.protocol_name) for each in members) if tells_leader else (),
        )
        expect_heartbeat(group, member, self.now, self.decision)
        self.decision.add_record(group.record(members, leader_id, assignments))
        self.decision.if_refused = self._replacement_refused
        self.decision.response = response
        group.replacement = Replacement(old.member_id, member)

    def _replacement_refused(self, code: ErrorCode, now: Now) -> Decision:
        """Keep the old member: the log has refused the replacement."""
        replacement, self.group.replacement = self.group.replacement, None
        decision = Decision()
        if replacement is not None:
            cancel_session_timer(self.group, replacement.member.member_id, decision)
        return decision

    # -- rebalances ----------------------------------------------------------------------------------------------------

    def _maybe_rebalance(self, what: str, member: ClassicMember) -> None:
        if self.group.state is ClassicState.PREPARING_REBALANCE:
            maybe_complete_join(self.group, self.now, self.decision)
            return
        reason = (self.request.reason or "not provided")[:LONGEST_REASON]
        prepare_rebalance(
            self.group, f"member {member.member_id} {what}; client reason: {reason}", self.now, self.decision
        )


# -- SyncGroup ---------------------------------------------------------------------------------------------------------


def sync(group: ClassicMembership, request: SyncGroupRequest, ticket: Ticket, now: Now) -> Decision:
    """Handle SyncGroup. The leader sends the assignments, for which the other members wait. All get theirs once they
    are in the log.
    """
    member = group.member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    for said, known in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name)):
        if said is not None and known is not None and said != known:
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Group {group.group_id} uses {known}, not {said}.")
    match group.state:
        case ClassicState.PREPARING_REBALANCE:
            raise Refused(ErrorCode.REBALANCE_IN_PROGRESS, f"Group {group.group_id} is rebalancing.")
        case ClassicState.STABLE:
            decision = Decision(response=synced(group, member.assignment))
            _has_synced(group, member, decision)
            return decision
        case ClassicState.COMPLETING_REBALANCE:
            decision = Decision()
            if member.awaiting_sync is not None:
                group.reply_to_sync(member, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS), decision)
            member.awaiting_sync = ticket
            _has_synced(group, member, decision)
            if group.roster.leader_id == member.member_id:
                _assign(group, request, now, decision)
            return decision
        case _:
            raise unknown_member(group.group_id, request.member_id)


def _has_synced(group: ClassicMembership, member: ClassicMember, decision: Decision) -> None:
    pending = group.roster.pending_sync
    if member.member_id in pending:
        pending.remove(member.member_id)
        if not pending:
            decision.add_timer(GroupTimer(group.group_id, SYNC), None)


def _assign(group: ClassicMembership, request: SyncGroupRequest, now: Now, decision: Decision) -> None:
    assignments = {each.member_id: each.assignment for each in request.assignments}
    decision.add_record(group.record(group.roster, group.roster.leader_id, assignments))
    for member in group.roster:
        if member.awaiting_sync is not None:
            group.reply_to_sync(member, synced(group, assignments.get(member.member_id, NO_ASSIGNMENT)), decision)
            expect_heartbeat(group, member, now, decision)

    def refused(code: ErrorCode, later: Now) -> Decision:
        """Make all members rejoin: the log has refused the assignment."""
        instead = Decision()
        prepare_rebalance(group, f"error {code.name} when storing group assignment", later, instead)
        return instead

    decision.if_refused = refused


# -- Heartbeat ---------------------------------------------------------------------------------------------------------


def heartbeat(group: ClassicMembership, request: HeartbeatRequest, now: Now) -> Decision:
    """Handle one of thousands of heartbeats per second: only the end of the session changes."""
    member = group.member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    member.deadline_ms = now.steady_ms + member.session_timeout_ms
    return _REBALANCE_IN_PROGRESS if group.state is ClassicState.PREPARING_REBALANCE else _HEARTBEAT_ACCEPTED


# -- LeaveGroup --------------------------------------------------------------------------------------------------------


def leave(group: ClassicMembership, request: LeaveGroupRequest, now: Now) -> Decision:
    decision = Decision()
    responses = tuple(_leave_one(group, identity, decision) for identity in request.members)
    gone = ", ".join(
        f"{identity.member_id or identity.group_instance_id} ({(identity.reason or 'not provided')[:LONGEST_REASON]})"
        for identity, response in zip(request.members, responses, strict=True)
        if response.error_code == ErrorCode.NONE
    )
    if gone and not group.is_empty:
        maybe_prepare_rebalance(group, f"explicit LeaveGroup of {gone}", now, decision)
    decision.response = LeaveGroupResponse(members=responses)
    return decision


def _leave_one(group: ClassicMembership, identity: MemberIdentity, decision: Decision) -> MemberResponse:
    code = ErrorCode.NONE
    if identity.member_id in group.roster.pending:
        group.roster.remove(identity.member_id)
        cancel_session_timer(group, identity.member_id, decision)
    else:
        try:
            remove_member(group, _who_leaves(group, identity), decision)
        except Refused as refusal:
            code = refusal.code
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)


def _who_leaves(group: ClassicMembership, identity: MemberIdentity) -> ClassicMember:
    """The member that leaves. An admin tool may give only an instance id."""
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id == UNKNOWN_MEMBER_ID and instance_id is not None:
        member_id = group.roster.static_id(instance_id) or UNKNOWN_MEMBER_ID
    return group.member(member_id, instance_id)
