"""Which partitions a subscription means, by the cluster's metadata."""

import uuid

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from kaspar.spark.reading.options import Subscription
from kaspar.spark.reading.subscription import assignment, topics_to_ask


def topic(
    name: str, partitions: int = 1, *, error: ErrorCode = ErrorCode.NONE, internal: bool = False
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=name,
        topic_id=uuid.uuid5(uuid.NAMESPACE_DNS, name),
        error_code=error,
        is_internal=internal,
        partitions=tuple(MetadataResponsePartition(partition_index=n, leader_id=1) for n in range(partitions)),
    )


def metadata(*topics: MetadataResponseTopic) -> MetadataResponse:
    return MetadataResponse(brokers=(), topics=topics)


def test_subscribed_topics_are_meant_with_all_their_partitions() -> None:
    found = assignment(Subscription(topics=("clicks",)), metadata(topic("clicks", 2)))
    assert found.partitions == {TopicPartition("clicks", 0), TopicPartition("clicks", 1)}
    assert found.topic_ids == {"clicks": uuid.uuid5(uuid.NAMESPACE_DNS, "clicks")}
    assert not found.missing


def test_a_missing_named_topic_is_reported() -> None:
    unknown = topic("orders", 0, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    found = assignment(Subscription(topics=("clicks", "orders")), metadata(topic("clicks"), unknown))
    assert found.missing == ("orders",)
    assert found.partitions == {TopicPartition("clicks", 0)}


def test_assigned_partitions_are_meant_alone() -> None:
    wanted = Subscription(assigned=(TopicPartition("clicks", 1), TopicPartition("clicks", 7)))
    found = assignment(wanted, metadata(topic("clicks", 3)))
    assert found.partitions == {TopicPartition("clicks", 1)}
    assert found.absent == (TopicPartition("clicks", 7),)
    assert not found.missing


def test_a_pattern_matches_parts_of_names_and_no_internal_topics() -> None:
    there = metadata(
        topic("click"),
        topic("clicks"),
        topic("my-clicks"),
        topic("clicks_offsets", internal=True),
        topic("__kaspar_clicks"),
    )
    assert assignment(Subscription(pattern="clicks"), there).topic_ids.keys() == {"clicks", "my-clicks"}
    assert assignment(Subscription(pattern="^clicks?$"), there).topic_ids.keys() == {"click", "clicks"}
    assert topics_to_ask(Subscription(pattern="clicks")) is None


def test_a_pattern_takes_no_notice_of_trouble_with_other_topics() -> None:
    there = metadata(topic("clicks"), topic("orders", error=ErrorCode.LEADER_NOT_AVAILABLE))
    assert assignment(Subscription(pattern="clicks"), there).topic_ids.keys() == {"clicks"}


def test_what_the_cluster_does_not_know_yet_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        assignment(Subscription(topics=("clicks",)), metadata(topic("clicks", error=ErrorCode.LEADER_NOT_AVAILABLE)))
    assert refused.value.code == ErrorCode.LEADER_NOT_AVAILABLE
