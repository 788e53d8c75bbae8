"""SyncGroup: a member asks for its assignment; the leader brings everybody's.

Most ask when it is there already, and wait for nothing; or before the leader has brought it, and only wait.
"""

from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.groups.classic_answers import sync_refused
from kaspar.protocol.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_WITH_PROTOCOL: Final = 5


def handle(broker: "Broker", context: RequestContext, request: SyncGroupRequest) -> Answer:
    if context.version >= FIRST_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        return sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return sync_refused(ErrorCode.INVALID_GROUP_ID)
    runtime = broker.groups.runtime
    shard = runtime.settled_shard_of(request.group_id)
    response = None if shard is None else shard.sync_at_once(request)
    if response is not None:
        return response
    ticket = runtime.wait_at_once(
        request.group_id,
        lambda shard, ticket: shard.await_assignment(request, request.generation_id, ticket),
        sync_refused,
    )
    return ticket or runtime.submit(
        request.group_id, lambda shard, ticket, now: shard.sync(request, ticket, now), sync_refused
    )
