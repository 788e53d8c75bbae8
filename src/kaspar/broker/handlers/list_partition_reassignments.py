"""ListPartitionReassignments: the partitions whose replicas are being moved. Like Kafka, it omits unknown topics."""

from collections.abc import Iterable, Iterator

from kaspar.metadata import ClusterImage, TopicImage
from kaspar.metadata.images import ImageSource
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


class ListPartitionReassignmentsHandler:
    def __init__(self, images: ImageSource) -> None:
        self._images = images

    def __call__(
        self, context: RequestContext, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        ongoing = (
            OngoingTopicReassignment(name=topic.name, partitions=tuple(_ongoing(topic, numbers)))
            for topic, numbers in _named(self._images.current, request)
        )
        return ListPartitionReassignmentsResponse(topics=tuple(each for each in ongoing if each.partitions))


def _named(
    image: ClusterImage, request: ListPartitionReassignmentsRequest
) -> Iterator[tuple[TopicImage, Iterable[int]]]:
    if request.topics is None:
        yield from ((topic, range(len(topic.partitions))) for topic in image.topics.values())
        return
    for wanted in request.topics:
        topic = image.topics.get(wanted.name)
        if topic is not None:
            yield topic, (number for number in wanted.partition_indexes if 0 <= number < len(topic.partitions))


def _ongoing(topic: TopicImage, numbers: Iterable[int]) -> Iterator[OngoingPartitionReassignment]:
    for number in numbers:
        partition = topic.partitions[number]
        if partition.is_reassigning:
            yield OngoingPartitionReassignment(
                partition_index=number,
                replicas=partition.replicas,
                adding_replicas=partition.adding_replicas,
                removing_replicas=partition.removing_replicas,
            )
