"""Metadata: brokers, topics, partitions and their leaders. A client's first request, which it repeats on every change.

A topic's entry is kept encoded, per version, until the topic changes, so a response with thousands of partitions is
mostly copied. Entries that have to be encoded are encoded in slices, all from the image at the time of the request.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID, BrokerId
from kaspar.broker.auto_creation import AutoCreation
from kaspar.broker.handlers import slices
from kaspar.broker.handlers.authorized_operations import NOT_ASKED, AuthorizedOperations
from kaspar.broker.handlers.slices import Turns
from kaspar.broker.lost_brokers import LostBrokers
from kaspar.broker.services import CurrentSettings
from kaspar.metadata import ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.image import NO_LEADER
from kaspar.metadata.images import ImageChange, ImageSource
from kaspar.metadata.topic_names import check_topic_name, is_internal
from kaspar.network.api import HandlerResult, PartlyEncoded, RequestContext, Response
from kaspar.network.large_requests import Steps
from kaspar.protocol import codec
from kaspar.protocol.error_counts import ErrorCounts, error_counter
from kaspar.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kaspar.protocol.schema import Message

FIRST_WITH_NULL_FOR_ALL: Final = 1
FIRST_WITH_REPLICAS_THAT_ARE_DOWN: Final = 1
FIRST_WITH_ID_ALONE: Final = 12
NO_CONTROLLER: Final = -1
ENCODED_AT_ONCE: Final = 200
"""How many topics and partitions are encoded in one turn of the event loop."""


class EncodedTopic(NamedTuple):
    """A topic's entry as bytes, and the number of times that each error code is in it."""

    data: bytes
    error_counts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, entry: MetadataResponseTopic, version: int) -> "EncodedTopic":
        counts: ErrorCounts = defaultdict(int)
        count = error_counter(MetadataResponseTopic, version)
        assert count is not None
        count(entry, counts)
        return cls(codec.write(entry, version), tuple(counts.items()))


class EncodedTopics:
    """Encoded topic entries by version. They are valid while the topic and the brokers stay the same."""

    def __init__(self) -> None:
        self._of_topics: dict[str, dict[tuple[int, int], tuple[TopicImage, object, EncodedTopic]]] = {}

    def find(self, topic: TopicImage, image: ClusterImage, version: int, operations: int) -> EncodedTopic | None:
        of_topic = self._of_topics.get(topic.name)
        kept = None if of_topic is None else of_topic.get((version, operations))
        return kept[2] if kept is not None and kept[0] is topic and kept[1] is image.brokers else None

    def keep(
        self, topic: TopicImage, image: ClusterImage, version: int, operations: int, encoded: EncodedTopic
    ) -> None:
        self._of_topics.setdefault(topic.name, {})[version, operations] = (topic, image.brokers, encoded)

    def forget(self, topics: Iterable[str]) -> None:
        for name in topics:
            self._of_topics.pop(name, None)


def describe_topic(topic: TopicImage, image: ClusterImage, version: int, operations: int) -> MetadataResponseTopic:
    describe = _description_of(version)
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=tuple(describe(index, each, image) for index, each in enumerate(topic.partitions)),
        topic_authorized_operations=operations,
    )


def _describe_partition(index: int, partition: PartitionImage, image: ClusterImage) -> MetadataResponsePartition:
    leader = image.reachable_leader(partition)
    return MetadataResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader == NO_LEADER else ErrorCode.NONE,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=image.offline_replicas(partition),
    )


def _describe_running(index: int, partition: PartitionImage, image: ClusterImage) -> MetadataResponsePartition:
    """Describe a partition without the replicas that are down. They are reported as an error, unless there is a more
    important one.
    """
    described = _describe_partition(index, partition, image)
    replicas, isr = (
        tuple(replica for replica in each if replica in image.brokers) for each in (partition.replicas, partition.isr)
    )
    lacks_some = replicas != partition.replicas or isr != partition.isr
    code = ErrorCode.REPLICA_NOT_AVAILABLE if lacks_some else ErrorCode.NONE
    return replace(described, error_code=described.error_code or code, replica_nodes=replicas, isr_nodes=isr)


