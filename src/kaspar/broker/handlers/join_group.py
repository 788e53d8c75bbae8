"""JoinGroup: a member comes into a group, or comes again, and is answered when everybody has."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.tickets import translated
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.broker.handlers.group_client import client_of
from kaspar.groups.classic_answers import join_refused
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_WITH_NULL_PROTOCOL: Final = 7


def handle(broker: "Broker", context: RequestContext, request: JoinGroupRequest) -> Answer:
    code = _check(broker, request)
    if code is not ErrorCode.NONE:
        refused = join_refused(code, request.member_id)
        return refused if context.version >= FIRST_WITH_NULL_PROTOCOL else _lowered(refused)
    client = client_of(context, may_be_new=not request.member_id)
    answer = broker.groups.runtime.submit(
        request.group_id,
        lambda shard, ticket, now: shard.join(request, client, ticket, now),
        join_refused,
    )
    return answer if context.version >= FIRST_WITH_NULL_PROTOCOL else translated(answer, _lowered)


def _check(broker: "Broker", request: JoinGroupRequest) -> ErrorCode:
    config = broker.config
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    lowest, highest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not lowest <= request.session_timeout_ms <= highest:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE


def _lowered(response: Message) -> JoinGroupResponse:
    """Older clients know no group without a protocol: to them it has an empty name."""
    assert isinstance(response, JoinGroupResponse)
    return response if response.protocol_name is not None else replace(response, protocol_name="")
