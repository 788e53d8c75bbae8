"""Members that use the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup by
translation.

The epoch of such a member is its generation. JoinGroup is a full heartbeat, and takes the next step towards the
member's target; SyncGroup returns the resulting assignment, and no leader assigns partitions. Heartbeat returns
REBALANCE_IN_PROGRESS when there is a step to take: a new epoch, partitions to revoke, or partitions that are free now.
"""

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.ids import uuid_to_text
from kaspar.coordination import Decision, Now
from kaspar.groups.classic.member import protocols_by_name
from kaspar.groups.classic.refusals import join_refused
from kaspar.groups.consumer.departures import fence, loaded, session_timeout_ms, static_member
from kaspar.groups.consumer.member import Member
from kaspar.groups.consumer.membership import ConsumerMembership
from kaspar.groups.consumer.migration import (
    DOWNGRADED,
    DOWNGRADED_AND_REBALANCES,
    classic_metadata,
    downgrade_records,
    may_downgrade,
    named_partitions,
)
from kaspar.groups.consumer.states import MemberState
from kaspar.groups.consumer.update import MemberUpdate, PatternChange
from kaspar.groups.group import CONSUMER_PROTOCOL_TYPE, GroupClient, GroupTimer
from kaspar.protocol.consumer_protocol import read_subscription, version_of, write_assignment
from kaspar.protocol.messages.consumer_group_heartbeat import RequestTopicPartitions
from kaspar.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from kaspar.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

UNKNOWN_MEMBER_ID = ""
FIRST_JOIN_WITH_REBALANCE_TIMEOUT = 1
FIRST_JOIN_WITH_REQUIRED_MEMBER_ID = 4

# -- JoinGroup ---------------------------------------------------------------------------------------------------------


def join(group: ConsumerMembership, request: JoinGroupRequest, client: GroupClient, now: Now) -> Decision:
    try:
        return _Join(group, request, client, now).decide()
    except Refused as refusal:
        return Decision(response=join_refused(refusal.code, request.member_id))


class _Join(MemberUpdate):
    def __init__(self, group: ConsumerMembership, request: JoinGroupRequest, client: GroupClient, now: Now) -> None:
        super().__init__(group, client, now)
        self.request = request
        self.protocols = protocols_by_name(request.protocols)
        self.cancelled_timers = False

    def _refused(self, code: ErrorCode, now: Now) -> Decision:
        super()._refused(code, now)
        return loaded(self.group, now) if self.cancelled_timers else Decision()

    def decide(self) -> Decision:
        request, group = self.request, self.group
        is_unknown = request.member_id == UNKNOWN_MEMBER_ID
        member_id = uuid_to_text(self.client.new_id) if is_unknown else request.member_id
        self.check_room(member_id)
        self._check_protocols()
        if is_unknown and self._has_to_come_with_an_id():
            self.decision.response = join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)
            return self.decision
        subscription = self._subscription()
        old = self.state.static_member(request.group_instance_id) if request.group_instance_id is not None else None
        member = self._member(member_id, old, is_unknown)
        updated = self._updated(member, subscription)
        names_changed = self.write_member(member, updated)
        changed = self.change_pattern(member, updated) is not PatternChange.NONE or names_changed
        epoch = self.state.group_epoch
        if changed or group.has_to_look_at_topics:
            epoch = self.look_at_topics(member, updated, bump=changed)
        owned = self._owned(subscription)
        if old is not None and self._takes_the_group_back(old, updated):
            if not changed:
                last = self.last_target(updated)
                updated = self.reconcile(updated, last, subscription_changed=False, owned=owned)
            self._downgrade(old, updated, rebalance=changed)
        else:
            target = self.target_for(member, updated, epoch)
            updated = self.reconcile(updated, target, subscription_changed=changed, owned=owned)
            group.timers.begin_session(updated.member_id, request.session_timeout_ms, self.now, self.decision)
            group.timers.joined(updated, self.now, self.decision)
        self.decision.response = _joined(updated)
        return self.decision

    # -- the member ----------------------------------------------------------------------------------------------------

    def _has_to_come_with_an_id(self) -> bool:
        return self.request.group_instance_id is None and self.client.api_version >= FIRST_JOIN_WITH_REQUIRED_MEMBER_ID

    def _check_protocols(self) -> None:
        """Refused unless one of the member's protocols is supported by all members that use the classic protocol."""
        counts, others = self.state.classic_protocols, self.state.classic_count
        supported = any(counts.get(name, 0) == others for name in self.protocols)
        if self.request.protocol_type != CONSUMER_PROTOCOL_TYPE or not supported:
            raise Refused(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Group {self.group.group_id} supports none of the protocols of member {self.request.member_id!r}.",
            )

    def _subscription(self) -> ConsumerProtocolSubscription:
        """The member's subscription, which is the same in all of its protocols."""
        try:
            return read_subscription(next(iter(self.protocols.values())))
        except MalformedBytes as problem:
            raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"A subscription cannot be read: {problem}") from None

    def _member(self, member_id: str, old: Member | None, is_unknown: bool) -> Member:
        instance_id = self.request.group_instance_id
        if instance_id is None:
            return self.known_or_new(member_id)
        if not is_unknown:
            return static_member(self.group, instance_id, member_id)
        return self.known_or_new(member_id) if old is None else self.replace_static(old, member_id)

    def _updated(self, member: Member, subscription: ConsumerProtocolSubscription) -> Member:
        request = self.request
        timeout_ms = request.rebalance_timeout_ms
        if self.client.api_version < FIRST_JOIN_WITH_REBALANCE_TIMEOUT:
            timeout_ms = request.session_timeout_ms
        return member._replace(
            instance_id=request.group_instance_id or member.instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topic_names=frozenset(subscription.topics),
            subscribed_topic_regex="",
            client_id=self.client.client_id,
            client_host=self.client.host,
            classic=classic_metadata(request.session_timeout_ms, self.protocols),
        )

    def _owned(self, subscription: ConsumerProtocolSubscription) -> list[RequestTopicPartitions]:
        topic = self.context.topic
        return [
            RequestTopicPartitions(topic_id=view.topic_id, partitions=owned.partitions)
            for owned in subscription.owned_partitions
            if (view := topic(owned.topic)) is not None
        ]

    # -- downgrade -----------------------------------------------------------------------------------------------------

    def _takes_the_group_back(self, old: Member, updated: Member) -> bool:
        """Whether the member replaces the last static member of the consumer protocol, which downgrades the group."""
        return not old.uses_classic_protocol and may_downgrade(self.state, [old], self.context, updated)

    def _downgrade(self, old: Member, updated: Member, *, rebalance: bool) -> None:
        decision, group = self.decision, self.group
        decision.add_records(
            downgrade_records(self.state, self.context.topics, self.now, leaving=[old], joining=updated)
        )
        for member_id in self.state.members:
            group.timers.cancel(member_id, decision)
        self.cancelled_timers = True
        name = DOWNGRADED_AND_REBALANCES if rebalance else DOWNGRADED
        decision.add_timer(GroupTimer(group.group_id, name), self.now.steady_ms)


