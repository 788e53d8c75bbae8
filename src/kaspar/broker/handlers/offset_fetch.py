"""OffsetFetch: the committed offsets of groups. Newer versions name several groups; an older request is converted to
that form, and its response back.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import NO_OFFSET, ZERO_UUID
from kaspar.broker.coordination.groups import GroupRuntime
from kaspar.broker.handlers import slices
from kaspar.coordination import Now
from kaspar.groups.offsets.committed import CommittedOffsets
from kaspar.groups.shard import GroupShard
from kaspar.metadata import ClusterImage
from kaspar.metadata.images import ImageSource
from kaspar.network.api import HandlerResult, PartlyEncoded, RequestContext, Response
from kaspar.network.large_requests import LargeRequests
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

FIRST_WITH_GROUP_ERROR: Final = 2
FIRST_WITH_GROUPS: Final = 8
FIRST_WITH_TOPIC_ID: Final = 10


class OffsetFetchHandler:
    def __init__(self, groups: GroupRuntime, images: ImageSource, large_requests: LargeRequests) -> None:
        self._groups = groups
        self._images = images
        self._large_requests = large_requests

    def __call__(self, context: RequestContext, request: OffsetFetchRequest) -> HandlerResult:
        version, image, stable = context.version, self._images.current, request.require_stable
        if version < FIRST_WITH_GROUPS:
            return self._fetch(version, [_lifted(request)], stable, lambda groups: _lowered(groups[0]))
        if version < FIRST_WITH_TOPIC_ID:
            return self._fetch(version, request.groups, stable, _of_groups)
        named = [_named(image, group) for group in request.groups]
        refusals = [refused for _, refused in named]
        return self._fetch(
            version,
            [group for group, _ in named],
            stable,
            lambda groups: _of_groups(
                [_with_topic_ids(image, group, refused) for group, refused in zip(groups, refusals, strict=True)]
            ),
        )

    def _fetch(
        self,
        version: int,
        groups: Sequence[OffsetFetchRequestGroup],
        require_stable: bool,
        respond: Callable[[list[Message]], OffsetFetchResponse],
    ) -> HandlerResult:
        copies = _Copies()
        parts = [self._ask(version, group, require_stable, copies) for group in groups]
        ready = [part for part in parts if isinstance(part, Message)]
        if len(ready) == len(parts) and not copies:
            return respond(ready)
        return self._fetch_later(version, parts, respond, copies)

    async def _fetch_later(
        self,
        version: int,
        parts: list[Message | Awaitable[Message]],
        respond: Callable[[list[Message]], OffsetFetchResponse],
        copies: "_Copies",
    ) -> Response:
        groups = [part if isinstance(part, Message) else await part for part in parts]
        if not copies:
            return respond(groups)
        return await self._large_requests.in_thread(lambda: _encoded(respond(copies.filled_in(groups)), version))

    def _ask(
        self, version: int, group: OffsetFetchRequestGroup, require_stable: bool, copies: "_Copies"
    ) -> Message | Awaitable[Message]:
        """Fetch the offsets of one group. The response is an OffsetFetchResponseGroup."""
        return self._groups.ask(
            group.group_id,
            lambda shard, now: copies.ask(shard, group, require_stable, now),
            lambda code: _refused(version, group, code),
        )


class _Copy(NamedTuple):
    placeholder: OffsetFetchResponseGroup
    request: OffsetFetchRequestGroup
    offsets: CommittedOffsets


class _Copies:
    """Copies of the offsets of groups with very many, if a request asks for all of them. Copying is quick; the response
    is created from the copy in a thread. Until then a group without topics is its placeholder.
    """

    def __init__(self) -> None:
        self._room = slices.AT_ONCE
        self._copied: list[_Copy] = []

    def __bool__(self) -> bool:
        return bool(self._copied)

    def ask(
        self, shard: GroupShard, group: OffsetFetchRequestGroup, require_stable: bool, now: Now
    ) -> OffsetFetchResponseGroup:
        count = shard.offsets.count_of(group.group_id) if group.topics is None else 0
        if count <= self._room:
            self._room -= count
            return shard.fetch(group, require_stable, now)
        placeholder = OffsetFetchResponseGroup(group_id=group.group_id, topics=())
        self._copied.append(_Copy(placeholder, group, shard.copy_to_fetch(group, require_stable, now)))
        return placeholder

    def filled_in(self, groups: list[Message]) -> list[Message]:
        """The groups with the placeholders replaced. A group may have been refused since."""
        copies = {id(copy.placeholder): copy for copy in self._copied}
        filled: list[Message] = []
        for group in groups:
            copy = copies.get(id(group))
            filled.append(group if copy is None else copy.offsets.to_wire(copy.request))
        return filled


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


def _refused(version: int, group: OffsetFetchRequestGroup, code: ErrorCode) -> OffsetFetchResponseGroup:
    """The result for a group with an error. Older consumers do not retry this request on COORDINATOR_NOT_AVAILABLE."""
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


def _of_groups(groups: Sequence[Message]) -> OffsetFetchResponse:
    return OffsetFetchResponse(groups=tuple(_group(group) for group in groups))


def _group(message: Message) -> OffsetFetchResponseGroup:
    assert isinstance(message, OffsetFetchResponseGroup)
    return message


# --- Versions with topic ids ------------------------------------------------------------------------------------------


def _named(
    image: ClusterImage, group: OffsetFetchRequestGroup
) -> tuple[OffsetFetchRequestGroup, tuple[OffsetFetchResponseTopics, ...]]:
    """The request with the names of its topics, and the refusals of topics that do not exist."""
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
    image: ClusterImage, message: Message, refusals: tuple[OffsetFetchResponseTopics, ...]
) -> OffsetFetchResponseGroup:
    """Add the topic ids to a response. If all offsets were requested, topics have none; deleted topics are omitted."""
    group = _group(message)
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


def _lowered(message: Message) -> OffsetFetchResponse:
    group = _group(message)
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