def _description_of(version: int) -> Callable[[int, PartitionImage, ClusterImage], MetadataResponsePartition]:
    return _describe_running if version < FIRST_WITH_REPLICAS_THAT_ARE_DOWN else _describe_partition


class MetadataHandler:
    def __init__(
        self,
        images: ImageSource,
        settings: CurrentSettings,
        auto_creation: AutoCreation,
        lost: LostBrokers,
        turns: Turns,
        operations: AuthorizedOperations,
    ) -> None:
        self._images = images
        self._operations = operations
        self._settings = settings
        self._auto_creation = auto_creation
        self._lost = lost
        self._turns = turns
        self._encoded = EncodedTopics()

    def image_changed(self, change: ImageChange) -> None:
        self._encoded.forget(change.changed_topics)

    def __call__(self, context: RequestContext, request: MetadataRequest) -> HandlerResult:
        if request.topics and self._lost.are_suspected:
            leaders = self._leaders(request.topics)
            if self._lost.are_among(leaders):
                return self._respond_later(context, request, leaders)
        return self._respond(context, request)

    def _leaders(self, wanted: tuple[MetadataRequestTopic, ...]) -> set[BrokerId]:
        image = self._images.current
        named = (image.topics.get(each.name) if each.name else image.topic_by_id(each.topic_id) for each in wanted)
        return {partition.leader for topic in named if topic is not None for partition in topic.partitions}

    async def _respond_later(
        self, context: RequestContext, request: MetadataRequest, leaders: Collection[BrokerId]
    ) -> Response:
        await self._lost.replaced(leaders)
        response = self._respond(context, request)
        return response if isinstance(response, Message | PartlyEncoded) else await response

    def _respond(self, context: RequestContext, request: MetadataRequest) -> HandlerResult:
        version = context.version
        if version < FIRST_WITH_ID_ALONE and _names_topics_by_id(request):
            return _refuse_all(request)

        def operations(topic: str) -> int:
            asked = request.include_topic_authorized_operations
            return self._operations.of_topic(context, topic) if asked else NOT_ASKED

        image = self._images.current
        topics: Iterable[TopicImage | MetadataResponseTopic]
        if request.topics is None or (version < FIRST_WITH_NULL_FOR_ALL and not request.topics):
            topics = image.topics.values()
        else:
            if request.allow_auto_topic_creation and self._settings.config.auto_create_topics_enable:
                self._create_missing(image, request.topics, context.peer)
                image = self._as_reported_before(image, request.topics, context.peer)
            topics = [_named(image, wanted, operations) for wanted in dict.fromkeys(request.topics)]
        response = MetadataResponse(
            brokers=tuple(
                MetadataResponseBroker(
                    node_id=registered.broker_id, host=endpoint.host, port=endpoint.port, rack=registered.rack
                )
                for registered in (*image.brokers.values(), *(self._lost.departed() if request.topics else ()))
                for endpoint in registered.endpoints
                if endpoint.listener == context.listener
            ),
            cluster_id=image.cluster_id,
            controller_id=image.controller_id,
            topics=(),
            cluster_authorized_operations=(
                self._operations.of_cluster(context) if request.include_cluster_authorized_operations else NOT_ASKED
            ),
        )
        return slices.begin(self._turns, self._with_topics(image, response, topics, version, operations))

    def _with_topics(
        self,
        image: ClusterImage,
        response: MetadataResponse,
        topics: Iterable[TopicImage | MetadataResponseTopic],
        version: int,
        operations_of: Callable[[str], int],
    ) -> Steps[PartlyEncoded]:
        entries: list[EncodedTopic] = []
        encoded_now = 0
        for topic in topics:
            if isinstance(topic, MetadataResponseTopic):
                entries.append(EncodedTopic.of(topic, version))
                continue
            operations = operations_of(topic.name)
            entry = self._encoded.find(topic, image, version, operations)
            if entry is None:
                encoded_now += 1 + len(topic.partitions)
                if encoded_now > ENCODED_AT_ONCE and entries:
                    yield
                    encoded_now = 1 + len(topic.partitions)
                entry = yield from _encode(topic, image, version, operations)
                if self._images.current.topics.get(topic.name) is topic:  # otherwise nothing would remove it again
                    self._encoded.keep(topic, image, version, operations, entry)
            entries.append(entry)
        return PartlyEncoded(response, {"topics": [entry.data for entry in entries]}, _error_counts(entries))

    def _create_missing(self, image: ClusterImage, wanted: tuple[MetadataRequestTopic, ...], peer: str) -> None:
        """Have the missing topics created. The response still reports them as unknown, as Kafka's does. Otherwise a
        client that has deleted a topic, and polls until it is gone, would recreate it with each request and always see
        it.
        """
        missing = (
            topic.name
            for topic in wanted
            if topic.name
            and topic.topic_id == ZERO_UUID
            and topic.name not in image.topics
            and not is_internal(topic.name)  # created by their coordinators
        )
        self._auto_creation.want(missing, peer)

    def _as_reported_before(
        self, image: ClusterImage, wanted: tuple[MetadataRequestTopic, ...], peer: str
    ) -> ClusterImage:
        """The image without the topics that were reported to this connection as unknown a moment ago, and created
        since.
        """
        is_hidden_from = self._auto_creation.is_hidden_from
        hidden = [topic.name for topic in wanted if topic.name and is_hidden_from(peer, topic.name)]
        return image.with_topics(dict.fromkeys(hidden)) if hidden else image


