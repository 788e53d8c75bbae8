"""JoinGroup: a member comes into a group, or comes again, and is answered when everybody has.

Most come again while others have yet to: all that they do is wait.
"""

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.tickets import RequestTicket, translated
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.broker.handlers.group_client import client_of
from kaspar.groups.classic_answers import join_refused
from kaspar.groups.classic_member import protocols_by_name
from kaspar.groups.group import Client
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_WITH_NULL_PROTOCOL: Final = 7


def handle(broker: "Broker", context: RequestContext, request: JoinGroupRequest) -> Answer:
    code = _check(broker, request)
    if code is not ErrorCode.NONE:
        return as_of_version(context.version, join_refused(code, request.member_id))
    client = client_of(context, may_be_new=not request.member_id)
    answer = join(broker, request, protocols_by_name(request.protocols), client)
    if context.version >= FIRST_WITH_NULL_PROTOCOL:
        return answer
    return translated(answer, functools.partial(as_of_version, context.version))


def join(
    broker: "Broker", request: JoinGroupRequest, protocols: dict[str, bytes], client: Client
) -> Message | RequestTicket:
    """A request that was checked, and its protocols by name."""
    runtime = broker.groups.runtime
    return runtime.wait_at_once(
        request.group_id, lambda shard, ticket: shard.join_again(request, protocols, ticket), join_refused
    ) or runtime.submit(
        request.group_id, lambda shard, ticket, now: shard.join(request, client, ticket, now), join_refused
    )


def _check(broker: "Broker", request: JoinGroupRequest) -> ErrorCode:
    config = broker.config
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    lowest, highest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not lowest <= request.session_timeout_ms <= highest:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE


def as_of_version(version: int, response: Message) -> JoinGroupResponse:
    """Older clients know no group without a protocol: to them it has an empty name."""
    assert isinstance(response, JoinGroupResponse)
    if version >= FIRST_WITH_NULL_PROTOCOL or response.protocol_name is not None:
        return response
    return replace(response, protocol_name="")
