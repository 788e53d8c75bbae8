"""DeleteGroups: groups that nobody is in are forgotten, with all that they have committed."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.broker.handlers.group_answers import together
from kaspar.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: DeleteGroupsRequest) -> Answer:
    return together((_delete(broker, group_id) for group_id in dict.fromkeys(request.groups_names)), _response)


def _delete(broker: "Broker", group_id: str) -> Message | Awaitable[Message]:
    def refused(code: ErrorCode) -> DeletableGroupResult:
        return DeletableGroupResult(group_id=group_id, error_code=code)

    return broker.groups.runtime.submit(
        group_id, lambda shard, ticket, now: shard.delete(group_id, ticket, now), refused
    )


def _response(results: list[Message]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=tuple(each for each in results if isinstance(each, DeletableGroupResult)))
