"""How a classic group gets from one generation to the next, and how members are removed.

A rebalance is prepared (all members have to rejoin), completed (all have, or time is up: the next generation begins,
and their JoinGroup requests get their responses), and ends when the leader's assignment is in the log. The functions
add to the decision that is being made: replies, timers, and the record of a group that has become empty.

There are three timers: "session" for each member (also for pending members), "join" and "sync" for the group.
"""

from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.base.log import get_log
from kaspar.coordination import Decision, Now
from kaspar.groups.classic.member import NO_ASSIGNMENT, ClassicMember
from kaspar.groups.classic.membership import ClassicMembership, InitialDelay
from kaspar.groups.classic.refusals import join_refused, sync_refused
from kaspar.groups.classic.state import ClassicState
from kaspar.groups.group import GroupTimer
from kaspar.protocol.messages.join_group import JoinGroupResponse
from kaspar.protocol.messages.sync_group import SyncGroupResponse

log = get_log(__name__)

SESSION: Final = "session"
JOIN: Final = "join"
SYNC: Final = "sync"
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""How long a new member may wait for its first generation. It sends no heartbeats yet, and its client may be gone."""

# -- responses ---------------------------------------------------------------------------------------------------------


def joined(group: ClassicMembership, member_id: str) -> JoinGroupResponse:
    """The JoinGroup response for a member. Only the leader gets the list of all members."""
    leads = group.roster.leader_id == member_id
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.roster.leader_id or "",
        member_id=member_id,
        members=group.joined_members() if leads else (),
    )


def synced(group: ClassicMembership, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment
    )


# -- sessions ----------------------------------------------------------------------------------------------------------


def expect_heartbeat(
    group: ClassicMembership, member: ClassicMember, now: Now, decision: Decision, timeout_ms: int | None = None
) -> None:
    """Extend the member's session. The timer is set only if the current one would fire too late."""
    member.deadline_ms = now.steady_ms + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
    if member.timer_at_ms is None or member.deadline_ms < member.timer_at_ms:
        arm_session_timer(group, member, member.deadline_ms, decision)


def arm_session_timer(group: ClassicMembership, member: ClassicMember, at_ms: int, decision: Decision) -> None:
    member.timer_at_ms = at_ms
    decision.add_timer(GroupTimer(group.group_id, SESSION, member.member_id), at_ms)


def session_timer_fired(group: ClassicMembership, member_id: str, now: Now) -> Decision:
    decision = Decision()
    if member_id in group.roster.pending:
        group.roster.remove(member_id)
        if group.state is ClassicState.PREPARING_REBALANCE and group.roster.all_have_joined:
            complete_join(group, now, decision)
        return decision
    member = group.roster.get(member_id)
    if member is None:
        return decision
    if member.deadline_ms > now.steady_ms:
        arm_session_timer(group, member, member.deadline_ms, decision)
    elif member.is_heard_from:
        arm_session_timer(group, member, now.steady_ms + member.session_timeout_ms, decision)
    else:
        remove_member(group, member, decision)
        reason = f"removing member {member_id} on heartbeat expiration"
        if group.state is ClassicState.PREPARING_REBALANCE:
            if group.roster.all_have_joined:
                complete_join(group, now, decision)
        else:
            maybe_prepare_rebalance(group, reason, now, decision)
    return decision


def remove_member(group: ClassicMembership, member: ClassicMember, decision: Decision) -> None:
    """Remove a member. A request of it that waits is refused with UNKNOWN_MEMBER_ID, so that a live member rejoins."""
    group.reply_to_join(member, join_refused(ErrorCode.UNKNOWN_MEMBER_ID), decision)
    group.reply_to_sync(member, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID), decision)
    group.roster.remove(member.member_id)
    cancel_session_timer(group, member.member_id, decision)


def cancel_session_timer(group: ClassicMembership, member_id: str, decision: Decision) -> None:
    decision.add_timer(GroupTimer(group.group_id, SESSION, member_id), None)


# -- from one generation to the next -----------------------------------------------------------------------------------


def maybe_prepare_rebalance(group: ClassicMembership, reason: str, now: Now, decision: Decision) -> None:
    """Prepare a rebalance. If one is being prepared already, complete it if it was waiting only for this change."""
    if group.state is ClassicState.PREPARING_REBALANCE:
        maybe_complete_join(group, now, decision)
    else:
        prepare_rebalance(group, reason, now, decision)


