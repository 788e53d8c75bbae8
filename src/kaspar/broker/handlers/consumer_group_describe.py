"""ConsumerGroupDescribe: groups of the consumer protocol (KIP-848), with the assignments of their members."""

from collections.abc import Awaitable
from dataclasses import replace

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.coordination.groups import Groups
from kaspar.broker.handlers.authorized_operations import AuthorizedOperations
from kaspar.broker.handlers.combined import combined
from kaspar.coordination import Now
from kaspar.groups.shard import GroupShard
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kaspar.protocol.schema import Message


class ConsumerGroupDescribeHandler:
    def __init__(self, groups: Groups, operations: AuthorizedOperations) -> None:
        self._groups = groups
        self._operations = operations

    def __call__(self, context: RequestContext, request: ConsumerGroupDescribeRequest) -> HandlerResult:
        if not self._groups.serves_consumer_protocol:
            refused = tuple(_refused(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids)
            return ConsumerGroupDescribeResponse(groups=refused)

        def response(described: list[Message]) -> ConsumerGroupDescribeResponse:
            groups = tuple(group for group in described if isinstance(group, DescribedGroup))
            if request.include_authorized_operations:
                groups = tuple(self._with_operations(context, group) for group in groups)
            return ConsumerGroupDescribeResponse(groups=groups)

        return combined((self._describe(group_id) for group_id in request.group_ids), response)

    def _describe(self, group_id: str) -> Message | Awaitable[Message]:
        if not group_id:
            return _refused(group_id, ErrorCode.INVALID_GROUP_ID)

        def question(shard: GroupShard, now: Now) -> DescribedGroup:
            try:
                return shard.consumer_describe(group_id, now)
            except Refused as refusal:
                return _refused(group_id, refusal.code, refusal.message)

        return self._groups.runtime.ask(group_id, question, lambda code: _refused(group_id, code))

    def _with_operations(self, context: RequestContext, group: DescribedGroup) -> DescribedGroup:
        if group.error_code != ErrorCode.NONE:
            return group
        return replace(group, authorized_operations=self._operations.of_group(context, group.group_id))


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
