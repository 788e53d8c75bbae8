"""Guards of the APIs of groups and committed offsets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kaspar.acls.acl import AclOperation, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ZERO_UUID
from kaspar.broker.authorization.guards import (
    Call,
    Each,
    Guard,
    Need,
    Whole,
    denied_names,
    filtered,
    need,
    then,
    with_elements,
)
from kaspar.groups.classic.refusals import join_refused, sync_refused
from kaspar.groups.consumer.requests import heartbeat_refused
from kaspar.network.api import HandlerResult, RequestContext, Response
from kaspar.protocol.messages import consumer_group_describe, describe_groups
from kaspar.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from kaspar.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kaspar.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from kaspar.protocol.messages.describe_groups import DescribeGroupsResponse
from kaspar.protocol.messages.heartbeat import HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest
from kaspar.protocol.messages.leave_group import LeaveGroupResponse
from kaspar.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kaspar.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kaspar.protocol.messages.sync_group import SyncGroupRequest
from kaspar.protocol.schema import Message

_FIRST_WITH_NULL_PROTOCOL: Final = 7
_FIRST_WITH_PROTOCOL: Final = 5

READ_GROUP: Final = need(AclOperation.READ, ResourceType.GROUP)
DESCRIBE_GROUP: Final = need(AclOperation.DESCRIBE, ResourceType.GROUP)
READ_TOPIC: Final = need(AclOperation.READ, ResourceType.TOPIC)
DESCRIBE_TOPIC: Final = need(AclOperation.DESCRIBE, ResourceType.TOPIC)


def _group_id(request: Any) -> str:
    group_id: str = request.group_id
    return group_id


# -- members of classic groups -----------------------------------------------------------------------------------------


def _join_group(context: RequestContext, request: JoinGroupRequest, code: ErrorCode) -> Message:
    response = join_refused(code)
    return response if context.version >= _FIRST_WITH_NULL_PROTOCOL else replace(response, protocol_name="")


def _sync_group(context: RequestContext, request: SyncGroupRequest, code: ErrorCode) -> Message:
    if context.version >= _FIRST_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        return sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return sync_refused(code)


def _heartbeat(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return HeartbeatResponse(error_code=code)


def _leave_group(context: RequestContext, request: Any, code: ErrorCode) -> Message:
    return LeaveGroupResponse(error_code=code)


JOIN_GROUP: Final[Guard] = Whole(READ_GROUP, _join_group, _group_id)
SYNC_GROUP: Final[Guard] = Whole(READ_GROUP, _sync_group, _group_id)
HEARTBEAT: Final[Guard] = Whole(READ_GROUP, _heartbeat, _group_id)
LEAVE_GROUP: Final[Guard] = Whole(READ_GROUP, _leave_group, _group_id)


# -- groups as a whole -------------------------------------------------------------------------------------------------


def _undescribed(group_id: str, code: ErrorCode) -> Message:
    return describe_groups.DescribedGroup(
        error_code=code, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=()
    )


def _undeleted(group_id: str, code: ErrorCode) -> Message:
    return DeletableGroupResult(group_id=group_id, error_code=code)


def _itself(group_id: Any) -> str:
    return str(group_id)


DESCRIBE_GROUPS: Final[Guard] = Each(
    DESCRIBE_GROUP,
    "groups",
    "groups",
    _itself,
    _undescribed,
    lambda refused: DescribeGroupsResponse(groups=refused),
    refused_first=True,
)
DELETE_GROUPS: Final[Guard] = Each(
    need(AclOperation.DELETE, ResourceType.GROUP),
    "groups_names",
    "results",
    _itself,
    _undeleted,
    lambda refused: DeleteGroupsResponse(results=refused),
    refused_first=True,
    distinct=True,
)


@dataclass(frozen=True, slots=True)
class ListGroups:
    """DESCRIBE on the cluster shows all groups; otherwise the client sees the groups that it may describe."""

    needs: tuple[Need, ...] = (
        Need(AclOperation.DESCRIBE, ResourceType.CLUSTER, "DESCRIBE on each group is required"),
        Need(AclOperation.DESCRIBE, ResourceType.GROUP, "the group is omitted"),
    )

    def __call__(self, call: Call, request: ListGroupsRequest) -> HandlerResult:
        caller = call.caller
        if caller.is_authorized_on_cluster(AclOperation.DESCRIBE, quietly=True):
            return call.proceed(request)
        return filtered(
            call.proceed(request),
            "groups",
            ListedGroup,
            lambda group: caller.is_authorized(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id, quietly=True),
            call.context.version,
        )


LIST_GROUPS: Final[Guard] = ListGroups()


# -- groups of the consumer protocol (KIP-848) -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeat:
    needs: tuple[Need, ...] = (READ_GROUP, replace(DESCRIBE_TOPIC, of="subscribed topic names"))

    def __call__(self, call: Call, request: ConsumerGroupHeartbeatRequest) -> HandlerResult:
        on_group, on_topic = self.needs
        if not on_group.is_authorized(call.caller, request.group_id):
            return heartbeat_refused(on_group.code)
        if request.subscribed_topic_names and denied_names(call.caller, on_topic, request.subscribed_topic_names):
            return heartbeat_refused(on_topic.code)
        return call.proceed(request)


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribe:
    """If the client may not describe one of a group's topics, all of the group but its name is hidden."""

    needs: tuple[Need, ...] = (DESCRIBE_GROUP, replace(DESCRIBE_TOPIC, of="topics of its members"))

    def __call__(self, call: Call, request: Any) -> HandlerResult:
        on_group, on_topic = self.needs

        def hidden(response: Response) -> Response:
            assert isinstance(response, ConsumerGroupDescribeResponse)
            return ConsumerGroupDescribeResponse(
                groups=tuple(_hide(call, on_topic, group) for group in response.groups)
            )

        each = Each(
            on_group,
            "group_ids",
            "groups",
            _itself,
            _unknown_consumer_group,
            lambda refused: ConsumerGroupDescribeResponse(groups=refused),
            refused_first=True,
        )
        return then(each(call, request), hidden)


