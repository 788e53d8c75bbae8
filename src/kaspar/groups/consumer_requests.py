"""ConsumerGroupHeartbeat: a member joins, says that it is alive and what has changed, or leaves.

Kafka's rules in Kafka's order. A heartbeat with nothing new takes a short way: it is answered without a decision.
"""

from collections.abc import Collection

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import uuid_to_text
from kaspar.coordination import Decision, Now, Reply, Ticket
from kaspar.groups import consumer_patterns
from kaspar.groups.classic import ClassicGroup
from kaspar.groups.consumer import ConsumerGroup
from kaspar.groups.consumer_departures import leave, session_timeout_ms, static_member
from kaspar.groups.consumer_member import JOINS, LEAVES, LEAVES_FOR_A_WHILE, Member, OwnedPartitions
from kaspar.groups.consumer_states import MemberState
from kaspar.groups.consumer_update import MemberUpdate, PatternChange
from kaspar.groups.group import Client, Group, unknown_member
from kaspar.groups.migration import upgrade_records
from kaspar.groups.surroundings import Surroundings
from kaspar.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
    ResponseTopicPartitions,
)

FIRST_WITH_ID_OF_CLIENT = 1
"""The first version in which members make their ids themselves."""
NOT_SAID = -1
"""A rebalance timeout that is what it was."""


def consumer_heartbeat(
    group: Group | None,
    request: ConsumerGroupHeartbeatRequest,
    client: Client,
    ticket: Ticket,
    now: Now,
    surroundings: Surroundings,
) -> Decision:
    """Whatever the group is by now. A refusal carries a sentence, so it is an answer like any other."""
    try:
        if request.member_epoch in (LEAVES, LEAVES_FOR_A_WHILE):
            return leave(_consumer_group(group, request.group_id), request, ticket, now)
        if request.member_epoch != JOINS:
            return _Heartbeat(_consumer_group(group, request.group_id), request, client, ticket, now).decide()
        if isinstance(group, ClassicGroup):
            return _join_classic_group(group, request, client, ticket, now, surroundings)
        joined = ConsumerGroup(request.group_id, surroundings) if group is None else group
        return _Heartbeat(_consumer_group(joined, request.group_id), request, client, ticket, now).decide()
    except Refused as refusal:
        return Decision(replies=[Reply(ticket, heartbeat_refused(refusal.code, refusal.message))])


def heartbeat_refused(code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=code, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )


def _consumer_group(group: Group | None, group_id: str) -> ConsumerGroup:
    if isinstance(group, ConsumerGroup):
        return group
    what = "does not exist" if group is None else "is a classic group"
    raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no consumer group {group_id}: it {what}.")


def _join_classic_group(
    classic: ClassicGroup,
    request: ConsumerGroupHeartbeatRequest,
    client: Client,
    ticket: Ticket,
    now: Now,
    surroundings: Surroundings,
) -> Decision:
    """The group as it will be when its records are replayed decides on the join; then whoever waits for the classic
    group is sent back to join what it has become.
    """
    group = ConsumerGroup(classic.group_id, surroundings)
    records = upgrade_records(classic, surroundings)
    for record in records:
        group.replay(record)
    decision = _Heartbeat(group, request, client, ticket, now).decide(upgrades=True)
    decision.records = [*classic.tombstones(), *records, *decision.records]
    for member in group.state.members.values():
        group.timers.begin_session(member.member_id, session_timeout_ms(group, member), now, decision)
    decision.replies += classic.answer_waiting(ErrorCode.REBALANCE_IN_PROGRESS)
    return decision


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """What is wrong with a request whatever its group is: Refused."""
    joins = request.member_epoch == JOINS
    if (version >= FIRST_WITH_ID_OF_CLIENT or request.member_epoch > JOINS or request.member_epoch == LEAVES) and (
        _is_blank(request.member_id)
    ):
        raise _invalid("a member id must not be empty")
    if _is_blank(request.group_id):
        raise _invalid("a group id must not be empty")
    if request.instance_id is not None and _is_blank(request.instance_id):
        raise _invalid("an instance id must not be empty")
    if request.rack_id is not None and _is_blank(request.rack_id):
        raise _invalid("a rack id must not be empty")
    if joins and request.rebalance_timeout_ms == NOT_SAID:
        raise _invalid("who joins has to say its rebalance timeout")
    if joins and request.topic_partitions != ():
        raise _invalid("who joins must not own partitions")
    if joins and request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("who joins has to say what it reads")
    if request.member_epoch == LEAVES_FOR_A_WHILE and request.instance_id is None:
        raise _invalid("only a member with an instance id can leave for a while")
    if request.member_epoch < LEAVES_FOR_A_WHILE:
        raise _invalid(f"{request.member_epoch} is no member epoch")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"Assignor {request.server_assignor} is not one of {', '.join(assignors)}.",
        )


def _is_blank(text: str) -> bool:
    return not text.strip()


def _invalid(what: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, f"Not a valid ConsumerGroupHeartbeat: {what}.")


# -- one heartbeat -----------------------------------------------------------------------------------------------------


