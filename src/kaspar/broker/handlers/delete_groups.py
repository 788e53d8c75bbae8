"""DeleteGroups: deletes groups without members, and their committed offsets."""

from collections.abc import Awaitable

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.groups import GroupRuntime
from kaspar.broker.handlers.combined import combined
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from kaspar.protocol.schema import Message


class DeleteGroupsHandler:
    def __init__(self, groups: GroupRuntime) -> None:
        self._groups = groups

    def __call__(self, context: RequestContext, request: DeleteGroupsRequest) -> HandlerResult:
        return combined((self._delete(group_id) for group_id in dict.fromkeys(request.groups_names)), _response)

    def _delete(self, group_id: str) -> Message | Awaitable[Message]:
        def refused(code: ErrorCode) -> DeletableGroupResult:
            return DeletableGroupResult(group_id=group_id, error_code=code)

        return self._groups.submit(group_id, lambda shard, now: shard.delete(group_id, now), refused)


def _response(results: list[Message]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=tuple(each for each in results if isinstance(each, DeletableGroupResult)))
