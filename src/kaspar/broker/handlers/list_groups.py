"""ListGroups: the groups that this broker coordinates. Refused while some of them are being loaded."""

from collections.abc import Iterable

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.groups import GroupRuntime
from kaspar.broker.handlers import slices
from kaspar.network.api import HandlerResult, PartlyEncoded, RequestContext
from kaspar.network.large_requests import LargeRequests
from kaspar.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


class ListGroupsHandler:
    def __init__(self, groups: GroupRuntime, large_requests: LargeRequests) -> None:
        self._groups = groups
        self._large_requests = large_requests

    def __call__(self, context: RequestContext, request: ListGroupsRequest) -> HandlerResult:
        code = self._groups.why_not_listed()
        if code is not ErrorCode.NONE:
            return ListGroupsResponse(error_code=code, groups=())
        shards = self._groups.active_shards().values()
        listed = (group for shard in shards for group in shard.list_groups(request))
        if sum(len(shard.groups) for shard in shards) > slices.AT_ONCE:
            return self._in_slices(listed, context.version)
        return ListGroupsResponse(groups=tuple(group for group in listed if group is not None))

    async def _in_slices(self, listed: Iterable[ListedGroup | None], version: int) -> PartlyEncoded:
        groups = await slices.encoded(self._large_requests, listed, version)
        return PartlyEncoded(ListGroupsResponse(groups=()), {"groups": groups}, {})
