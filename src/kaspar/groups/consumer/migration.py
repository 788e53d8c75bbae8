"""Groups that change from one protocol to the other while their members continue to read.

Upgrade: a member of the consumer protocol joins a classic group whose members are consumers. They become members of a
consumer group, keep their partitions, and are served the classic protocol by translation (`classic_members`).
Downgrade: the last member of the consumer protocol leaves, or a member of the classic protocol takes its instance id.
The group becomes a classic group whose members are assigned their targets.

Both are one batch in the log: the tombstones of the old group, then the records of the new one. The setting
`group.consumer.migration.policy` says which of them are allowed.
"""

from collections.abc import Collection
from typing import Final

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.log import get_log
from kaspar.coordination import Now, StoredRecord
from kaspar.groups.classic.member import ClassicMember
from kaspar.groups.classic.membership import ClassicMembership
from kaspar.groups.classic.roster import Roster
from kaspar.groups.consumer.member import Member, OwnedPartitions, Partitions
from kaspar.groups.consumer.records import (
    current_record,
    epoch_record,
    group_tombstones,
    member_record,
    target_epoch_record,
    target_record,
)
from kaspar.groups.consumer.state import ConsumerState
from kaspar.groups.context import ShardContext
from kaspar.groups.group import CONSUMER_PROTOCOL_TYPE
from kaspar.groups.records import ClassicMemberMetadata, ClassicProtocol, GroupMetadataKey, GroupMetadataValue
from kaspar.groups.topics import TopicsView
from kaspar.protocol.consumer_protocol import read_assignment, read_subscription, version_of, write_assignment
from kaspar.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition

log = get_log(__name__)

DOWNGRADED: Final = "downgraded"
DOWNGRADED_AND_REBALANCES: Final = "downgraded-and-rebalances"
"""The names of the timer that wakes a classic group after a downgrade."""
NEVER_ASSIGNED: Final = 0

# -- upgrade -----------------------------------------------------------------------------------------------------------


def upgrade_records(classic: ClassicMembership, context: ShardContext) -> list[StoredRecord]:
    """The records of the consumer group that a classic group becomes; none if it is empty. Refused if it cannot."""
    if classic.is_empty:
        return []
    _check_upgrade(classic, context)
    group_id, epoch = classic.group_id, classic.generation_id
    try:
        members = [_upgraded(member, classic, context) for member in classic.roster]
    except MalformedBytes as problem:
        raise _cannot_upgrade(classic, f"the embedded consumer protocol is malformed: {problem}") from problem
    topics_read = frozenset[str]().union(*(member.subscribed_topic_names for member in members))
    targets = {
        member.member_id: {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}
        for member in members
    }
    log.info("upgrading a classic group to a consumer group", group=group_id, epoch=epoch, members=len(members))
    return [
        *(member_record(group_id, member) for member in members),
        epoch_record(group_id, epoch, context.metadata_hash(topics_read)),
        *(target_record(group_id, member_id, target) for member_id, target in targets.items()),
        target_epoch_record(group_id, epoch, NEVER_ASSIGNED),
        *(current_record(group_id, member) for member in members),
    ]


def _check_upgrade(classic: ClassicMembership, context: ShardContext) -> None:
    if not context.upgrades:
        raise _cannot_upgrade(classic, "online upgrade is disabled")
    if not classic.uses_consumer_protocol:
        raise _cannot_upgrade(classic, "the group does not use the consumer embedded protocol")
    if len(classic.roster) > context.settings.group_consumer_max_size:
        raise _cannot_upgrade(classic, "the group size exceeds the consumer group maximum size")


def _cannot_upgrade(classic: ClassicMembership, why: str) -> Refused:
    return Refused(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}.",
    )


def _upgraded(member: ClassicMember, classic: ClassicMembership, context: ShardContext) -> Member:
    """The member with its last assignment, also during a rebalance: it will have to rejoin."""
    epoch = classic.generation_id
    protocol = classic.protocol_name if classic.protocol_name in member.protocols else next(iter(member.protocols))
    subscription = read_subscription(member.protocols[protocol or ""])
    assigned = {}
    if member.assignment:
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise _cannot_upgrade(classic, "an unsupported custom assignor is in use")
        for assigned_topic in assignment.assigned_partitions:
            view = context.topic(assigned_topic.topic)
            if view is not None and assigned_topic.partitions:
                assigned[view.topic_id] = dict.fromkeys(assigned_topic.partitions, epoch)
    return Member(
        member.member_id,
        member_epoch=epoch,
        previous_member_epoch=epoch,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        classic=classic_metadata(member.session_timeout_ms, member.protocols),
        assigned=assigned,
    )


def named_partitions(partitions: Partitions | OwnedPartitions, topics: TopicsView) -> ConsumerProtocolAssignment:
    """The partitions as an assignment of the classic protocol. Deleted topics have no name, and are left out."""
    return ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            TopicPartition(topic=name, partitions=tuple(sorted(partitions[topic_id])))
            for topic_id in partitions
            if (name := topics.name_of(topic_id)) is not None
        )
    )


def classic_metadata(session_timeout_ms: int, protocols: dict[str, bytes]) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=tuple(ClassicProtocol(name=name, metadata=data) for name, data in protocols.items()),
    )


# -- downgrade ---------------------------------------------------------------------------------------------------------


def may_downgrade(
    state: ConsumerState, leaving: Collection[Member], context: ShardContext, joining: Member | None = None
) -> bool:
    """Whether only members of the classic protocol would remain, and the settings allow a classic group of them."""
    left = len(state.members) - len(leaving) + (joining is not None)
    classic_left = state.classic_count - sum(member.uses_classic_protocol for member in leaving)
    classic_left += joining is not None and joining.uses_classic_protocol
    return left > 0 and classic_left == left and context.downgrades and left <= context.settings.group_max_size


def downgrade_records(
    state: ConsumerState,
    topics: TopicsView,
    now: Now,
    *,
    leaving: Collection[Member],
    joining: Member | None = None,
) -> list[StoredRecord]:
    """The records of a downgrade. `joining` replaces the static member that is leaving; the records of the replacement
    come before these.
    """
    gone = {member.member_id for member in leaving}
    stays = [member for member in state.members.values() if member.member_id not in gone]
    if joining is not None:
        stays.append(joining)
    assignments: dict[str, bytes] = {}
    roster = Roster()
    for member in stays:
        roster.add(_downgraded(member))
    protocol = roster.elect_protocol()
    for member in stays:
        target = state.target_of(member.member_id, member.instance_id)
        version = version_of(roster[member.member_id].protocols[protocol])
        assignments[member.member_id] = write_assignment(named_partitions(target, topics), version)
    value = GroupMetadataValue(
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        generation=state.group_epoch,
        protocol=protocol,
        leader=roster.leader_id,
        current_state_timestamp=now.wall_ms,
        members=tuple(member.as_stored(protocol, assignments[member.member_id]) for member in roster),
    )
    tombstoned = [member_id for member_id in state.members if joining is None or member_id not in gone]
    if joining is not None:
        tombstoned.append(joining.member_id)
    log.info(
        "downgrading a consumer group to a classic group",
        group=state.group_id,
        generation=state.group_epoch,
        members=len(stays),
    )
    return [
        *group_tombstones(state.group_id, tombstoned, state.resolved),
        StoredRecord(GroupMetadataKey(group=state.group_id), value),
    ]


def _downgraded(member: Member) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocols={protocol.name: protocol.metadata for protocol in member.classic.supported_protocols},
    )
