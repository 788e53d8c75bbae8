"""ConsumerGroupHeartbeat: a member joins, reports that it is alive and what has changed, or leaves.

The rules and their order are those of GroupMetadataManager.consumerGroupHeartbeat. The checks that do not depend on the
group are those of GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid.
"""

from collections.abc import Collection

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import uuid_to_text
from kaspar.coordination import Decision, Now
from kaspar.groups.classic.membership import ClassicMembership
from kaspar.groups.consumer import pattern_resolution
from kaspar.groups.consumer.departures import session_timeout_ms, static_member
from kaspar.groups.consumer.member import JOINS, LEAVES, LEAVES_FOR_A_WHILE, Member, OwnedPartitions
from kaspar.groups.consumer.membership import ConsumerMembership
from kaspar.groups.consumer.migration import upgrade_records
from kaspar.groups.consumer.states import MemberState
from kaspar.groups.consumer.update import MemberUpdate, PatternChange
from kaspar.groups.context import ShardContext
from kaspar.groups.group import GroupClient, unknown_member
from kaspar.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
    ResponseTopicPartitions,
)

FIRST_WITH_ID_OF_CLIENT = 1
"""The first version in which members generate their ids themselves."""
UNCHANGED = -1
"""The value of RebalanceTimeoutMs if it has not changed."""


def heartbeat(
    group: ConsumerMembership, request: ConsumerGroupHeartbeatRequest, client: GroupClient, now: Now
) -> Decision:
    """Handle the heartbeat of a member that joins or is in the group."""
    return unchanged(group, request, client, now) or _Heartbeat(group, request, client, now).decide()


def heartbeat_refused(code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=code, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )


def join_classic_group(
    classic: ClassicMembership,
    request: ConsumerGroupHeartbeatRequest,
    client: GroupClient,
    now: Now,
    context: ShardContext,
) -> Decision:
    """Upgrade a classic group and join it. The decision is made with the group as it will be when its records are
    replayed. Requests of classic members that wait are refused with REBALANCE_IN_PROGRESS.
    """
    group = ConsumerMembership(classic.group_id, context)
    records = upgrade_records(classic, context)
    for record in records:
        group.state.replay(record)
    decision = _Heartbeat(group, request, client, now).decide(upgrades=True)
    decision.records = [*classic.tombstones(), *records, *decision.records]
    for member in group.state.members.values():
        group.timers.begin_session(member.member_id, session_timeout_ms(group, member), now, decision)
    decision.add_replies(classic.refuse_waiting(ErrorCode.REBALANCE_IN_PROGRESS))
    return decision


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Refuse a request that is invalid for every group."""
    joins = request.member_epoch == JOINS
    if version >= FIRST_WITH_ID_OF_CLIENT or request.member_epoch > JOINS or request.member_epoch == LEAVES:
        _check_not_blank("MemberId", request.member_id)
    _check_not_blank("GroupId", request.group_id)
    _check_not_blank("InstanceId", request.instance_id)
    _check_not_blank("RackId", request.rack_id)
    if joins and request.rebalance_timeout_ms == UNCHANGED:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if joins and request.topic_partitions != ():
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if joins and request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    if request.member_epoch == LEAVES_FOR_A_WHILE and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    if request.member_epoch < LEAVES_FOR_A_WHILE:
        raise _invalid(f"MemberEpoch is invalid: {request.member_epoch}.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _check_not_blank(field: str, text: str | None) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{field} can't be empty.")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)


# -- one heartbeat -----------------------------------------------------------------------------------------------------


class _Heartbeat(MemberUpdate):
    def __init__(
        self,
        group: ConsumerMembership,
        request: ConsumerGroupHeartbeatRequest,
        client: GroupClient,
        now: Now,
    ) -> None:
        super().__init__(group, client, now)
        self.request = request

    def decide(self, *, upgrades: bool = False) -> Decision:
        """`upgrades`: the group was a classic one, maybe in a rebalance, and needs a new assignment."""
        request, state = self.request, self.state
        self.check_room(request.member_id)
        member = self._member(request.member_id or uuid_to_text(self.client.new_id))
        updated = self._updated(member)
        names_changed = self.write_member(member, updated)
        pattern = self.change_pattern(member, updated)
        bump = names_changed or pattern is PatternChange.RESOLVED or upgrades
        epoch = state.group_epoch
        if bump or self.group.has_to_look_at_topics:
            epoch = self.look_at_topics(member, updated, bump=bump)
        updated = self.reconcile(
            updated,
            self.target_for(member, updated, epoch),
            subscription_changed=names_changed or pattern is not PatternChange.NONE,
            owned=request.topic_partitions,
        )
        timeout_ms = self.context.session_timeout_ms(self.group.group_id)
        self.group.timers.begin_session(updated.member_id, timeout_ms, self.now, self.decision)
        self.decision.response = self._response(member, updated)
        return self.decision

    # -- the member ----------------------------------------------------------------------------------------------------

    def _member(self, member_id: str) -> Member:
        joins, instance_id = self.request.member_epoch == JOINS, self.request.instance_id
        if instance_id is not None:
            return self._joining_static(instance_id, member_id) if joins else self._static(instance_id, member_id)
        member = self.state.members.get(member_id)
        if member is None:
            if not joins:
                raise unknown_member(self.group.group_id, member_id)
            return Member(member_id)
        self._check_epoch(member)
        return member

    def _joining_static(self, instance_id: str, member_id: str) -> Member:
        """The member that joins with this instance id. An instance id is taken over from a member that has left
        temporarily, or from one that uses the classic protocol, in which it cannot leave temporarily.
        """
        old = self.state.static_member(instance_id)
        if old is None:
            return self.known_or_new(member_id)
        if old.member_epoch != LEAVES_FOR_A_WHILE and not old.uses_classic_protocol:
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {old.member_id} member.",
            )
        return self.replace_static(old, member_id)

    def _static(self, instance_id: str, member_id: str) -> Member:
        member = static_member(self.group, instance_id, member_id)
        self._check_epoch(member)
        return member

    def _check_epoch(self, member: Member) -> None:
        """Refuse another epoch than the member's. A member that is one epoch behind may have missed the response that
        moved it; it is accepted if it owns no more than it was assigned.
        """
        epoch = self.request.member_epoch
        if epoch in (JOINS, member.member_epoch):
            return
        missed_answer = epoch < member.member_epoch and epoch == member.previous_member_epoch
        if not (missed_answer and _is_within(self.request.topic_partitions, member.assigned)):
            raise Refused(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The consumer group member has a {'smaller' if epoch < member.member_epoch else 'greater'} member "
                f"epoch ({epoch}) than the one known by the group coordinator ({member.member_epoch}). The member must "
                "abandon all its partitions and rejoin.",
            )

    def _updated(self, member: Member) -> Member:
        """The member with the changes of the request. What the request leaves out stays the same."""
        request = self.request
        if _reports_nothing_new(request, self.client, member):
            return member
        names = request.subscribed_topic_names
        timeout_ms = request.rebalance_timeout_ms
        return member._replace(
            instance_id=_said(request.instance_id, member.instance_id),
            rack_id=_said(request.rack_id, member.rack_id),
            rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == UNCHANGED else timeout_ms,
            server_assignor=_said(request.server_assignor, member.server_assignor),
            subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
            subscribed_topic_regex=_said(request.subscribed_topic_regex, member.subscribed_topic_regex),
            client_id=self.client.client_id,
            client_host=self.client.host,
            classic=None,
        )

    # -- the response --------------------------------------------------------------------------------------------------

    def _response(self, member: Member, updated: Member) -> ConsumerGroupHeartbeatResponse:
        """The response, with the assignment if that has changed or if the request is a full one: then the member
        restarts, or has missed a response.
        """
        request = self.request
        is_full_request = (
            request.rebalance_timeout_ms != UNCHANGED
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and request.topic_partitions is not None
        )
        has_changed = updated.assigned is not member.assigned and updated.assigned != member.assigned
        assignment = None
        if request.member_epoch == JOINS or is_full_request or has_changed:
            assignment = Assignment(
                topic_partitions=tuple(
                    ResponseTopicPartitions(topic_id=topic_id, partitions=tuple(sorted(epochs)))
                    for topic_id, epochs in updated.assigned.items()
                )
            )
        return ConsumerGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self.context.heartbeat_interval_ms(self.group.group_id),
            assignment=assignment,
        )


def _reports_nothing_new(request: ConsumerGroupHeartbeatRequest, client: GroupClient, member: Member) -> bool:
    """Whether the member's subscription and settings stay the same, as is nearly always the case."""
    return (
        request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == UNCHANGED
        and request.server_assignor is None
        and request.rack_id is None
        and (request.instance_id is None or request.instance_id == member.instance_id)
        and client.client_id == member.client_id
        and client.host == member.client_host
        and member.classic is None
    )


