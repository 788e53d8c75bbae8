"""Lists, describes and deletes groups (KIP-222, KIP-518, KIP-848)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.cluster import broker_ids
from kaspar.client.admin.coordinators import CoordinatorNode, ask_coordinators
from kaspar.client.admin.session import Admin, refusal, refuse
from kaspar.client.coordinators import CoordinatorKind
from kaspar.client.core import UnsupportedByPeer
from kaspar.protocol.messages import consumer_group_describe
from kaspar.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kaspar.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kaspar.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kaspar.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

CONSUMER_PROTOCOL = "consumer"
WITHOUT_MEMBERS = frozenset({"Empty", "Dead"})
"""The states of groups that only have offsets."""
_ELSEWHERE = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
"""The group does not use the new protocol, or the broker does not support it."""


class GroupType(StrEnum):
    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"
    STREAMS = "Streams"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class GroupListing:
    group_id: str
    protocol_type: str
    """Empty for a group that only has committed offsets."""
    state: str
    """Kafka's name: Stable, Empty, PreparingRebalance ..."""
    type: GroupType


@dataclass(frozen=True, slots=True)
class GroupMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...] = ()
    target_assignment: tuple[TopicPartition, ...] | None = None
    """None for a member of a classic group, like the other fields of the new protocol (KIP-848)."""
    member_epoch: int | None = None
    is_upgraded: bool | None = None
    """Whether the member uses the new protocol; None if the broker does not return it."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group_id: str
    type: GroupType
    state: str
    assignor: str
    """Empty while the group has none."""
    coordinator: CoordinatorNode
    members: tuple[GroupMember, ...]
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None
    is_simple: bool = False
    """Whether the group only commits offsets: a classic group without a protocol."""


# --- which there are --------------------------------------------------------------------------------------------------


def list_groups(admin: Admin, *, states: Collection[str] = (), types: Collection[GroupType] = ()) -> list[GroupListing]:
    """The groups of all brokers, sorted by name. If states or types are given, only groups with one of them."""
    request = ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(each.value for each in types))
    found: dict[str, GroupListing] = {}
    try:
        brokers = broker_ids(admin, "findAllBrokers")
    except Refused as refused:
        raise Refused(refused.code, "Failed to find brokers to send ListGroups") from refused
    for broker_id in brokers:
        response = admin.ask_broker("listGroups", broker_id, request, ListGroupsResponse)
        refuse(response.error_code)
        for each in response.groups:
            listing = GroupListing(each.group_id, each.protocol_type, each.group_state, _type(each.group_type))
            found[each.group_id] = listing
    return [found[group_id] for group_id in sorted(found)]


def list_consumer_groups(
    admin: Admin, *, states: Collection[str] = (), types: Collection[GroupType] = ()
) -> list[GroupListing]:
    """The groups of consumers: those of both protocols, and those that only have committed offsets."""
    wanted = types or (GroupType.CONSUMER, GroupType.CLASSIC)
    listed = list_groups(admin, states=states, types=wanted)
    return [each for each in listed if each.protocol_type in ("", CONSUMER_PROTOCOL)]


def _type(name: str) -> GroupType:
    return next((each for each in GroupType if each.lower() == name.lower()), GroupType.UNKNOWN)


# --- what they are like -----------------------------------------------------------------------------------------------


def describe_consumer_groups(admin: Admin, group_ids: Collection[str]) -> dict[str, GroupDescription | Refused]:
    """Describe groups of either protocol. A group that does not exist is refused with GROUP_ID_NOT_FOUND."""
    described = ask_coordinators(
        admin,
        "describeConsumerGroups",
        CoordinatorKind.GROUP,
        group_ids,
        lambda node, together: _describe_new(admin, node, together),
    )
    classic = [
        group_id for group_id, each in described.items() if isinstance(each, Refused) and each.code in _ELSEWHERE
    ]
    described |= ask_coordinators(
        admin,
        "describeConsumerGroups",
        CoordinatorKind.GROUP,
        classic,
        lambda node, together: _describe_classic(admin, node, together),
    )
    return described


def _describe_new(
    admin: Admin, node: CoordinatorNode, group_ids: Sequence[str]
) -> dict[str, GroupDescription | Refused]:
    request = ConsumerGroupDescribeRequest(group_ids=tuple(group_ids), include_authorized_operations=False)
    try:
        response = admin.client.request_at(node.address, request, ConsumerGroupDescribeResponse)
    except UnsupportedByPeer as problem:  # Apache Kafka before 4.0
        return dict.fromkeys(group_ids, Refused(ErrorCode.UNSUPPORTED_VERSION, str(problem)))
    return {
        each.group_id: refusal(each.error_code, each.error_message)
        or GroupDescription(
            each.group_id,
            GroupType.CONSUMER,
            each.group_state,
            each.assignor_name,
            node,
            tuple(map(_new_member, each.members)),
            each.group_epoch,
            each.assignment_epoch,
        )
        for each in response.groups
    }


def _new_member(member: consumer_group_describe.Member) -> GroupMember:
    return GroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        _partitions(member.target_assignment),
        member.member_epoch,
        {0: False, 1: True}.get(member.member_type),
    )


def _partitions(assignment: consumer_group_describe.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _describe_classic(
    admin: Admin, node: CoordinatorNode, group_ids: Sequence[str]
) -> dict[str, GroupDescription | Refused]:
    request = DescribeGroupsRequest(groups=tuple(group_ids))
    response = admin.client.request_at(node.address, request, DescribeGroupsResponse)
    return {each.group_id: _classic_group(node, each) for each in response.groups}


def _classic_group(node: CoordinatorNode, group: DescribedGroup) -> GroupDescription | Refused:
    if (refused := refusal(group.error_code, group.error_message)) is not None:
        return refused
    if group.protocol_type not in ("", CONSUMER_PROTOCOL):
        return Refused(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"GroupId {group.group_id} is not a consumer group ({group.protocol_type}).",
        )
    members = tuple(
        GroupMember(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            _classic_assignment(each.member_assignment),
        )
        for each in group.members
    )
    return GroupDescription(
        group.group_id,
        GroupType.CLASSIC,
        group.group_state,
        group.protocol_data,
        node,
        members,
        is_simple=not group.protocol_type,
    )


def _classic_assignment(octets: bytes) -> tuple[TopicPartition, ...]:
    """The partitions that the group's leader has assigned to a member; none while the group is rebalancing."""
    if not octets:
        return ()
    from kaspar.protocol.consumer_protocol import read_assignment  # most groups are described without members

    return tuple(
        TopicPartition(topic.topic, partition)
        for topic in read_assignment(octets).assigned_partitions
        for partition in topic.partitions
    )


# --- deletion ---------------------------------------------------------------------------------------------------------


def delete_groups(admin: Admin, group_ids: Collection[str]) -> dict[str, Refused | None]:
    """Delete groups. Returns for each why it was not deleted, or None: NON_EMPTY_GROUP for a group with members."""

    def ask(node: CoordinatorNode, together: Sequence[str]) -> dict[str, Refused | None]:
        request = DeleteGroupsRequest(groups_names=tuple(together))
        response = admin.client.request_at(node.address, request, DeleteGroupsResponse)
        return {each.group_id: refusal(each.error_code) for each in response.results}

    return ask_coordinators(admin, "deleteConsumerGroups", CoordinatorKind.GROUP, group_ids, ask)