def _encode(topic: TopicImage, image: ClusterImage, version: int, operations: int) -> Steps[EncodedTopic]:
    if len(topic.partitions) <= ENCODED_AT_ONCE:
        return EncodedTopic.of(describe_topic(topic, image, version, operations), version)
    entry = describe_topic(replace(topic, partitions=()), image, version, operations)
    partitions: list[bytes] = []
    codes = Counter({entry.error_code: 1})
    describe = _description_of(version)
    for index, partition in enumerate(topic.partitions):
        if index and index % ENCODED_AT_ONCE == 0:
            yield
        described = describe(index, partition, image)
        partitions.append(codec.write(described, version))
        codes[described.error_code] += 1
    return EncodedTopic(codec.write(entry, version, {"partitions": partitions}), tuple(codes.items()))


def _error_counts(topics: list[EncodedTopic]) -> ErrorCounts:
    counts: ErrorCounts = defaultdict(int)
    for _, of_topic in topics:
        for code, times in of_topic:
            counts[code] += times
    return counts


def _names_topics_by_id(request: MetadataRequest) -> bool:
    return any(topic.name is None or topic.topic_id != ZERO_UUID for topic in request.topics or ())


def _refuse_all(request: MetadataRequest) -> PartlyEncoded:
    """The response to versions 10 and 11 with topic ids, which have the field but must not use it. As in Kafka, it has
    no brokers.
    """
    topics = tuple(
        MetadataResponseTopic(
            error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id, partitions=()
        )
        for topic in request.topics or ()
    )
    response = MetadataResponse(brokers=(), cluster_id=None, controller_id=NO_CONTROLLER, topics=topics)
    return PartlyEncoded(response, {}, {})


def _named(
    image: ClusterImage, wanted: MetadataRequestTopic, operations_of: Callable[[str], int]
) -> TopicImage | MetadataResponseTopic:
    """The topic, or a response entry with the error if there is none."""
    try:
        return _find(image, wanted)
    except Refused as refusal:
        by_id = wanted.topic_id != ZERO_UUID
        name = None if by_id else wanted.name
        return MetadataResponseTopic(
            error_code=refusal.code,
            name=name,
            topic_id=wanted.topic_id,
            is_internal=name is not None and is_internal(name),
            partitions=(),
            topic_authorized_operations=NOT_ASKED if name is None else operations_of(name),
        )


def _find(image: ClusterImage, wanted: MetadataRequestTopic) -> TopicImage:
    if wanted.topic_id != ZERO_UUID:
        found = image.topic_by_id(wanted.topic_id)
        if found is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {wanted.topic_id}")
        return found
    name = wanted.name or ""
    found = image.topics.get(name)
    if found is None:
        check_topic_name(name)
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    return found
