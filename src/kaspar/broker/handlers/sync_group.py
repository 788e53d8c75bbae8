"""SyncGroup: a member requests its assignment; the leader also sends those of all members."""

from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.groups import GroupRuntime
from kaspar.broker.coordination.tickets import RequestTicket
from kaspar.groups.classic.refusals import sync_refused
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.sync_group import SyncGroupRequest

FIRST_WITH_PROTOCOL: Final = 5


class SyncGroupHandler:
    def __init__(self, groups: GroupRuntime) -> None:
        self._groups = groups

    def __call__(self, context: RequestContext, request: SyncGroupRequest) -> HandlerResult:
        if context.version >= FIRST_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
            return sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not request.group_id:
            return sync_refused(ErrorCode.INVALID_GROUP_ID)
        ticket = RequestTicket(sync_refused)
        return self._groups.submit_with_ticket(
            request.group_id, lambda shard, now: shard.sync(request, ticket, now), ticket
        )
