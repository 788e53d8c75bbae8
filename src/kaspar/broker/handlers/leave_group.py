"""LeaveGroup: a member leaves, or an admin tool removes several."""

from dataclasses import replace
from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.groups import GroupRuntime
from kaspar.broker.coordination.tickets import translated
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kaspar.protocol.schema import Message

FIRST_WITH_SEVERAL_MEMBERS: Final = 3


class LeaveGroupHandler:
    def __init__(self, groups: GroupRuntime) -> None:
        self._groups = groups

    def __call__(self, context: RequestContext, request: LeaveGroupRequest) -> HandlerResult:
        if not request.group_id:
            return _refused(ErrorCode.INVALID_GROUP_ID)
        several = context.version >= FIRST_WITH_SEVERAL_MEMBERS
        lifted = request if several else replace(request, members=(MemberIdentity(member_id=request.member_id),))
        response = self._groups.submit(request.group_id, lambda shard, now: shard.leave(lifted, now), _refused)
        return response if several else translated(response, _lowered)


def _lowered(response: Message) -> LeaveGroupResponse:
    """The response for an older version, which names one member: the error of that member."""
    assert isinstance(response, LeaveGroupResponse)
    if response.error_code != ErrorCode.NONE:
        return response
    (member,) = response.members
    return LeaveGroupResponse(error_code=member.error_code)


def _refused(code: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code)
