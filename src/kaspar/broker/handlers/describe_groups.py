"""DescribeGroups: classic groups with their members. What became of groups that are not there, see the shard."""

from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.broker.handlers.group_answers import together
from kaspar.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

ALL_GROUP_OPERATIONS: Final = 3400
"""As bits: read, delete, describe, and describe and alter its settings."""


def handle(broker: "Broker", context: RequestContext, request: DescribeGroupsRequest) -> Answer:
    def response(described: list[Message]) -> DescribeGroupsResponse:
        groups = tuple(group for group in described if isinstance(group, DescribedGroup))
        if request.include_authorized_operations:
            groups = tuple(_with_operations(group) for group in groups)
        return DescribeGroupsResponse(groups=groups)

    return together((_describe(broker, context, group_id) for group_id in request.groups), response)


def _describe(broker: "Broker", context: RequestContext, group_id: str) -> Message | Awaitable[Message]:
    return broker.groups.runtime.ask(
        group_id,
        lambda shard, now: shard.describe(group_id, context.version, now),
        lambda code: DescribedGroup(
            error_code=code, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=()
        ),
    )


def _with_operations(group: DescribedGroup) -> DescribedGroup:
    if group.error_code != ErrorCode.NONE:
        return group
    return replace(group, authorized_operations=ALL_GROUP_OPERATIONS)
