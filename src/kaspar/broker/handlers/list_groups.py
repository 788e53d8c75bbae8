"""ListGroups: the groups that this broker coordinates. As long as some are being loaded nobody can say which."""

from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import RequestContext
from kaspar.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    runtime = broker.groups.runtime
    if runtime.loading_count:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, groups=())
    return ListGroupsResponse(
        groups=tuple(group for shard in runtime.active_shards().values() for group in shard.list_groups(request))
    )
