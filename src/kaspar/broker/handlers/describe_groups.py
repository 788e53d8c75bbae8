"""DescribeGroups: classic groups with their members. Other groups are Dead (GroupShard.describe)."""

from collections.abc import Awaitable
from dataclasses import replace

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.groups import GroupRuntime
from kaspar.broker.handlers.authorized_operations import AuthorizedOperations
from kaspar.broker.handlers.combined import combined
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kaspar.protocol.schema import Message


class DescribeGroupsHandler:
    def __init__(self, groups: GroupRuntime, operations: AuthorizedOperations) -> None:
        self._groups = groups
        self._operations = operations

    def __call__(self, context: RequestContext, request: DescribeGroupsRequest) -> HandlerResult:
        def response(described: list[Message]) -> DescribeGroupsResponse:
            groups = tuple(group for group in described if isinstance(group, DescribedGroup))
            if request.include_authorized_operations:
                groups = tuple(self._with_operations(context, group) for group in groups)
            return DescribeGroupsResponse(groups=groups)

        return combined((self._describe(context.version, group_id) for group_id in request.groups), response)

    def _describe(self, version: int, group_id: str) -> Message | Awaitable[Message]:
        return self._groups.ask(
            group_id,
            lambda shard, now: shard.describe(group_id, version, now),
            lambda code: DescribedGroup(
                error_code=code, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=()
            ),
        )

    def _with_operations(self, context: RequestContext, group: DescribedGroup) -> DescribedGroup:
        if group.error_code != ErrorCode.NONE:
            return group
        return replace(group, authorized_operations=self._operations.of_group(context, group.group_id))
