"""JoinGroup: a member comes into a group, or comes again, and is answered when everybody has."""

from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
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
        return _lowered(join_refused(code, request.member_id), context.version)
    client = client_of(context, may_be_new=True)
    answer = broker.groups.runtime.submit(
        request.group_id,
        lambda shard, ticket, now: shard.join(request, client, ticket, now),
        join_refused,
    )
    if context.version >= FIRST_WITH_NULL_PROTOCOL:
        return answer
    if isinstance(answer, Message):
        return _lowered(answer, context.version)
    return _lowered_later(answer, context.version)


def _check(broker: "Broker", request: JoinGroupRequest) -> ErrorCode:
    config = broker.config
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    lowest, highest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not lowest <= request.session_timeout_ms <= highest:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE


async def _lowered_later(answer: Awaitable[Message], version: int) -> JoinGroupResponse:
    return _lowered(await answer, version)


def _lowered(response: Message, version: int) -> JoinGroupResponse:
    """Older clients know no group without a protocol: to them it has an empty name."""
    assert isinstance(response, JoinGroupResponse)
    if version < FIRST_WITH_NULL_PROTOCOL and response.protocol_name is None:
        return replace(response, protocol_name="")
    return response
