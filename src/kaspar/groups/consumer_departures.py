"""How members leave a consumer group: by their own word, for a while, because their time was up, or with the group."""

from collections.abc import Collection, Iterable

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.log import get_log
from kaspar.coordination import Decision, Now, Reply, StoredRecord, Ticket, Timer
from kaspar.groups.consumer import ConsumerGroup
from kaspar.groups.consumer_member import LEAVES_FOR_A_WHILE, NOTHING_OWNED, Member
from kaspar.groups.consumer_records import current_record, epoch_record, member_tombstones, pattern_tombstone
from kaspar.groups.consumer_states import MemberState
from kaspar.groups.consumer_timers import JOIN, REVOCATION, SESSION, SYNC
from kaspar.groups.group import GroupTimer, fenced_instance
from kaspar.groups.migration import DOWNGRADED_AND_REBALANCES, downgrade_records, may_downgrade
from kaspar.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

log = get_log(__name__)

TRY_AGAIN_AFTER_MS = 500


def leave(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, ticket: Ticket, now: Now) -> Decision:
    decision = Decision()
    if request.instance_id is None:
        fence(group, [group.member(request.member_id)], now, decision)
    else:
        member = static_member(group, request.instance_id, request.member_id)
        if request.member_epoch == LEAVES_FOR_A_WHILE:
            decision.records.append(_leaves_for_a_while(group, member))
        else:
            fence(group, [member], now, decision)
    response = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=0
    )
    decision.replies.append(Reply(ticket, response))
    return decision


def _leaves_for_a_while(group: ConsumerGroup, member: Member) -> StoredRecord:
    """It keeps what it has until its session ends, and whoever comes back to it may commit at any epoch. What it had to
    give up it has given up.
    """
    kept = {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()}
    away = member._replace(member_epoch=LEAVES_FOR_A_WHILE, assigned=kept, pending_revocation=NOTHING_OWNED)
    return current_record(group.group_id, away)


def static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> Member:
    """Refused if no member has this instance id, or one with another member id."""
    member = group.state.static_member(instance_id)
    if member is None:
        raise Refused(
            ErrorCode.UNKNOWN_MEMBER_ID, f"No member of group {group.group_id} has the instance id {instance_id}."
        )
    if member.member_id != member_id:
        raise fenced_instance(group.group_id, instance_id, member_id)
    return member


def fence(group: ConsumerGroup, members: Collection[Member], now: Now, decision: Decision) -> None:
    """These are members no longer. If only members of the classic protocol are left, the group may become a classic
    one; otherwise whoever is left is to be assigned anew.
    """
    state, group_id, surroundings = group.state, group.group_id, group.surroundings
    if not members:
        return
    decision.if_refused = lambda code, later: expect(group, members, later)
    if may_downgrade(state, members, surroundings):
        decision.records += downgrade_records(state, surroundings.topics, now, leaving=members)
        for member_id in state.members:
            group.timers.cancel(member_id, decision)
        decision.if_refused = lambda code, later: loaded(group, later)
        decision.timers.append(Timer(GroupTimer(group_id, DOWNGRADED_AND_REBALANCES), now.steady_ms))
        return
    for member in members:
        decision.records += member_tombstones(group_id, member.member_id)
        group.timers.cancel(member.member_id, decision)
    for pattern in dict.fromkeys(member.pattern for member in members if member.pattern):
        if state.pattern_subscribers[pattern] == sum(member.pattern == pattern for member in members):
            decision.records.append(pattern_tombstone(group_id, pattern))
    metadata_hash = surroundings.metadata_hash(state.subscribed_topics_without(members))
    decision.records.append(epoch_record(group_id, state.group_epoch + 1, metadata_hash))


# -- time --------------------------------------------------------------------------------------------------------------

_WHY = {
    SESSION: "its session is over",
    REVOCATION: "it has not given up its partitions in time",
    JOIN: "it has not joined again in time",
    SYNC: "it has not asked for its assignment in time",
}


def timer_fired(group: ConsumerGroup, timer: GroupTimer, now: Now) -> Decision:
    """Timers of members that are gone, or that the log refused, and of the classic group that this one was, come to
    nothing.
    """
    decision = Decision()
    member = group.state.members.get(timer.member_id)
    if member is None:
        group.timers.forget(timer.member_id)
        return decision
    if timer.name not in _WHY:
        return decision
    if timer.name == SESSION and not group.timers.session_is_over(timer.member_id, now, decision):
        return decision
    if timer.name == REVOCATION and not group.timers.revocation_is_overdue(member):
        return decision
    log.info("member fenced", group=group.group_id, member=timer.member_id, reason=_WHY[timer.name])
    fence(group, [member], now, decision)
    refused = decision.if_refused
    assert refused is not None

    def try_again(code: ErrorCode, later: Now) -> Decision:
        """The log has refused to say that its time is up: it is still up a moment later."""
        retry = refused(code, later)
        if timer.name == SESSION:
            group.timers.end_session(timer.member_id)
        retry.timers.append(Timer(timer, later.steady_ms + TRY_AGAIN_AFTER_MS))
        return retry

    decision.if_refused = try_again
    return decision


def loaded(group: ConsumerGroup, now: Now) -> Decision:
    return expect(group, group.state.members.values(), now)


def expect(group: ConsumerGroup, members: Iterable[Member], now: Now) -> Decision:
    """From now on these have to be heard from, and to give up in time what they have to."""
    decision = Decision()
    for member in members:
        group.timers.begin_session(member.member_id, session_timeout_ms(group, member), now, decision)
        if member.state is MemberState.UNREVOKED_PARTITIONS and not member.uses_classic_protocol:
            group.timers.await_revocation(member, now, decision)
    return decision


def session_timeout_ms(group: ConsumerGroup, member: Member) -> int:
    """Members of the classic protocol have named their own."""
    if member.classic is not None:
        return member.classic.session_timeout_ms
    return group.surroundings.session_timeout_ms(group.group_id)
