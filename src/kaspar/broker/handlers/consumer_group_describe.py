"""ConsumerGroupDescribe: groups of the consumer protocol (KIP-848), and what each member has and is to have."""

from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.broker.handlers.describe_groups import ALL_GROUP_OPERATIONS
from kaspar.broker.handlers.group_answers import together
from kaspar.coordination import Now
from kaspar.groups.shard import GroupShard
from kaspar.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: ConsumerGroupDescribeRequest) -> Answer:
    if not broker.groups.serves_consumer_protocol:
        refused = tuple(_refused(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids)
        return ConsumerGroupDescribeResponse(groups=refused)

    def response(described: list[Message]) -> ConsumerGroupDescribeResponse:
        groups = tuple(group for group in described if isinstance(group, DescribedGroup))
        if request.include_authorized_operations:
            groups = tuple(_with_operations(group) for group in groups)
        return ConsumerGroupDescribeResponse(groups=groups)

    return together((_describe(broker, group_id) for group_id in request.group_ids), response)


def _describe(broker: "Broker", group_id: str) -> Message | Awaitable[Message]:
    if not group_id:
        return _refused(group_id, ErrorCode.INVALID_GROUP_ID)

    def question(shard: GroupShard, now: Now) -> DescribedGroup:
        try:
            return shard.consumer_describe(group_id, now)
        except Refused as refusal:
            return _refused(group_id, refusal.code, refusal.message)

    return broker.groups.runtime.ask(group_id, question, lambda code: _refused(group_id, code))


def _refused(group_id: str, code: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(
        error_code=code,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )


def _with_operations(group: DescribedGroup) -> DescribedGroup:
    if group.error_code != ErrorCode.NONE:
        return group
    return replace(group, authorized_operations=ALL_GROUP_OPERATIONS)
