"""OffsetFetch: how far groups have read. Newer versions ask for several groups at once; an older request is lifted to
that shape, and its answer lowered again.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import NO_OFFSET, ZERO_UUID
from kaspar.broker.handlers import Answer, PartlyEncoded, RequestContext, Response, slices
from kaspar.coordination import Now
from kaspar.groups.offsets import CommittedOffsets
from kaspar.groups.shard import GroupShard
from kaspar.metadata import ClusterImage
from kaspar.protocol import codec
from kaspar.protocol.error_counts import ErrorCounts, error_counter
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
        return _told(broker, version, [_lifted(request)], request.require_stable, lambda groups: _lowered(groups[0]))
    if version < FIRST_WITH_TOPIC_ID:
        return _told(broker, version, request.groups, request.require_stable, _of_groups)
    named = [_named(image, group) for group in request.groups]
    refusals = [refused for _, refused in named]
    return _told(
        broker,
        version,
        [group for group, _ in named],
        request.require_stable,
        lambda groups: _of_groups(
            [_with_topic_ids(image, group, refused) for group, refused in zip(groups, refusals, strict=True)]
        ),
    )


def _told(
    broker: "Broker",
    version: int,
    groups: Sequence[OffsetFetchRequestGroup],
    require_stable: bool,
    respond: Callable[[list[Message]], OffsetFetchResponse],
) -> Answer:
    copies = _Copies()
    answers = [_ask(broker, version, group, require_stable, copies) for group in groups]
    there = [answer for answer in answers if isinstance(answer, Message)]
    if len(there) == len(answers) and not copies:
        return respond(there)
    return _told_later(broker, version, answers, respond, copies)


async def _told_later(
    broker: "Broker",
    version: int,
    answers: list[Message | Awaitable[Message]],
    respond: Callable[[list[Message]], OffsetFetchResponse],
    copies: "_Copies",
) -> Response:
    groups = [answer if isinstance(answer, Message) else await answer for answer in answers]
    if not copies:
        return respond(groups)
    return await broker.large_requests.in_thread(lambda: _encoded(respond(copies.told(groups)), version))


class _Copies:
    """Where a request asks for all offsets of groups and they are very many, they are copied in a moment, and the
    response is made of the copies, in a thread. Until then a group without topics stands for them.
    """

    def __init__(self) -> None:
        self._room = slices.AT_ONCE
        self._copied: list[tuple[OffsetFetchResponseGroup, OffsetFetchRequestGroup, CommittedOffsets]] = []

    def __bool__(self) -> bool:
        return bool(self._copied)

    def ask(
        self, shard: GroupShard, group: OffsetFetchRequestGroup, require_stable: bool, now: Now
    ) -> OffsetFetchResponseGroup:
        count = shard.offsets.count_of(group.group_id) if group.topics is None else 0
        if count <= self._room:
            self._room -= count
            return shard.fetch(group, require_stable, now)
        stand_in = OffsetFetchResponseGroup(group_id=group.group_id, topics=())
        self._copied.append((stand_in, group, shard.copy_to_fetch(group, require_stable, now)))
        return stand_in

    def told(self, groups: list[Message]) -> list[Message]:
        """With those that stand for copies replaced. A group may have been refused since."""
        copied = {id(stand_in): (request, offsets) for stand_in, request, offsets in self._copied}
        told: list[Message] = []
        for group in groups:
            found = copied.get(id(group))
            told.append(group if found is None else found[1].told(found[0]))
        return told


def _encoded(response: OffsetFetchResponse, version: int) -> PartlyEncoded:
    name = "groups" if version >= FIRST_WITH_GROUPS else "topics"
    elements: tuple[Message, ...] = response.groups if version >= FIRST_WITH_GROUPS else response.topics
    counts: ErrorCounts = defaultdict(int)
    for element in elements:
        count = error_counter(type(element), version)
        if count is not None:
            count(element, counts)
    without = replace(response, groups=(), topics=())
    return PartlyEncoded(without, {name: [codec.write(element, version) for element in elements]}, counts)


def _ask(
    broker: "Broker", version: int, group: OffsetFetchRequestGroup, require_stable: bool, copies: _Copies
) -> Message | Awaitable[Message]:
    """Answered with an OffsetFetchResponseGroup."""
    return broker.groups.runtime.ask(
        group.group_id,
        lambda shard, now: copies.ask(shard, group, require_stable, now),
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
