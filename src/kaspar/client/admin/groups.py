"""The members of a consumer group: who they are, and their removal (KIP-345, KIP-848)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.session import Admin, refusal, refuse
from kaspar.client.coordinators import CoordinatorKind, request_coordinator
from kaspar.client.core import UnsupportedByPeer
from kaspar.client.steps import AnyResponse
from kaspar.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kaspar.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kaspar.protocol.schema import Message

_REASON: Final = "member was removed by an admin"


@dataclass(frozen=True, slots=True)
class GroupMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str


def describe_group_members(admin: Admin, group_id: str) -> list[GroupMember]:
    """Of a group of either protocol; none if there is no such group. Raises Refused."""
    try:
        return _members_of_consumer_group(admin, group_id)
    except UnsupportedByPeer:  # Apache Kafka before 4.0
        return _members_of_classic_group(admin, group_id)
    except Refused as refused:
        if refused.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return _members_of_classic_group(admin, group_id)


def remove_group_members(
    admin: Admin, group_id: str, members: Sequence[GroupMember]
) -> dict[GroupMember, Refused | None]:
    """Why each member was not removed, or None. A member that still runs joins again. Raises Refused."""
    if not members:
        return {}
    identities = tuple(
        MemberIdentity(
            member_id="" if each.group_instance_id is not None else each.member_id,
            group_instance_id=each.group_instance_id,
            reason=_REASON,
        )
        for each in members
    )
    response = _ask_coordinator(
        admin,
        "leaveGroup",
        group_id,
        LeaveGroupRequest(group_id=group_id, members=identities),
        LeaveGroupResponse,
        lambda response: response.error_code,
    )
    refuse(response.error_code)
    codes = [refusal(each.error_code) for each in response.members]
    return dict(zip(members, codes, strict=True))


def _members_of_consumer_group(admin: Admin, group_id: str) -> list[GroupMember]:
    response = _ask_coordinator(
        admin,
        "describeConsumerGroups",
        group_id,
        ConsumerGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=False),
        ConsumerGroupDescribeResponse,
        lambda response: response.groups[0].error_code,
    )
    (group,) = response.groups
    refuse(group.error_code, group.error_message)
    return [GroupMember(each.member_id, each.instance_id, each.client_id, each.client_host) for each in group.members]


def _members_of_classic_group(admin: Admin, group_id: str) -> list[GroupMember]:
    response = _ask_coordinator(
        admin,
        "describeConsumerGroups",
        group_id,
        DescribeGroupsRequest(groups=(group_id,)),
        DescribeGroupsResponse,
        lambda response: response.groups[0].error_code,
    )
    (group,) = response.groups
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return []
    refuse(group.error_code, group.error_message)
    return [
        GroupMember(each.member_id, each.group_instance_id, each.client_id, each.client_host) for each in group.members
    ]


def _ask_coordinator(
    admin: Admin,
    call: str,
    group_id: str,
    message: Message,
    response_class: type[AnyResponse],
    code_of: Callable[[AnyResponse], int],
) -> AnyResponse:
    def attempt() -> AnyResponse:
        return admin.client.run(
            request_coordinator(
                admin.client.core,
                CoordinatorKind.GROUP,
                group_id,
                message,
                response_class,
                code_of=code_of,
                resend=True,
            )
        )

    return admin.retry(f"{call}(api=FIND_COORDINATOR)", attempt, code_of)
