"""Heartbeat: a member of a classic group reports that it is alive, and learns whether it has to rejoin."""

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.groups import GroupRuntime
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class HeartbeatHandler:
    def __init__(self, groups: GroupRuntime) -> None:
        self._groups = groups

    def __call__(self, context: RequestContext, request: HeartbeatRequest) -> HandlerResult:
        if not request.group_id:
            return _refused(ErrorCode.INVALID_GROUP_ID)
        return self._groups.submit(request.group_id, lambda shard, now: shard.heartbeat(request, now), _refused)


def _refused(code: ErrorCode) -> HeartbeatResponse:
    """The response with an error. While the group is loading, its members count as alive (Kafka's
    GroupCoordinatorService.heartbeat): some clients give up when a heartbeat gets COORDINATOR_LOAD_IN_PROGRESS.
    """
    return HeartbeatResponse(error_code=ErrorCode.NONE if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code)
