"""OffsetDelete: an admin tool deletes offsets of topics that no member of the group consumes."""

from dataclasses import replace

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.groups import GroupRuntime
from kaspar.broker.handlers.combined import combined
from kaspar.broker.handlers.known_partitions import split_by_existence
from kaspar.metadata import ClusterImage
from kaspar.metadata.images import ImageSource
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kaspar.protocol.schema import Message


class OffsetDeleteHandler:
    def __init__(self, groups: GroupRuntime, images: ImageSource) -> None:
        self._groups = groups
        self._images = images

    def __call__(self, context: RequestContext, request: OffsetDeleteRequest) -> HandlerResult:
        """Delete offsets. The group is asked even if no partition is left: the response says whether it exists."""
        if not request.group_id:
            return _nothing(ErrorCode.INVALID_GROUP_ID)
        known, refusals = _split(self._images.current, request)
        response = self._groups.submit(known.group_id, lambda shard, now: shard.delete_offsets(known, now), _nothing)
        return combined([response], lambda parts: _join(refusals, parts[0])) if refusals else response


def _split(
    image: ClusterImage, request: OffsetDeleteRequest
) -> tuple[OffsetDeleteRequest, tuple[OffsetDeleteResponseTopic, ...]]:
    topics = []
    refusals = []
    for named in request.topics:
        topic = image.topics.get(named.name)
        if topic is None:
            refusals.append(_unknown(named.name, named.partitions))
            continue
        known, unknown = split_by_existence(topic, named.partitions)
        if unknown:
            refusals.append(_unknown(named.name, unknown))
        if known:
            topics.append(OffsetDeleteRequestTopic(name=named.name, partitions=known))
    return replace(request, topics=tuple(topics)), tuple(refusals)


def _unknown(name: str, partitions: tuple[OffsetDeleteRequestPartition, ...]) -> OffsetDeleteResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=tuple(
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code) for each in partitions
        ),
    )


def _nothing(code: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code, topics=())


def _join(refusals: tuple[OffsetDeleteResponseTopic, ...], response: Message) -> OffsetDeleteResponse:
    """Combine both into one response, in which every topic occurs once, unless the whole request is refused."""
    assert isinstance(response, OffsetDeleteResponse)
    if response.error_code:
        return response
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in (*refusals, *response.topics):
        before = topics[topic.name].partitions if topic.name in topics else ()
        topics[topic.name] = replace(topic, partitions=before + topic.partitions)
    return OffsetDeleteResponse(topics=tuple(topics.values()))
