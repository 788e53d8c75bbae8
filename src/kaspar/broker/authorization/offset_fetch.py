"""The guard of OffsetFetch, for its three forms: one group, several groups, topics by id."""

from dataclasses import dataclass, replace
from typing import Any, Final

from kaspar.acls.acl import AclOperation, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.base.ids import NO_OFFSET
from kaspar.broker.authorization.guards import Call, Guard, Need, denied_names, need, then
from kaspar.metadata.image import ClusterImage
from kaspar.network.api import HandlerResult, PartlyEncoded, Response
from kaspar.protocol import codec
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST_WITH_GROUPS: Final = 8
FIRST_WITH_GROUP_ERROR: Final = 2
FIRST_WITH_TOPIC_ID: Final = 10


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """A request for all offsets of a group returns only the topics that the client may describe."""

    needs: tuple[Need, ...] = (
        need(AclOperation.DESCRIBE, ResourceType.GROUP),
        need(AclOperation.DESCRIBE, ResourceType.TOPIC),
    )

    def __call__(self, call: Call, request: OffsetFetchRequest) -> HandlerResult:
        if call.context.version >= FIRST_WITH_GROUPS:
            return self._of_groups(call, request)
        return self._of_one(call, request)

    def _of_one(self, call: Call, request: OffsetFetchRequest) -> HandlerResult:
        on_group, on_topic = self.needs
        if not on_group.is_authorized(call.caller, request.group_id):
            code = on_group.code
            old = call.context.version < FIRST_WITH_GROUP_ERROR
            topics = tuple(_unfetched(each, code) for each in request.topics or ()) if old else ()
            return OffsetFetchResponse(error_code=code, topics=topics)
        if request.topics is None:
            return then(call.proceed(request), lambda response: _only_describable(call, on_topic, response))
        denied = denied_names(call.caller, on_topic, (each.name for each in request.topics))
        if not denied:
            return call.proceed(request)
        refused = tuple(_unfetched(each, on_topic.code) for each in request.topics if each.name in denied)
        allowed = tuple(each for each in request.topics if each.name not in denied)

        def merged(response: Response) -> Response:
            message = _decoded(response, call.context.version)
            return message if message.error_code else replace(message, topics=(*message.topics, *refused))

        return then(call.proceed(replace(request, topics=allowed)), merged)

    def _of_groups(self, call: Call, request: OffsetFetchRequest) -> HandlerResult:
        """Check each group by itself. The groups of the response are in the order of the request."""
        on_group, on_topic = self.needs
        image = call.images.current
        refused_groups: list[OffsetFetchResponseGroup | None] = []
        refused_topics: list[tuple[OffsetFetchResponseTopics, ...]] = []
        asked: list[OffsetFetchRequestGroup] = []
        for group in request.groups:
            if not on_group.is_authorized(call.caller, group.group_id):
                refused_groups.append(
                    OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=on_group.code)
                )
                continue
            refused_groups.append(None)
            allowed, refused = _split(call, on_topic, image, group)
            refused_topics.append(refused)
            asked.append(allowed)
        if not asked:
            return OffsetFetchResponse(groups=tuple(each for each in refused_groups if each is not None))
        wants_all = any(group.topics is None for group in asked)
        if len(asked) == len(request.groups) and not any(refused_topics) and not wants_all:
            return call.proceed(request)

        def merged(response: Response) -> Response:
            message = _decoded(response, call.context.version)
            fetched = iter(zip(asked, message.groups, refused_topics, strict=True))
            return OffsetFetchResponse(
                groups=tuple(
                    refused or _with_topics(call, on_topic, image, *next(fetched)) for refused in refused_groups
                )
            )

        return then(call.proceed(replace(request, groups=tuple(asked))), merged)


def _split(
    call: Call, on_topic: Need, image: ClusterImage, group: OffsetFetchRequestGroup
) -> tuple[OffsetFetchRequestGroup, tuple[OffsetFetchResponseTopics, ...]]:
    if group.topics is None:
        return group, ()
    by_id = call.context.version >= FIRST_WITH_TOPIC_ID
    named = [(image.topic_names.get(each.topic_id) if by_id else each.name, each) for each in group.topics]
    denied = denied_names(call.caller, on_topic, (name for name, _ in named if name is not None))
    refused = tuple(_unfetched_in_group(each, on_topic.code) for name, each in named if name in denied)
    return replace(group, topics=tuple(each for name, each in named if name not in denied)), refused


def _with_topics(
    call: Call,
    on_topic: Need,
    image: ClusterImage,
    asked: OffsetFetchRequestGroup,
    fetched: OffsetFetchResponseGroup,
    refused: tuple[OffsetFetchResponseTopics, ...],
) -> OffsetFetchResponseGroup:
    if fetched.error_code:
        return fetched
    if asked.topics is not None:
        return replace(fetched, topics=(*fetched.topics, *refused))
    by_id = call.context.version >= FIRST_WITH_TOPIC_ID
    kept = []
    for topic in fetched.topics:
        name = image.topic_names.get(topic.topic_id) if by_id else topic.name
        if name is not None and call.caller.is_authorized(on_topic.operation, on_topic.resource_type, name):
            kept.append(topic)
    return replace(fetched, topics=tuple(kept))


def _only_describable(call: Call, on_topic: Need, response: Response) -> Response:
    message = _decoded(response, call.context.version)
    topics = tuple(each for each in message.topics if on_topic.is_authorized(call.caller, each.name))
    return replace(message, topics=topics)


def _decoded(response: Response, version: int) -> OffsetFetchResponse:
    """The response as a message, even if it has so many offsets that they are encoded already."""
    if isinstance(response, PartlyEncoded):
        data = codec.write(response.message, version, response.encoded)
        response, _ = codec.read(OffsetFetchResponse, version, data, max_elements=len(data))
    assert isinstance(response, OffsetFetchResponse)
    return response


def _unfetched(topic: Any, code: ErrorCode) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetFetchResponsePartition(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ),
    )


def _unfetched_in_group(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ),
    )


OFFSET_FETCH: Final[Guard] = OffsetFetch()
