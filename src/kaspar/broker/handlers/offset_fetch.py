"""OffsetFetch: how far groups have read. Newer versions ask for several groups at once; an older request is lifted to
that shape, and its answer lowered again.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import NO_OFFSET, ZERO_UUID
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.broker.handlers.group_answers import together
from kaspar.metadata import ClusterImage
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
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_WITH_GROUP_ERROR: Final = 2
FIRST_WITH_GROUPS: Final = 8
FIRST_WITH_TOPIC_ID: Final = 10


def handle(broker: "Broker", context: RequestContext, request: OffsetFetchRequest) -> Answer:
    version, image = context.version, broker.image
    if version < FIRST_WITH_GROUPS:
        answer = _ask(broker, version, _lifted(request), request.require_stable)
        return together([answer], lambda answers: _lowered(answers[0]))
    if version < FIRST_WITH_TOPIC_ID:
        answers = [_ask(broker, version, group, request.require_stable) for group in request.groups]
        return together(answers, _of_groups)
    named = [_named(image, group) for group in request.groups]
    answers = [_ask(broker, version, group, request.require_stable) for group, _ in named]
    refusals = [refused for _, refused in named]
    return together(
        answers,
        lambda groups: _of_groups(
            [_with_topic_ids(image, group, refused) for group, refused in zip(groups, refusals, strict=True)]
        ),
    )


def _ask(
    broker: "Broker", version: int, group: OffsetFetchRequestGroup, require_stable: bool
) -> Message | Awaitable[Message]:
    """Answered with an OffsetFetchResponseGroup."""
    return broker.groups.runtime.ask(
        group.group_id,
        lambda shard, now: shard.fetch(group, require_stable, now),
        lambda code: _refused(version, group, code),
    )


def _refused(version: int, group: OffsetFetchRequestGroup, code: ErrorCode) -> OffsetFetchResponseGroup:
    """Older consumers do not know COORDINATOR_NOT_AVAILABLE as an answer to this, and would not ask again."""
    if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        code = ErrorCode.NOT_COORDINATOR
    if version >= FIRST_WITH_GROUP_ERROR:
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=code)
    topics = tuple(_refused_topic(topic, code) for topic in group.topics or ())
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics, error_code=code)


def _refused_topic(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
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


def _of_groups(answers: Sequence[Message]) -> OffsetFetchResponse:
    return OffsetFetchResponse(groups=tuple(_group(answer) for answer in answers))


def _group(answer: Message) -> OffsetFetchResponseGroup:
    assert isinstance(answer, OffsetFetchResponseGroup)
    return answer


# --- Versions with topic ids ------------------------------------------------------------------------------------------


def _named(
    image: ClusterImage, group: OffsetFetchRequestGroup
) -> tuple[OffsetFetchRequestGroup, tuple[OffsetFetchResponseTopics, ...]]:
    """The request with the names of its topics, and the refusals of those that nobody knows."""
    if group.topics is None:
        return group, ()
    topics = []
    refusals = []
    for topic in group.topics:
        name = image.topic_names.get(topic.topic_id)
        if name is None:
            refusals.append(_refused_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            topics.append(replace(topic, name=name))
    return replace(group, topics=tuple(topics)), tuple(refusals)


def _with_topic_ids(
    image: ClusterImage, answer: Message, refusals: tuple[OffsetFetchResponseTopics, ...]
) -> OffsetFetchResponseGroup:
    """Who asked for all offsets named no topics, so their ids are told; what was committed for a topic that is gone
    cannot be told.
    """
    group = _group(answer)
    if group.error_code:
        return group
    topics = []
    for topic in group.topics:
        if topic.topic_id != ZERO_UUID:
            topics.append(topic)
        elif topic.name in image.topics:
            topics.append(replace(topic, topic_id=image.topics[topic.name].topic_id))
    return replace(group, topics=(*topics, *refusals))


# --- Versions with one group ------------------------------------------------------------------------------------------


def _lifted(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if request.topics is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        )
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _lowered(answer: Message) -> OffsetFetchResponse:
    group = _group(answer)
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in group.topics
        ),
    )
