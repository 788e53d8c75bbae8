"""OffsetDelete: forget by hand what a group has committed, for topics that nobody in it reads."""

from dataclasses import replace
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.broker.handlers.group_answers import together
from kaspar.broker.handlers.known_partitions import split_by_existence
from kaspar.metadata import ClusterImage
from kaspar.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: OffsetDeleteRequest) -> Answer:
    """The group is asked even if nothing is left to ask it: whether it exists is told in any case."""
    if not request.group_id:
        return _nothing(ErrorCode.INVALID_GROUP_ID)
    known, refusals = _split(broker.image, request)
    answer = broker.groups.runtime.submit(
        known.group_id, lambda shard, ticket, now: shard.delete_offsets(known, ticket, now), _nothing
    )
    return together([answer], lambda answers: _join(refusals, answers[0])) if refusals else answer


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
    """One answer of both, in which every topic is once. Where the whole request is refused, that is all there is."""
    assert isinstance(response, OffsetDeleteResponse)
    if response.error_code:
        return response
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in (*refusals, *response.topics):
        before = topics[topic.name].partitions if topic.name in topics else ()
        topics[topic.name] = replace(topic, partitions=before + topic.partitions)
    return OffsetDeleteResponse(topics=tuple(topics.values()))
