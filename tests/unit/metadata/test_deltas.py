"""Deltas of the image: whatever led from one image to another, a follower that applies the delta has the same image."""

import dataclasses
import uuid
from dataclasses import replace

import msgspec
import pytest

from kaspar.acls import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.metadata.deltas import ImageDelta, TopicDelta, apply_delta, decode_delta, delta_between, encode_delta
from kaspar.metadata.image import (
    EMPTY_CONFIGS,
    AdvertisedEndpoint,
    BrokerRegistration,
    ClusterImage,
    DeletedTopic,
    PartitionImage,
    TopicImage,
)
from kaspar.metadata.images import ImageUpdate, ImageVersion
from kaspar.quotas.entities import QuotaEntity

ONE, TWO = BrokerId(1), BrokerId(2)
FIRST, SECOND = ImageVersion(3, 7), ImageVersion(3, 9)


def partition(epoch: int = 0) -> PartitionImage:
    return PartitionImage(
        (ONE, TWO), (ONE,), ONE, LeaderEpoch(epoch), epoch, elr=(TWO,), directories=(uuid.uuid4(),) * 2
    )


def topic(name: str, count: int = 3) -> TopicImage:
    return TopicImage(name, uuid.uuid4(), tuple(partition() for _ in range(count)), {"retention.ms": "1"})


def image(*topics: TopicImage) -> ClusterImage:
    endpoint = AdvertisedEndpoint("PLAINTEXT", "localhost", 9092, "PLAINTEXT")
    empty = ClusterImage(
        "cluster",
        controller_id=ONE,
        controller_epoch=3,
        brokers={ONE: BrokerRegistration(ONE, 11, (endpoint,), "rack", True, (uuid.uuid4(),), 4)},
        broker_epochs={ONE: 11},
        broker_configs={"": {"log.retention.ms": "5"}, "1": EMPTY_CONFIGS},
        features={"group.version": 1},
    )
    return empty.with_topics({each.name: each for each in topics})


def sent(known: tuple[ImageVersion, ClusterImage] | None, update: ImageUpdate) -> ImageUpdate:
    delta = decode_delta(encode_delta(delta_between(known, update)))
    return apply_delta(None if known is None else known[1], delta)


def test_whole_image_arrives_as_it_is() -> None:
    new = image(topic("a"), topic("b"))
    update = ImageUpdate.whole(FIRST, new)
    assert sent(None, update) == update


def test_only_partitions_that_changed_are_sent() -> None:
    old = image(topic("a", count=1000), topic("b"))
    a = old.topics["a"]
    changed = replace(a, partitions=(*a.partitions[:500], partition(4), *a.partitions[501:]))
    new = old.with_topics({"a": changed})
    update = ImageUpdate(SECOND, new, frozenset({"a"}))
    delta = delta_between((FIRST, old), update)
    topics = [msgspec.msgpack.decode(each, type=TopicDelta) for each in delta.topics]
    assert [(each.name, list(each.partitions)) for each in topics] == [("a", [500])]
    assert len(encode_delta(delta)) < 1000
    received = sent((FIRST, old), update)
    assert received == update
    assert received.image.topics["b"] is old.topics["b"]
    assert received.image.topics["a"].partitions[0] is a.partitions[0]


@pytest.mark.parametrize("count", [2, 5], ids=["fewer", "more"])
def test_recreated_topic_has_nothing_of_the_deleted_one(count: int) -> None:
    old = image(topic("a"))
    gone = DeletedTopic("a", old.topics["a"].topic_id, (ONE, TWO))
    new = replace(old.with_topics({"a": topic("a", count)}), deleted_topics={gone.topic_id: gone})
    update = ImageUpdate(SECOND, new, frozenset({"a"}), (gone,))
    assert sent((FIRST, old), update) == update


def test_topic_that_grew_and_topic_that_was_deleted() -> None:
    old = image(topic("a"), topic("b"))
    grown = replace(old.topics["a"], partitions=(*old.topics["a"].partitions, partition()), configs={})
    gone = DeletedTopic("b", old.topics["b"].topic_id, (ONE,))
    new = replace(old.with_topics({"a": grown, "b": None}), deleted_topics={gone.topic_id: gone})
    update = ImageUpdate(SECOND, new, frozenset({"a", "b"}), (gone,))
    assert sent((FIRST, old), update) == update


def test_everything_else_that_changed() -> None:
    old = image()
    new = replace(
        old,
        controller_id=TWO,
        controller_epoch=4,
        brokers={},
        broker_epochs={ONE: 11, TWO: 12},
        broker_incarnations={ONE: 3},
        broker_configs={},
        group_configs={"g": {"consumer.session.timeout.ms": "45000"}},
        client_metrics_configs={"m": {"metrics": "*"}},
        client_quotas={QuotaEntity("alice", ""): {"producer_byte_rate": 1.5}, QuotaEntity(ip="::1"): {"x": 2.0}},
        shutting_down=frozenset({TWO}),
        next_producer_id=4000,
        features={},
        features_epoch=2,
    )
    update = ImageUpdate(SECOND, new, frozenset())
    assert sent((FIRST, old), update) == update


def test_whole_image_of_another_controller_keeps_what_is_the_same_and_names_what_differs() -> None:
    old = image(topic("a"), topic("b"), topic("gone"))
    gone = DeletedTopic("gone", old.topics["gone"].topic_id, (ONE,))
    b = replace(old.topics["b"], configs={"retention.ms": "2"})
    new = replace(old.with_topics({"b": b, "gone": None}), deleted_topics={gone.topic_id: gone})
    delta = decode_delta(encode_delta(delta_between(None, ImageUpdate.whole(ImageVersion(4, 1), new))))
    received = apply_delta(old, delta)
    assert received.image == new
    assert received.image.topics["a"] is old.topics["a"]
    assert received.changed_topics == {"b", "gone"}
    assert gone in received.deleted_topics


def test_every_field_of_the_image_is_sent() -> None:
    sent_fields = {field.name for field in msgspec.structs.fields(ImageDelta)}
    assert {field.name for field in dataclasses.fields(ClusterImage)} <= sent_fields | {"topic_names", "acls"}
    assert {"added_acls", "removed_acls"} <= sent_fields


def acl(name: str) -> Acl:
    return Acl(ResourceType.TOPIC, name, PatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW)


def test_of_the_acls_only_those_are_sent_that_came_and_went() -> None:
    old = replace(image(topic("a")), acls={"1": acl("one"), "2": acl("two")})
    new = replace(old, acls={"2": acl("two"), "3": acl("three")})
    update = ImageUpdate(SECOND, new, frozenset())
    delta = delta_between((FIRST, old), update)
    assert delta.added_acls == {"3": acl("three")}
    assert delta.removed_acls == ("1",)
    assert sent((FIRST, old), update).image.acls == new.acls
    assert sent(None, ImageUpdate.whole(SECOND, new)).image.acls == new.acls
    unchanged = delta_between((FIRST, old), ImageUpdate(SECOND, replace(old, features_epoch=9), frozenset()))
    assert (unchanged.added_acls, unchanged.removed_acls) == (None, ())
