"""Responses about very many topics and partitions are made in slices, and are no different for that."""

import asyncio
import uuid
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.broker.handlers import RequestContext, describe_topic_partitions, metadata
from kaspar.broker.large_requests import LargeRequests, run_through
from kaspar.broker.responses import count_errors, encode_response
from kaspar.metadata import ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.image import NO_LEADER, BrokerRegistration
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


def broker_with(image: ClusterImage) -> Any:
    """What the handlers ask of a broker."""
    broker: Any = SimpleNamespace(
        image=image,
        encoded_topics=metadata.EncodedTopics(),
        endpoints_for=lambda listener: iter(()),
        config=SimpleNamespace(auto_create_topics_enable=False, max_request_partition_size_limit=2000),
    )
    broker.large_requests = LargeRequests(broker)
    return broker


def context(key: ApiKey, version: int) -> RequestContext:
    return RequestContext(key, version, 1, "client", "peer", "listener")


async def answered(answer: Any) -> Any:
    return await answer if asyncio.iscoroutine(answer) else answer


def wanted_of(image: ClusterImage) -> MetadataResponse:
    topics = tuple(metadata.describe_topic(each, image, metadata.NOT_ASKED) for each in image.topics.values())
    return MetadataResponse(brokers=(), cluster_id="cluster", controller_id=HERE, topics=topics)


def errors_of(response: Any, version: int) -> Counter[int]:
    metrics: Any = SimpleNamespace(errors=Counter[int]())
    count_errors(metrics, version, response)
    return Counter(metrics.errors)


def kept(broker: Any) -> set[str]:
    return set(broker.encoded_topics._of_topics)


@pytest.mark.parametrize("counts", [(3, 1), MANY, ONE_LARGE])
@pytest.mark.parametrize("version", [1, 12])
def test_all_topics_are_told_alike_however_many_there_are(counts: tuple[int, ...], version: int) -> None:
    image = image_of(*counts)
    broker = broker_with(image)
    wanted = wanted_of(image)
    for is_kept in (False, True):
        answer = metadata.handle(broker, context(ApiKey.METADATA, version), MetadataRequest(topics=None))
        assert asyncio.iscoroutine(answer) is (sum(counts) > AT_ONCE and not is_kept)
        response = asyncio.run(answered(answer))
        assert encode_response(version, 1, response) == encode_response(version, 1, wanted)
        assert errors_of(response, version) == errors_of(wanted, version)


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
        steps = metadata._with_topics(
            broker_with(image), image, wanted_of(image_of()), image.topics.values(), 12, metadata.NOT_ASKED
        )
        for _ in steps:
            assert encoded - before <= AT_ONCE
            before = encoded
        assert encoded - before <= AT_ONCE
        assert encoded == sum(counts)


def test_topics_that_change_between_two_slices_are_told_as_they_were_and_not_kept() -> None:
    image = image_of(*MANY)
    broker = broker_with(image)
    answer: Any = metadata.handle(broker, context(ApiKey.METADATA, 12), MetadataRequest(topics=None))
    assert "t000" in kept(broker)
    assert "t199" not in kept(broker)
    changed = ("t000", "t198", "t199")
    broker.image = image.with_topics({"t000": None, "t198": None, "t199": topic("t199", 7)})
    broker.encoded_topics.forget(changed)
    assert encode_response(12, 1, asyncio.run(answered(answer))) == encode_response(12, 1, wanted_of(image))
    assert kept(broker) == image.topics.keys() - set(changed)
    again = asyncio.run(answered(metadata.handle(broker, context(ApiKey.METADATA, 12), MetadataRequest(topics=None))))
    assert encode_response(12, 1, again) == encode_response(12, 1, wanted_of(broker.image))


def test_a_named_topic_of_many_partitions_is_told_beside_one_that_does_not_exist() -> None:
    image = image_of(*ONE_LARGE)
    topics = tuple(MetadataRequestTopic(name=name) for name in ("t001", "missing", "t000"))
    answer = metadata.handle(broker_with(image), context(ApiKey.METADATA, 9), MetadataRequest(topics=topics))
    assert asyncio.iscoroutine(answer)
    told = asyncio.run(answered(answer))
    small = metadata.handle(broker_with(image), context(ApiKey.METADATA, 9), MetadataRequest(topics=topics[1:]))
    entries = told.encoded["topics"]
    large = metadata.describe_topic(image.topics["t001"], image, metadata.NOT_ASKED)
    assert entries[0] == metadata.EncodedTopic.of(large, 9).data
    assert entries[1:] == asyncio.run(answered(small)).encoded["topics"]


@pytest.mark.parametrize("counts", [(3, 1), MANY, ONE_LARGE])
@pytest.mark.parametrize("limit", [2, 2000])
def test_a_page_of_partitions_is_told_alike_however_long_it_is(counts: tuple[int, ...], limit: int) -> None:
    image = image_of(*counts)
    request = DescribeTopicPartitionsRequest(topics=(), response_partition_limit=limit)
    handle = describe_topic_partitions.handle
    answer = handle(broker_with(image), context(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0), request)
    assert asyncio.iscoroutine(answer) is (limit == 2000 and sum(counts) > AT_ONCE)
    wanted: DescribeTopicPartitionsResponse = run_through(
        describe_topic_partitions._describe_page(image, request, limit)
    )
    assert asyncio.run(answered(answer)) == wanted
    assert sum(len(each.partitions) for each in wanted.topics) == min(limit, sum(counts))
