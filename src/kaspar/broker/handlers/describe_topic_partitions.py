"""DescribeTopicPartitions: topics in pages, so that no response grows with the cluster (KIP-966)."""

import functools
from collections.abc import Callable
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.broker.handlers import slices
from kaspar.broker.handlers.authorized_operations import AuthorizedOperations
from kaspar.broker.handlers.slices import Turns
from kaspar.broker.services import CurrentSettings
from kaspar.metadata import ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.images import ImageSource
from kaspar.metadata.topic_names import check_topic_name, is_internal
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.network.large_requests import Steps
from kaspar.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    RequestCursor,
    ResponseCursor,
)

DESCRIBED_AT_ONCE: Final = 200
"""How many topics and partitions are described in one turn of the event loop; a single topic may have more."""


class DescribeTopicPartitionsHandler:
    def __init__(
        self, images: ImageSource, settings: CurrentSettings, turns: Turns, operations: AuthorizedOperations
    ) -> None:
        self._images = images
        self._operations = operations
        self._settings = settings
        self._turns = turns

    def __call__(self, context: RequestContext, request: DescribeTopicPartitionsRequest) -> HandlerResult:
        try:
            _check_cursor(request)
        except Refused as refusal:
            return DescribeTopicPartitionsResponse(
                topics=tuple(_refused(topic.name, refusal.code) for topic in request.topics)
            )
        room = min(self._settings.config.max_request_partition_size_limit, max(request.response_partition_limit, 1))
        return slices.begin(
            self._turns,
            _describe_page(self._images.current, request, room, functools.partial(self._operations.of_topic, context)),
        )


def _describe_page(
    image: ClusterImage, request: DescribeTopicPartitionsRequest, room: int, operations_of: Callable[[str], int]
) -> Steps[DescribeTopicPartitionsResponse]:
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    names = sorted({topic.name for topic in request.topics} or image.topics)
    cursor = request.cursor
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    described = 0
    for name in names:
        if described >= DESCRIBED_AT_ONCE:
            yield
            described = 0
        topic = image.topics.get(name)
        if topic is None:
            topics.append(_missing(name, operations_of(name)))
            continue
        first = _first_partition(name, cursor)
        if room <= 0:
            return DescribeTopicPartitionsResponse(
                topics=tuple(topics), next_cursor=ResponseCursor(topic_name=name, partition_index=first)
            )
        end = min(len(topic.partitions), first + room)
        topics.append(_describe(topic, image, first, end, operations_of(name)))
        room -= end - first
        described += 1 + end - first
        if end < len(topic.partitions):
            return DescribeTopicPartitionsResponse(
                topics=tuple(topics), next_cursor=ResponseCursor(topic_name=name, partition_index=end)
            )
    return DescribeTopicPartitionsResponse(topics=tuple(topics))


def _check_cursor(request: DescribeTopicPartitionsRequest) -> None:
    cursor = request.cursor
    if cursor is None:
        return
    if request.topics and all(topic.name != cursor.topic_name for topic in request.topics):
        raise Refused(ErrorCode.INVALID_REQUEST, f"the cursor is at {cursor.topic_name}, which was not requested")
    if cursor.partition_index < 0:
        raise Refused(ErrorCode.INVALID_REQUEST, f"the cursor is at partition {cursor.partition_index}")


def _first_partition(name: str, cursor: RequestCursor | None) -> int:
    return cursor.partition_index if cursor is not None and cursor.topic_name == name else 0


def _refused(name: str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code, name=name, topic_id=ZERO_UUID, is_internal=False, partitions=()
    )


def _missing(name: str, operations: int) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except Refused as refusal:
        code = refusal.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=is_internal(name),
        partitions=(),
        topic_authorized_operations=operations,
    )


def _describe(
    topic: TopicImage, image: ClusterImage, first: int, end: int, operations: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=tuple(_describe_partition(index, topic.partitions[index], image) for index in range(first, end)),
        topic_authorized_operations=operations,
    )


def _describe_partition(
    index: int, partition: PartitionImage, image: ClusterImage
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE,  # even without a leader, unlike in Metadata
        partition_index=index,
        leader_id=image.reachable_leader(partition),
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
        offline_replicas=image.offline_replicas(partition),
    )
