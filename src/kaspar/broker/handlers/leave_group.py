"""LeaveGroup: members go, each for itself or several at once by an admin tool's word."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.tickets import translated
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_WITH_SEVERAL_MEMBERS: Final = 3


def handle(broker: "Broker", context: RequestContext, request: LeaveGroupRequest) -> Answer:
    if not request.group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID)
    several = context.version >= FIRST_WITH_SEVERAL_MEMBERS
    lifted = request if several else replace(request, members=(MemberIdentity(member_id=request.member_id),))
    answer = broker.groups.runtime.submit(
        request.group_id, lambda shard, ticket, now: shard.leave(lifted, ticket, now), _refused
    )
    return answer if several else translated(answer, _lowered)


def _lowered(response: Message) -> LeaveGroupResponse:
    """Of the one member that an older request names: its code is that of the response."""
    assert isinstance(response, LeaveGroupResponse)
    if response.error_code != ErrorCode.NONE:
        return response
    (member,) = response.members
    return LeaveGroupResponse(error_code=member.error_code)


def _refused(code: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code)