def prepare_rebalance(group: ClassicMembership, reason: str, now: Now, decision: Decision) -> None:
    """Make all members rejoin. They learn that from heartbeats, or at once if they wait for an assignment."""
    if group.state is ClassicState.COMPLETING_REBALANCE:
        for member in group.roster:
            member.assignment = NO_ASSIGNMENT
            if member.awaiting_sync is not None:
                group.reply_to_sync(member, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS), decision)
                expect_heartbeat(group, member, now, decision)
    if group.roster.pending_sync:
        group.roster.pending_sync.clear()
        decision.add_timer(GroupTimer(group.group_id, SYNC), None)
    was_empty = group.is_empty
    group.transition_to(ClassicState.PREPARING_REBALANCE, now)
    log.info("preparing to rebalance group", group=group.group_id, generation=group.generation_id, reason=reason)
    if was_empty:
        delay_ms = group.settings.group_initial_rebalance_delay_ms
        wait_for_more_members(
            group, InitialDelay(delay_ms, max(group.roster.rebalance_timeout_ms - delay_ms, 0)), now, decision
        )
    elif group.roster.all_have_joined:
        complete_join(group, now, decision)
    else:
        wait_for_members(group, now, decision)


def wait_for_members(group: ClassicMembership, now: Now, decision: Decision) -> None:
    at_ms = now.steady_ms + group.roster.rebalance_timeout_ms
    decision.add_timer(GroupTimer(group.group_id, JOIN), at_ms)


def wait_for_more_members(group: ClassicMembership, delay: InitialDelay, now: Now, decision: Decision) -> None:
    group.initial_delay = delay
    group.member_came_while_waiting = False
    decision.add_timer(GroupTimer(group.group_id, JOIN), now.steady_ms + delay.delay_ms)


def join_timer_fired(group: ClassicMembership, now: Now) -> Decision:
    decision = Decision()
    if group.state is not ClassicState.PREPARING_REBALANCE:
        return decision
    delay = group.initial_delay
    if delay is not None and group.member_came_while_waiting and delay.remaining_ms > 0:
        longer_ms = min(group.settings.group_initial_rebalance_delay_ms, delay.remaining_ms)
        left_ms = max(delay.remaining_ms - delay.delay_ms, 0)
        wait_for_more_members(group, InitialDelay(longer_ms, left_ms), now, decision)
    else:
        complete_join(group, now, decision)
    return decision


def maybe_complete_join(group: ClassicMembership, now: Now, decision: Decision) -> None:
    """Complete the join if all members have joined. A group that was empty always waits for its initial delay."""
    if group.state is ClassicState.PREPARING_REBALANCE and group.initial_delay is None and group.roster.all_have_joined:
        complete_join(group, now, decision)


def complete_join(group: ClassicMembership, now: Now, decision: Decision) -> None:
    """Begin the next generation with the members that have joined. Static members may be absent for one session."""
    decision.add_timer(GroupTimer(group.group_id, JOIN), None)
    group.initial_delay = None
    for member in [each for each in group.roster if each.awaiting_join is None and not each.is_static]:
        remove_member(group, member, decision)
    if len(group.roster) and not group.roster.elect_joined_leader():
        wait_for_members(group, now, decision)
        return
    group.begin_generation(now)
    if group.is_empty:
        decision.add_record(group.record((), None, {}))
        return
    timeout_ms = group.roster.rebalance_timeout_ms
    for member in group.roster:
        group.reply_to_join(member, joined(group, member.member_id), decision)
        expect_heartbeat(group, member, now, decision)
        member.is_new = False
        group.roster.pending_sync.add(member.member_id)
    decision.add_timer(GroupTimer(group.group_id, SYNC), now.steady_ms + timeout_ms)


def sync_timer_fired(group: ClassicMembership, now: Now) -> Decision:
    """Remove the members that have not sent SyncGroup by now."""
    decision = Decision()
    silent = [group.roster[member_id] for member_id in sorted(group.roster.pending_sync)]
    if not silent or group.state not in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
        return decision
    for member in silent:
        remove_member(group, member, decision)
    names = ", ".join(member.member_id for member in silent)
    prepare_rebalance(group, f"removing [{names}] on pending sync request expiration", now, decision)
    return decision


def timer_fired(group: ClassicMembership, timer: GroupTimer, now: Now) -> Decision:
    """Handle a timer. Timers that were set while this group was a consumer group are ignored."""
    match timer.name:
        case "session":
            return session_timer_fired(group, timer.member_id, now)
        case "join":
            return join_timer_fired(group, now)
        case "sync":
            return sync_timer_fired(group, now)
        case _:
            return Decision()


def resume(group: ClassicMembership, now: Now, decision: Decision) -> None:
    """Begin the sessions of all members after the group was loaded, since it is unknown which of them are alive."""
    for member in group.roster:
        expect_heartbeat(group, member, now, decision)
    size, most = len(group.roster), group.settings.group_max_size
    if size > most:
        maybe_prepare_rebalance(group, f"{size} members were loaded where {most} may be", now, decision)