def _said(said: str | None, known: str | None) -> str | None:
    return known if said is None else said


def _is_within(owned: tuple[RequestTopicPartitions, ...] | None, assigned: OwnedPartitions) -> bool:
    return owned is not None and all(
        partition in assigned.get(topic.topic_id, ()) for topic in owned for partition in topic.partitions
    )


# -- unchanged heartbeats ----------------------------------------------------------------------------------------------


def unchanged(
    group: ConsumerMembership, request: ConsumerGroupHeartbeatRequest, client: GroupClient, now: Now
) -> Decision | None:
    """Fast path for most heartbeats: the member has its target and reports nothing new. Only its session is extended,
    and the decision is that of its last such heartbeat. None if there is more to decide.
    """
    state, epoch = group.state, request.member_epoch
    member = state.members.get(request.member_id)
    if (
        member is None
        or epoch != member.member_epoch
        or epoch != state.assignment_epoch
        or epoch != state.group_epoch
        or epoch == JOINS
        or member.state is not MemberState.STABLE
        or request.topic_partitions is not None
        or request.instance_id != member.instance_id
        or not _reports_nothing_new(request, client, member)
        or group.has_to_look_at_topics
        or (state.pattern_subscribers and pattern_resolution.are_due(group, state.pattern_subscribers, now))
    ):
        return None
    context, group_id = group.context, group.group_id
    session = group.timers.extend_session(request.member_id, context.session_timeout_ms(group_id), now)
    if session is None:
        return None
    interval_ms = context.heartbeat_interval_ms(group_id)
    decision = session.unchanged
    if decision is None or session.member_epoch != epoch or session.heartbeat_interval_ms != interval_ms:
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=epoch, heartbeat_interval_ms=interval_ms
        )
        decision = session.unchanged = Decision(response=response)
        session.member_epoch, session.heartbeat_interval_ms = epoch, interval_ms
    return decision
