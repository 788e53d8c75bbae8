"""Responses about very many topics and partitions are made in slices, and are no different for that."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.broker.handlers import describe_topic_partitions, metadata
from kaspar.broker.handlers.authorized_operations import ALL_TOPIC_OPERATIONS, NOT_ASKED, AllOperations
from kaspar.broker.lost_brokers import LostBrokers
from kaspar.metadata import ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.image import NO_LEADER, BrokerRegistration
from kaspar.metadata.images import ImageChange
from kaspar.network.api import RequestContext
from kaspar.network.large_requests import LargeRequests, run_through
from kaspar.network.responses import count_errors, encode_response
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

AT_ONCE = metadata.ENCODED_AT_ONCE
HERE = BrokerId(1)
MANY = (2,) * AT_ONCE
ONE_LARGE = (3, 2 * AT_ONCE + 1, 3)


def image_of(*partition_counts: int) -> ClusterImage:
    """Topics with so many partitions, every third of which has no leader."""
    image = ClusterImage("cluster", controller_id=HERE, brokers={HERE: BrokerRegistration(HERE, 1, ())})
    return image.with_topics({f"t{n:03}": topic(f"t{n:03}", count) for n, count in enumerate(partition_counts)})


def topic(name: str, partition_count: int) -> TopicImage:
    partitions = (
        PartitionImage((HERE,), (HERE,), NO_LEADER if index % 3 == 2 else HERE, LeaderEpoch(index), 0)
        for index in range(partition_count)
    )
    return TopicImage(name, uuid.uuid4(), tuple(partitions))


class Images:
    """The image that a handler sees."""

    def __init__(self, image: ClusterImage) -> None:
        self.current = image


SETTINGS: Any = SimpleNamespace(
    config=SimpleNamespace(auto_create_topics_enable=False, max_request_partition_size_limit=2000)
)


def metadata_handler(images: Images) -> metadata.MetadataHandler:
    auto_creation: Any = None
    tasks: Any = None  # no broker is lost here
    lost = LostBrokers(images, tasks)
    turns = LargeRequests(asyncio.to_thread)
    return metadata.MetadataHandler(images, SETTINGS, auto_creation, lost, turns, AllOperations())


def context(key: ApiKey, version: int) -> RequestContext:
    return RequestContext(key, version, 1, "client", "peer", "listener")


async def awaited(result: Any) -> Any:
    return await result if asyncio.iscoroutine(result) else result


def wanted_of(image: ClusterImage, version: int = 12) -> MetadataResponse:
    topics = tuple(metadata.describe_topic(each, image, version, NOT_ASKED) for each in image.topics.values())
    return MetadataResponse(brokers=(), cluster_id="cluster", controller_id=HERE, topics=topics)


def errors_of(response: Any, version: int) -> Counter[int]:
    metrics: Any = SimpleNamespace(errors=Counter[int]())
    count_errors(metrics, version, response)
    return Counter(metrics.errors)


def kept(handler: metadata.MetadataHandler) -> set[str]:
    return set(handler._encoded._of_topics)


@pytest.mark.parametrize("counts", [(3, 1), MANY, ONE_LARGE])
@pytest.mark.parametrize("version", [0, 1, 12])
def test_all_topics_are_returned_alike_however_many_there_are(counts: tuple[int, ...], version: int) -> None:
    image = image_of(*counts)
    handle = metadata_handler(Images(image))
    wanted = wanted_of(image, version)
    for is_kept in (False, True):
        result = handle(context(ApiKey.METADATA, version), MetadataRequest(topics=None))
        assert asyncio.iscoroutine(result) is (sum(counts) > AT_ONCE and not is_kept)
        response = asyncio.run(awaited(result))
        assert encode_response(version, 1, response) == encode_response(version, 1, wanted)
        assert errors_of(response, version) == errors_of(wanted, version)


def test_version_0_leaves_out_replicas_that_are_down_and_reports_them_as_an_error() -> None:
    down = BrokerId(2)
    partitions = (
        PartitionImage((down, HERE), (HERE,), HERE, LeaderEpoch(0), 0),
        PartitionImage((HERE,), (HERE,), HERE, LeaderEpoch(0), 0),
        PartitionImage((down,), (down,), NO_LEADER, LeaderEpoch(0), 0),
    )
    image = image_of().with_topics({"t": TopicImage("t", uuid.uuid4(), partitions)})

    def described(version: int) -> list[tuple[int, Sequence[int], Sequence[int]]]:
        (topic,) = wanted_of(image, version).topics
        return [(each.error_code, each.replica_nodes, each.isr_nodes) for each in topic.partitions]

    no_leader = ErrorCode.LEADER_NOT_AVAILABLE
    assert described(0) == [
        (ErrorCode.REPLICA_NOT_AVAILABLE, (HERE,), (HERE,)),
        (ErrorCode.NONE, (HERE,), (HERE,)),
        (no_leader, (), ()),
    ]
    assert described(1) == [(0, (down, HERE), (HERE,)), (0, (HERE,), (HERE,)), (no_leader, (down,), (down,))]


def test_a_slice_encodes_no_more_than_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = 0
    describe = metadata._describe_partition

    def counted(*arguments: Any) -> Any:
        nonlocal encoded
        encoded += 1
        return describe(*arguments)

    monkeypatch.setattr(metadata, "_describe_partition", counted)
    for counts in (MANY, ONE_LARGE, (AT_ONCE, AT_ONCE, 1, AT_ONCE)):
        image = image_of(*counts)
        encoded = before = 0
        steps = metadata_handler(Images(image))._with_topics(
            image, wanted_of(image_of()), image.topics.values(), 12, lambda _: NOT_ASKED
        )
        for _ in steps:
            assert encoded - before <= AT_ONCE
            before = encoded
        assert encoded - before <= AT_ONCE
        assert encoded == sum(counts)


def test_topics_that_change_between_two_slices_are_returned_as_they_were_and_not_cached() -> None:
    image = image_of(*MANY)
    images = Images(image)
    handle = metadata_handler(images)
    result: Any = handle(context(ApiKey.METADATA, 12), MetadataRequest(topics=None))
    assert "t000" in kept(handle)
    assert "t199" not in kept(handle)
    changed = frozenset({"t000", "t198", "t199"})
    images.current = image.with_topics({"t000": None, "t198": None, "t199": topic("t199", 7)})
    handle.image_changed(ImageChange(image, images.current, changed))
    assert encode_response(12, 1, asyncio.run(awaited(result))) == encode_response(12, 1, wanted_of(image))
    assert kept(handle) == image.topics.keys() - changed
    again = asyncio.run(awaited(handle(context(ApiKey.METADATA, 12), MetadataRequest(topics=None))))
    assert encode_response(12, 1, again) == encode_response(12, 1, wanted_of(images.current))


def test_a_named_topic_of_many_partitions_is_returned_beside_one_that_does_not_exist() -> None:
    image = image_of(*ONE_LARGE)
    topics = tuple(MetadataRequestTopic(name=name) for name in ("t001", "missing", "t000"))
    result = metadata_handler(Images(image))(context(ApiKey.METADATA, 9), MetadataRequest(topics=topics))
    assert asyncio.iscoroutine(result)
    response = asyncio.run(awaited(result))
    small = metadata_handler(Images(image))(context(ApiKey.METADATA, 9), MetadataRequest(topics=topics[1:]))
    entries = response.encoded["topics"]
    large = metadata.describe_topic(image.topics["t001"], image, 9, NOT_ASKED)
    assert entries[0] == metadata.EncodedTopic.of(large, 9).data
    assert entries[1:] == asyncio.run(awaited(small)).encoded["topics"]


@pytest.mark.parametrize("counts", [(3, 1), MANY, ONE_LARGE])
@pytest.mark.parametrize("limit", [2, 2000])
def test_a_page_of_partitions_is_returned_alike_however_long_it_is(counts: tuple[int, ...], limit: int) -> None:
    image = image_of(*counts)
    request = DescribeTopicPartitionsRequest(topics=(), response_partition_limit=limit)
    handle = describe_topic_partitions.DescribeTopicPartitionsHandler(
        Images(image), SETTINGS, LargeRequests(asyncio.to_thread), AllOperations()
    )
    result = handle(context(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0), request)
    assert asyncio.iscoroutine(result) is (limit == 2000 and sum(counts) > AT_ONCE)
    wanted: DescribeTopicPartitionsResponse = run_through(
        describe_topic_partitions._describe_page(image, request, limit, lambda _: ALL_TOPIC_OPERATIONS)
    )
    assert asyncio.run(awaited(result)) == wanted
    assert sum(len(each.partitions) for each in wanted.topics) == min(limit, sum(counts))
