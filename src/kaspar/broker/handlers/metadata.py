"""Metadata: brokers, topics, partitions and their leaders. What a client asks first, and again whenever things move.

A topic's entry is kept encoded, per version, until the topic changes: a client of thousands of partitions costs a copy.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.broker.handlers import PartlyEncoded, RequestContext
from kaspar.metadata import ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.image import NO_LEADER
from kaspar.metadata.topic_names import check_topic_name, is_internal
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

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

ALL_TOPIC_OPERATIONS: Final = 3576
ALL_CLUSTER_OPERATIONS: Final = 8096
NOT_ASKED: Final = -(2**31)
FIRST_WITH_NULL_FOR_ALL: Final = 1
FIRST_WITH_ID_ALONE: Final = 12
NO_CONTROLLER: Final = -1


class EncodedTopic(NamedTuple):
    """A topic's entry as bytes, and how often each error code is in it."""

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
    """Topic entries as bytes, by version, as long as the topic and the brokers stay the same."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int, int], tuple[TopicImage, object, EncodedTopic]] = {}

    def entry(self, topic: TopicImage, image: ClusterImage, version: int, operations: int) -> EncodedTopic:
        key = (topic.name, version, operations)
        kept = self._entries.get(key)
        if kept is not None and kept[0] is topic and kept[1] is image.brokers:
            return kept[2]
        encoded = EncodedTopic.of(describe_topic(topic, image, operations), version)
        self._entries[key] = (topic, image.brokers, encoded)
        return encoded

    def forget(self, topics: Collection[str]) -> None:
        for key in [key for key in self._entries if key[0] in topics]:
            del self._entries[key]


def describe_topic(topic: TopicImage, image: ClusterImage, operations: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=tuple(_describe_partition(index, each, image) for index, each in enumerate(topic.partitions)),
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


def handle(broker: "Broker", context: RequestContext, request: MetadataRequest) -> PartlyEncoded:
    version = context.version
    if version < FIRST_WITH_ID_ALONE and _names_topics_by_id(request):
        return _refuse_all(request)
    operations = ALL_TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    image = broker.image
    if request.topics is None or (version < FIRST_WITH_NULL_FOR_ALL and not request.topics):
        topics = [broker.encoded_topics.entry(topic, image, version, operations) for topic in image.topics.values()]
    else:
        if request.allow_auto_topic_creation and broker.config.auto_create_topics_enable:
            _create_missing(broker, image, request.topics, context.peer)
            image = _as_told_before(broker, image, request.topics, context.peer)
        topics = [_named(broker, image, wanted, version, operations) for wanted in dict.fromkeys(request.topics)]
    response = MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(
                node_id=registered.broker_id, host=endpoint.host, port=endpoint.port, rack=registered.rack
            )
            for registered, endpoint in broker.endpoints_for(context.listener)
        ),
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=(),
        cluster_authorized_operations=(
            ALL_CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
    return PartlyEncoded(response, {"topics": [topic.data for topic in topics]}, _error_counts(topics))


def _error_counts(topics: list[EncodedTopic]) -> ErrorCounts:
    counts: ErrorCounts = defaultdict(int)
    for _, of_topic in topics:
        for code, times in of_topic:
            counts[code] += times
    return counts


def _names_topics_by_id(request: MetadataRequest) -> bool:
    return any(topic.name is None or topic.topic_id != ZERO_UUID for topic in request.topics or ())


def _refuse_all(request: MetadataRequest) -> PartlyEncoded:
    """Versions 10 and 11 have a field for topic ids, which nobody may use: Kafka then tells nothing of the cluster."""
    topics = tuple(
        MetadataResponseTopic(
            error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id, partitions=()
        )
        for topic in request.topics or ()
    )
    response = MetadataResponse(brokers=(), cluster_id=None, controller_id=NO_CONTROLLER, topics=topics)
    return PartlyEncoded(response, {}, {})


def _create_missing(broker: "Broker", image: ClusterImage, wanted: tuple[MetadataRequestTopic, ...], peer: str) -> None:
    """Have the topics created that do not exist. The response says that they do not, as Kafka's does: a client that has
    deleted a topic, and asks until it is gone, recreates it by asking, and would never see it gone.
    """
    missing = (
        topic.name
        for topic in wanted
        if topic.name
        and topic.topic_id == ZERO_UUID
        and topic.name not in image.topics
        and not is_internal(topic.name)  # what makes those knows how many partitions they must have
    )
    broker.auto_creation.want(missing, peer)


def _as_told_before(
    broker: "Broker", image: ClusterImage, wanted: tuple[MetadataRequestTopic, ...], peer: str
) -> ClusterImage:
    """Without the topics that were created since this connection was told, a moment ago, that they are unknown."""
    is_hidden_from = broker.auto_creation.is_hidden_from
    hidden = [topic.name for topic in wanted if topic.name and is_hidden_from(peer, topic.name)]
    return image.with_topics(dict.fromkeys(hidden)) if hidden else image


def _named(
    broker: "Broker", image: ClusterImage, wanted: MetadataRequestTopic, version: int, operations: int
) -> EncodedTopic:
    try:
        topic = _find(image, wanted)
    except Refused as refusal:
        by_id = wanted.topic_id != ZERO_UUID
        name = None if by_id else wanted.name
        return EncodedTopic.of(
            MetadataResponseTopic(
                error_code=refusal.code,
                name=name,
                topic_id=wanted.topic_id,
                is_internal=name is not None and is_internal(name),
                partitions=(),
                topic_authorized_operations=NOT_ASKED if by_id else operations,
            ),
            version,
        )
    return broker.encoded_topics.entry(topic, image, version, operations)


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