class _Heartbeat(MemberUpdate):
    def __init__(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        client: Client,
        ticket: Ticket,
        now: Now,
    ) -> None:
        super().__init__(group, now)
        self.request = request
        self.client = client
        self.ticket = ticket

    def decide(self, *, upgrades: bool = False) -> Decision:
        """`upgrades`: the group was a classic one, maybe on its way to another assignment, and is assigned anew."""
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
        timeout_ms = self.surroundings.session_timeout_ms(self.group.group_id)
        self.group.timers.begin_session(updated.member_id, timeout_ms, self.now, self.decision)
        self.decision.replies.append(Reply(self.ticket, self._response(member, updated)))
        return self.decision

    # -- who it is -----------------------------------------------------------------------------------------------------

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
        """An instance id is taken over from a member that is away, or that uses the classic protocol: that one was not
        able to say that it leaves.
        """
        old = self.state.static_member(instance_id)
        if old is None:
            return self.known_or_new(member_id)
        if old.member_epoch != LEAVES_FOR_A_WHILE and not old.uses_classic_protocol:
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Instance id {instance_id} is in use by member {old.member_id}, which has not left.",
            )
        return self.replace_static(old, member_id)

    def _static(self, instance_id: str, member_id: str) -> Member:
        member = static_member(self.group, instance_id, member_id)
        self._check_epoch(member)
        return member

    def _check_epoch(self, member: Member) -> None:
        """A member that is one epoch behind may have missed the answer that moved it: then it has at most what it was
        told to have.
        """
        epoch = self.request.member_epoch
        if epoch in (JOINS, member.member_epoch):
            return
        missed_answer = epoch < member.member_epoch and epoch == member.previous_member_epoch
        if not (missed_answer and _is_within(self.request.topic_partitions, member.assigned)):
            raise Refused(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"Member {member.member_id} is at epoch {member.member_epoch}, not {epoch}: it must give up all "
                "partitions and join again.",
            )

    def _updated(self, member: Member) -> Member:
        """Whatever the request does not say is as it was."""
        request = self.request
        if says_nothing_new(request, self.client, member):
            return member
        names = request.subscribed_topic_names
        timeout_ms = request.rebalance_timeout_ms
        return member._replace(
            instance_id=_said(request.instance_id, member.instance_id),
            rack_id=_said(request.rack_id, member.rack_id),
            rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NOT_SAID else timeout_ms,
            server_assignor=_said(request.server_assignor, member.server_assignor),
            subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
            subscribed_topic_regex=_said(request.subscribed_topic_regex, member.subscribed_topic_regex),
            client_id=self.client.client_id,
            client_host=self.client.host,
            classic=None,
        )

    # -- what it is told -----------------------------------------------------------------------------------------------

    def _response(self, member: Member, updated: Member) -> ConsumerGroupHeartbeatResponse:
        """The assignment is told when it is another, and to whoever has told everything: that one begins anew, or has
        missed something.
        """
        request = self.request
        told_everything = (
            request.rebalance_timeout_ms != NOT_SAID
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and request.topic_partitions is not None
        )
        assignment = None
        if request.member_epoch == JOINS or told_everything or updated.assigned != member.assigned:
            assignment = Assignment(
                topic_partitions=tuple(
                    ResponseTopicPartitions(topic_id=topic_id, partitions=tuple(sorted(epochs)))
                    for topic_id, epochs in updated.assigned.items()
                )
            )
        return ConsumerGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self.surroundings.heartbeat_interval_ms(self.group.group_id),
            assignment=assignment,
        )


def says_nothing_new(request: ConsumerGroupHeartbeatRequest, client: Client, member: Member) -> bool:
    """Of what it asks for, that is: nearly always."""
    return (
        request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rebalance_timeout_ms == NOT_SAID
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


# -- the short way -----------------------------------------------------------------------------------------------------


def heartbeat_at_once(
    group: Group | None, request: ConsumerGroupHeartbeatRequest, client: Client, now: Now
) -> ConsumerGroupHeartbeatResponse | None:
    """A member that has all it is meant to have says that it is alive, and nothing has changed: the answer, and its
    session goes on. None: it is for `consumer_heartbeat` to say.
    """
    if not isinstance(group, ConsumerGroup) or group.has_to_look_at_topics:
        return None
    state, surroundings = group.state, group.surroundings
    member = state.members.get(request.member_id)
    if (
        member is None
        or request.topic_partitions is not None
        or request.member_epoch != member.member_epoch
        or request.member_epoch != state.assignment_epoch
        or request.member_epoch != state.group_epoch
        or request.member_epoch == JOINS
        or member.state is not MemberState.STABLE
        or member.instance_id != request.instance_id
        or not says_nothing_new(request, client, member)
        or (state.pattern_subscribers and consumer_patterns.are_due(group, state.pattern_subscribers, now))
        or not group.timers.move_session(request.member_id, surroundings.session_timeout_ms(group.group_id), now)
    ):
        return None
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=surroundings.heartbeat_interval_ms(group.group_id),
    )
