"""JoinGroup: a member joins a group, or rejoins it. The response waits until all members have joined."""

import functools
from dataclasses import replace
from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.clients import DescribesOf, client_of
from kaspar.broker.coordination.groups import GroupRuntime
from kaspar.broker.coordination.tickets import RequestTicket, translated
from kaspar.broker.services import CurrentSettings
from kaspar.groups.classic.refusals import join_refused
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kaspar.protocol.schema import Message

FIRST_WITH_NULL_PROTOCOL: Final = 7


class JoinGroupHandler:
    def __init__(
        self, groups: GroupRuntime, settings: CurrentSettings, describes_of: DescribesOf | None = None
    ) -> None:
        self._groups = groups
        self._describes_of = describes_of
        self._settings = settings

    def __call__(self, context: RequestContext, request: JoinGroupRequest) -> HandlerResult:
        code = self._check(request)
        if code is not ErrorCode.NONE:
            return as_of_version(context.version, join_refused(code, request.member_id))
        client = client_of(context, may_be_new=not request.member_id, describes_of=self._describes_of)
        ticket = RequestTicket(join_refused)
        response = self._groups.submit_with_ticket(
            request.group_id, lambda shard, now: shard.join(request, client, ticket, now), ticket
        )
        if context.version >= FIRST_WITH_NULL_PROTOCOL:
            return response
        return translated(response, functools.partial(as_of_version, context.version))

    def _check(self, request: JoinGroupRequest) -> ErrorCode:
        config = self._settings.config
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        lowest, highest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
        if not lowest <= request.session_timeout_ms <= highest:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        return ErrorCode.NONE


def as_of_version(version: int, response: Message) -> JoinGroupResponse:
    """The response for this version: in older ones the protocol cannot be null and has an empty name instead."""
    assert isinstance(response, JoinGroupResponse)
    if version >= FIRST_WITH_NULL_PROTOCOL or response.protocol_name is not None:
        return response
    return replace(response, protocol_name="")
