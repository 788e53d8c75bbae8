"""ListGroups: the groups that this broker coordinates. As long as some are being loaded nobody can say which."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import Answer, PartlyEncoded, RequestContext, slices
from kaspar.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: ListGroupsRequest) -> Answer:
    runtime = broker.groups.runtime
    if runtime.loading_count:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, groups=())
    shards = runtime.active_shards().values()
    listed = (group for shard in shards for group in shard.list_groups(request))
    if sum(len(shard.groups) for shard in shards) > slices.AT_ONCE:
        return _in_slices(broker, listed, context.version)
    return ListGroupsResponse(groups=tuple(group for group in listed if group is not None))


async def _in_slices(broker: "Broker", listed: Iterable[ListedGroup | None], version: int) -> PartlyEncoded:
    return PartlyEncoded(ListGroupsResponse(groups=()), {"groups": await slices.encoded(broker, listed, version)}, {})