def _hide(
    call: Call, on_topic: Need, group: consumer_group_describe.DescribedGroup
) -> consumer_group_describe.DescribedGroup:
    topics = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }.union(*(member.subscribed_topic_names for member in group.members))
    if not denied_names(call.caller, on_topic, topics):
        return group
    return replace(_unknown_consumer_group(group.group_id, on_topic.code), error_message=_HIDDEN)


_HIDDEN: Final = "The group has described topic(s) that the client is not authorized to describe."


def _unknown_consumer_group(group_id: str, code: ErrorCode) -> consumer_group_describe.DescribedGroup:
    return consumer_group_describe.DescribedGroup(
        error_code=code,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )


CONSUMER_GROUP_HEARTBEAT: Final[Guard] = ConsumerGroupHeartbeat()
CONSUMER_GROUP_DESCRIBE: Final[Guard] = ConsumerGroupDescribe()


# -- committed offsets -------------------------------------------------------------------------------------------------


def _uncommitted(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ),
    )


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    needs: tuple[Need, ...] = (READ_GROUP, READ_TOPIC)

    def __call__(self, call: Call, request: OffsetCommitRequest) -> HandlerResult:
        on_group, on_topic = self.needs
        if not on_group.is_authorized(call.caller, request.group_id):
            return OffsetCommitResponse(topics=tuple(_uncommitted(each, on_group.code) for each in request.topics))
        names = call.images.current.topic_names

        def name_of(topic: OffsetCommitRequestTopic) -> str | None:
            """The topic's name; None if there is no topic with that id, an error that the handler returns."""
            return topic.name if topic.topic_id == ZERO_UUID else names.get(topic.topic_id)

        denied = denied_names(call.caller, on_topic, _known(map(name_of, request.topics)))
        if not denied:
            return call.proceed(request)
        refused = tuple(_uncommitted(each, on_topic.code) for each in request.topics if name_of(each) in denied)
        allowed = tuple(each for each in request.topics if name_of(each) not in denied)
        if not allowed:
            return OffsetCommitResponse(topics=refused)
        return then(
            call.proceed(replace(request, topics=allowed)),
            lambda response: with_elements(response, "topics", refused, call.context.version, first=True),
        )


def _known(names: Any) -> Sequence[str]:
    return [name for name in names if name is not None]


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    needs: tuple[Need, ...] = (need(AclOperation.DELETE, ResourceType.GROUP), READ_TOPIC)

    def __call__(self, call: Call, request: OffsetDeleteRequest) -> HandlerResult:
        on_group, on_topic = self.needs
        if not on_group.is_authorized(call.caller, request.group_id):
            return OffsetDeleteResponse(error_code=on_group.code, topics=())
        denied = denied_names(call.caller, on_topic, (each.name for each in request.topics))
        if not denied:
            return call.proceed(request)
        refused = tuple(_undeleted_offsets(each, on_topic.code) for each in request.topics if each.name in denied)
        allowed = tuple(each for each in request.topics if each.name not in denied)

        def merged(response: Response) -> Response:
            assert isinstance(response, OffsetDeleteResponse)
            if response.error_code:
                return response
            return replace(response, topics=(*refused, *response.topics))

        return then(call.proceed(replace(request, topics=allowed)), merged)


def _undeleted_offsets(topic: OffsetDeleteRequestTopic, code: ErrorCode) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ),
    )


OFFSET_COMMIT: Final[Guard] = OffsetCommit()
OFFSET_DELETE: Final[Guard] = OffsetDelete()
