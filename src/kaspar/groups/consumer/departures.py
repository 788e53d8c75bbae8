"""How members leave a consumer group: on request, temporarily (static members), or because of a timeout."""

from collections.abc import Collection, Iterable

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.log import get_log
from kaspar.coordination import Decision, Now, StoredRecord
from kaspar.groups.consumer.member import LEAVES_FOR_A_WHILE, NOTHING_OWNED, Member
from kaspar.groups.consumer.membership import ConsumerMembership
from kaspar.groups.consumer.migration import DOWNGRADED_AND_REBALANCES, downgrade_records, may_downgrade
from kaspar.groups.consumer.records import current_record, epoch_record, member_tombstones, pattern_tombstone
from kaspar.groups.consumer.states import MemberState
from kaspar.groups.consumer.timers import JOIN, REVOCATION, SESSION, SYNC
from kaspar.groups.group import GroupTimer, fenced_instance
from kaspar.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

log = get_log(__name__)

TRY_AGAIN_AFTER_MS = 500


def leave(group: ConsumerMembership, request: ConsumerGroupHeartbeatRequest, now: Now) -> Decision:
    decision = Decision()
    if request.instance_id is None:
        fence(group, [group.member(request.member_id)], now, decision)
    else:
        member = static_member(group, request.instance_id, request.member_id)
        if request.member_epoch == LEAVES_FOR_A_WHILE:
            decision.add_record(_leaves_for_a_while(group, member))
        else:
            fence(group, [member], now, decision)
    decision.response = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=0
    )
    return decision


def _leaves_for_a_while(group: ConsumerMembership, member: Member) -> StoredRecord:
    """The record of a static member that leaves temporarily. It keeps its partitions until its session ends, except
    those that it had to revoke, and the instance may commit at any epoch when it is back.
    """
    kept = {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()}
    away = member._replace(member_epoch=LEAVES_FOR_A_WHILE, assigned=kept, pending_revocation=NOTHING_OWNED)
    return current_record(group.group_id, away)


def static_member(group: ConsumerMembership, instance_id: str, member_id: str) -> Member:
    """Return the static member. Refused if no member has this instance id, or if it has another member id."""
    member = group.state.static_member(instance_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise fenced_instance(instance_id, member_id, member.member_id)
    return member


def fence(group: ConsumerMembership, members: Collection[Member], now: Now, decision: Decision) -> None:
    """Remove these members. If only members of the classic protocol remain, the group may be downgraded to a classic
    one; otherwise the group's epoch is bumped, so that the remaining members get a new assignment.
    """
    state, group_id, context = group.state, group.group_id, group.context
    if not members:
        return
    decision.if_refused = lambda code, later: expect(group, members, later)
    if may_downgrade(state, members, context):
        decision.add_records(downgrade_records(state, context.topics, now, leaving=members))
        for member_id in state.members:
            group.timers.cancel(member_id, decision)
        decision.if_refused = lambda code, later: loaded(group, later)
        decision.add_timer(GroupTimer(group_id, DOWNGRADED_AND_REBALANCES), now.steady_ms)
        return
    for member in members:
        decision.add_records(member_tombstones(group_id, member.member_id))
        group.timers.cancel(member.member_id, decision)
        group.current_records.forget(member.member_id)
    for pattern in dict.fromkeys(member.pattern for member in members if member.pattern):
        if state.pattern_subscribers[pattern] == sum(member.pattern == pattern for member in members):
            decision.add_record(pattern_tombstone(group_id, pattern))
    metadata_hash = context.metadata_hash(state.subscribed_topics_without(members))
    decision.add_record(epoch_record(group_id, state.group_epoch + 1, metadata_hash))


# -- timers ------------------------------------------------------------------------------------------------------------

_WHY = {
    SESSION: "the member session expired",
    REVOCATION: "the member failed to revoke its partitions within the rebalance timeout",
    JOIN: "the member failed to join within the rebalance timeout",
    SYNC: "the member failed to sync within the rebalance timeout",
}


def timer_fired(group: ConsumerMembership, timer: GroupTimer, now: Now) -> Decision:
    """Fence the member whose time is up. Timers have no effect if their member has left or was refused by the log, or
    if they were set while this group was a classic group.
    """
    decision = Decision()
    member = group.state.members.get(timer.member_id)
    if member is None:
        group.timers.forget(timer.member_id)
        group.current_records.forget(timer.member_id)
        return decision
    if timer.name not in _WHY:
        return decision
    if timer.name == SESSION and not group.timers.session_is_over(timer.member_id, now, decision):
        return decision
    if timer.name == REVOCATION and not group.timers.revocation_is_overdue(member):
        return decision
    log.info("fencing a member", group=group.group_id, member=timer.member_id, reason=_WHY[timer.name])
    fence(group, [member], now, decision)
    refused = decision.if_refused
    assert refused is not None

    def try_again(code: ErrorCode, later: Now) -> Decision:
        """Retry: the log has refused to remove the member."""
        retry = refused(code, later)
        if timer.name == SESSION:
            group.timers.end_session(timer.member_id)
        retry.add_timer(timer, later.steady_ms + TRY_AGAIN_AFTER_MS)
        return retry

    decision.if_refused = try_again
    return decision


def loaded(group: ConsumerMembership, now: Now) -> Decision:
    return expect(group, group.state.members.values(), now)


def expect(group: ConsumerMembership, members: Iterable[Member], now: Now) -> Decision:
    """Begin the sessions of these members, and the time that they have to revoke partitions."""
    decision = Decision()
    for member in members:
        group.timers.begin_session(member.member_id, session_timeout_ms(group, member), now, decision)
        if member.state is MemberState.UNREVOKED_PARTITIONS and not member.uses_classic_protocol:
            group.timers.await_revocation(member, now, decision)
    return decision


def session_timeout_ms(group: ConsumerMembership, member: Member) -> int:
    """The member's own session timeout if it uses the classic protocol, otherwise the group's."""
    if member.classic is not None:
        return member.classic.session_timeout_ms
    return group.context.session_timeout_ms(group.group_id)
