"""Heartbeat: a member of a classic group lives, and asks whether it has to join again.

The most frequent request of a coordinator: it takes no ticket and waits for nothing.
"""

from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: HeartbeatRequest) -> Answer:
    if not request.group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID)
    runtime = broker.groups.runtime
    try:
        shard = runtime.shard_of(request.group_id)
        response = shard.heartbeat_at_once(request, request.generation_id, broker.now())
    except Refused as refusal:
        return _refused(refusal.code)
    if response is not None:
        return response
    return runtime.submit(request.group_id, lambda shard, ticket, now: shard.heartbeat(request, ticket, now), _refused)


def _refused(code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code)
