"""Removes members from a group (KIP-345)."""

from collections.abc import Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.groups import GroupMember, describe_consumer_groups
from kaspar.client.admin.session import Admin, refusal, refuse
from kaspar.client.coordinators import CoordinatorKind, request_coordinator
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

_REASON: Final = "member was removed by an admin"


def describe_group_members(admin: Admin, group_id: str) -> tuple[GroupMember, ...]:
    """The members of a group of either protocol; none if there is no such group. Raises Refused."""
    described = describe_consumer_groups(admin, [group_id])[group_id]
    if not isinstance(described, Refused):
        return described.members
    if described.code is not ErrorCode.GROUP_ID_NOT_FOUND:
        raise described
    return ()


def remove_group_members(
    admin: Admin, group_id: str, members: Sequence[GroupMember]
) -> dict[GroupMember, Refused | None]:
    """Remove members. Returns for each why it was not removed, or None. A member that still runs joins again. Raises
    Refused.
    """
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

    def attempt() -> LeaveGroupResponse:
        return admin.client.run(
            request_coordinator(
                admin.client.core,
                CoordinatorKind.GROUP,
                group_id,
                LeaveGroupRequest(group_id=group_id, members=identities),
                LeaveGroupResponse,
                resend=True,
            )
        )

    response = admin.retry("leaveGroup(api=FIND_COORDINATOR)", attempt, lambda response: response.error_code)
    refuse(response.error_code)
    codes = [refusal(each.error_code) for each in response.members]
    return dict(zip(members, codes, strict=True))