def _joined(member: Member) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=_protocol_name(member),
        leader="",
        member_id=member.member_id,
        members=(),
    )


def _protocol_name(member: Member) -> str:
    assert member.classic is not None
    return member.classic.supported_protocols[0].name


# -- SyncGroup ---------------------------------------------------------------------------------------------------------


def sync(group: ConsumerMembership, request: SyncGroupRequest, now: Now) -> Decision:
    """Return the member's assignment. A member that has to rejoin first gets REBALANCE_IN_PROGRESS, unless it has
    already joined and has yet to revoke partitions: for that it needs to know which ones remain.
    """
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    _check_protocol(group, member, request)
    decision = Decision()
    if group.state.group_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        group.timers.owes_join(member, now, decision)
        response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, assignment=b"")
    else:
        group.timers.synced(member.member_id, decision)
        group.timers.begin_session(member.member_id, session_timeout_ms(group, member), now, decision)
        response = SyncGroupResponse(
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=_protocol_name(member),
            assignment=_assignment_of(group, member),
        )
    decision.response = response
    return decision


def _assignment_of(group: ConsumerMembership, member: Member) -> bytes:
    assert member.classic is not None
    version = version_of(member.classic.supported_protocols[0].metadata)
    return write_assignment(named_partitions(member.assigned, group.context.topics), version)


def _check_protocol(group: ConsumerMembership, member: Member, request: SyncGroupRequest) -> None:
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        _protocol_name(member),
    ):
        raise Refused(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {member.member_id} of group {group.group_id} joined with {_protocol_name(member)}, not with "
            f"{request.protocol_type} {request.protocol_name}.",
        )


# -- Heartbeat ---------------------------------------------------------------------------------------------------------


def heartbeat(group: ConsumerMembership, request: HeartbeatRequest, now: Now) -> Decision:
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    decision = Decision()
    group.timers.begin_session(member.member_id, session_timeout_ms(group, member), now, decision)
    response = HeartbeatResponse()
    if _has_a_step_to_take(group, member):
        group.timers.owes_join(member, now, decision)
        response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    decision.response = response
    return decision


def _has_a_step_to_take(group: ConsumerMembership, member: Member) -> bool:
    if member.member_epoch < group.state.group_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(group, member)


def _waits_for_others(group: ConsumerMembership, member: Member) -> bool:
    target = group.state.target_of(member.member_id, member.instance_id)
    return any(
        partition not in member.assigned.get(topic_id, ()) and group.state.is_owned(topic_id, partition)
        for topic_id, partitions in target.items()
        for partition in partitions
    )


# -- LeaveGroup --------------------------------------------------------------------------------------------------------


def leave(group: ConsumerMembership, request: LeaveGroupRequest, now: Now) -> Decision:
    """Remove members, whichever protocol they use: admin tools also remove static members with LeaveGroup."""
    decision = Decision()
    leaving: dict[str, Member] = {}
    responses = []
    for identity in request.members:
        code = ErrorCode.NONE
        try:
            member = _leaving_member(group, identity)
            leaving[member.member_id] = member
        except Refused as refusal:
            code = refusal.code
        responses.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
        )
    fence(group, leaving.values(), now, decision)
    decision.response = LeaveGroupResponse(members=tuple(responses))
    return decision


def _leaving_member(group: ConsumerMembership, identity: MemberIdentity) -> Member:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    member_id = identity.member_id
    if member_id == UNKNOWN_MEMBER_ID:
        member_id = group.state.static_ids.get(identity.group_instance_id, "")
    return static_member(group, identity.group_instance_id, member_id)


def _classic_member(group: ConsumerMembership, member_id: str, instance_id: str | None, generation_id: int) -> Member:
    member = group.member(member_id) if instance_id is None else static_member(group, instance_id, member_id)
    if not member.uses_classic_protocol:
        raise Refused(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} of group {group.group_id} uses the consumer protocol."
        )
    if generation_id != member.member_epoch:
        raise Refused(
            ErrorCode.ILLEGAL_GENERATION,
            f"Member {member_id} of group {group.group_id} is at epoch {member.member_epoch}, not {generation_id}.",
        )
    return member
