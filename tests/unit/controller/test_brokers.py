"""Brokers come and go, leaders are elected, in-sync replicas change, producer ids are given out."""

import uuid
from collections.abc import Callable

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.controller.events import (
    AllocateProducerIds,
    AlterPartitions,
    AssignDirectories,
    BrokersSeen,
    CreateTopics,
    DeleteTopics,
    IsrChange,
    LogsLost,
    LogsRemoved,
    NewTopic,
    TopicReference,
)
from kaspar.controller.producer_ids import PRODUCER_IDS_PER_BLOCK
from kaspar.metadata.image import NO_LEADER, BrokerRegistration, ClusterImage, PartitionImage
from kaspar.metadata.layout.topic_nodes import PARTITIONS_PER_NODE
from tests.unit.controller.clusters import after, broker, cluster, controller, with_topic

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)


def seen(image: ClusterImage, *brokers: BrokerRegistration) -> ClusterImage:
    return after(controller().decide(image, BrokersSeen({each.broker_id: each for each in brokers})), image)


def three_replicas() -> ClusterImage:
    image = cluster(broker(1), broker(2), broker(3))
    return after(controller().decide(image, CreateTopics((NewTopic("t", assignments=((0, (1, 2, 3)),)),))), image)


def partition(image: ClusterImage) -> PartitionImage:
    return image.topics["t"].partitions[0]


def test_the_first_in_sync_replica_that_is_up_takes_over() -> None:
    image = seen(three_replicas(), broker(2), broker(3))
    assert partition(image) == PartitionImage((ONE, TWO, THREE), (TWO, THREE), TWO, LeaderEpoch(1), 1)


def test_without_an_in_sync_replica_there_is_no_leader_and_the_last_one_stays_in_sync() -> None:
    image = seen(seen(three_replicas(), broker(3)))
    assert partition(image) == PartitionImage((ONE, TWO, THREE), (THREE,), NO_LEADER, LeaderEpoch(2), 2)
    stranger = seen(image, broker(1))
    assert partition(stranger).leader == NO_LEADER, "a replica that is not in sync lacks records"
    back = seen(image, broker(3, epoch=9))
    assert partition(back) == PartitionImage((ONE, TWO, THREE), (THREE,), THREE, LeaderEpoch(3), 3)


def test_a_leader_that_crashed_leads_in_a_new_epoch() -> None:
    image = with_topic(cluster(broker(1, epoch=5)), "t")
    assert partition(seen(image, broker(1, epoch=6))).leader_epoch == 1
    assert partition(seen(image, broker(1, epoch=6))).leader == ONE


def test_a_leader_that_stopped_cleanly_goes_on_in_its_epoch() -> None:
    image = with_topic(cluster(broker(1, epoch=5)), "t")
    again = seen(image, broker(1, epoch=6, clean_start=True))
    assert partition(again) == partition(image)
    assert again.broker_epochs[ONE] == 6


def test_seeing_the_same_brokers_again_changes_nothing() -> None:
    image = three_replicas()
    decision = controller().decide(image, BrokersSeen(dict(image.brokers)))
    assert decision.steps == ()


def test_the_leaders_of_a_giant_topic_are_elected_in_several_transactions() -> None:
    image = with_topic(cluster(broker(1)), "t", 9000)
    for count in (18_000, 27_000, 36_000):
        topic = image.topics["t"]
        more = topic.partitions[:9000]
        image = image.with_topics({"t": type(topic)("t", topic.topic_id, topic.partitions + more, {})})
        assert len(image.topics["t"].partitions) == count
    decision = controller().decide(image, BrokersSeen({ONE: broker(1, epoch=2)}))
    assert len(decision.steps) > 1
    changed = after(decision, image).topics["t"].partitions
    assert {each.leader_epoch for each in changed} == {1}
    assert len(changed) % PARTITIONS_PER_NODE == 0


def isr_change(image: ClusterImage, *isr: int, **fields: int) -> IsrChange:
    current = partition(image)
    return IsrChange(
        image.topics["t"].topic_id,
        fields.get("partition", 0),
        LeaderEpoch(fields.get("leader_epoch", current.leader_epoch)),
        fields.get("partition_epoch", current.partition_epoch),
        tuple(map(BrokerId, isr)),
    )


def test_the_leader_shrinks_and_grows_the_in_sync_replicas() -> None:
    image = three_replicas()
    for isr in ((1, 2), (1,), (1, 3)):
        decision = controller().decide(image, AlterPartitions(ONE, 1, (isr_change(image, *isr),)))
        image = after(decision, image)
        assert decision.reply[0].partition == partition(image)
        assert partition(image).isr == isr
        assert partition(image).leader_epoch == 0
    assert partition(image).partition_epoch == 3


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda image: isr_change(image, 1, partition=5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (lambda image: isr_change(image, 1, leader_epoch=7), ErrorCode.NOT_CONTROLLER),
        (lambda image: isr_change(image, 1, partition_epoch=7), ErrorCode.NOT_CONTROLLER),
        (lambda image: isr_change(image, 1, leader_epoch=-1), ErrorCode.FENCED_LEADER_EPOCH),
        (lambda image: isr_change(image, 1, partition_epoch=-1), ErrorCode.INVALID_UPDATE_VERSION),
        (lambda image: isr_change(image, 2, 3), ErrorCode.INVALID_REQUEST),
        (lambda image: isr_change(image, 1, 1), ErrorCode.INVALID_REQUEST),
        (lambda image: isr_change(image, 1, 9), ErrorCode.INVALID_REQUEST),
        (lambda image: isr_change(image, 1, 3), ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_wrong_isr_changes_are_refused(make: Callable[[ClusterImage], IsrChange], code: ErrorCode) -> None:
    image = seen(three_replicas(), broker(1), broker(2))
    decision = controller().decide(image, AlterPartitions(ONE, 1, (make(image), isr_change(image, 1, 2))))
    refused, done = decision.reply
    assert refused.outcome.error == code
    assert done.outcome.error == ErrorCode.NONE
    assert partition(after(decision, image)).isr == (1, 2)


def test_isr_changes_of_a_broker_that_does_not_lead_or_is_gone_are_refused() -> None:
    image = three_replicas()
    decision = controller().decide(image, AlterPartitions(TWO, 1, (isr_change(image, 1, 2),)))
    assert decision.reply[0].outcome.error == ErrorCode.INVALID_REQUEST
    for stale in (AlterPartitions(ONE, 0, ()), AlterPartitions(BrokerId(9), 1, ())):
        with pytest.raises(Refused) as refused:
            controller().decide(image, stale)
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_a_deleted_topic_is_forgotten_after_the_last_broker_removed_its_logs() -> None:
    image = three_replicas()
    topic_id = image.topics["t"].topic_id
    image = after(controller().decide(image, DeleteTopics((TopicReference("t"),))), image)
    for broker_id, remaining in ((ONE, (2, 3)), (ONE, (2, 3)), (THREE, (2,))):
        image = after(controller().decide(image, LogsRemoved(broker_id, (topic_id, topic_id))), image)
        assert image.deleted_topics[topic_id].brokers == remaining
    image = after(controller().decide(image, LogsRemoved(TWO, (topic_id,))), image)
    assert image.deleted_topics == {}


def test_producer_id_blocks_follow_each_other() -> None:
    image = cluster()
    for number in range(3):
        decision = controller().decide(image, AllocateProducerIds(ONE))
        assert decision.reply.first == number * PRODUCER_IDS_PER_BLOCK
        assert decision.reply.count == PRODUCER_IDS_PER_BLOCK
        image = after(decision, image)
    assert image.next_producer_id == 3 * PRODUCER_IDS_PER_BLOCK


def test_the_directory_of_a_log_is_noted_and_no_epoch_changes() -> None:
    image = three_replicas()
    before, here, there = partition(image), uuid.UUID(int=7), uuid.UUID(int=8)
    topic_id = image.topics["t"].topic_id
    for broker_id, directory in ((ONE, here), (TWO, there)):
        places = ((topic_id, 0, directory), (topic_id, 5, directory), (uuid.UUID(int=1), 0, directory))
        decision = controller().decide(image, AssignDirectories(broker_id, places))
        assert [step.changed_topics for step in decision.steps] == [frozenset()], "nobody has anything to carry out"
        image = after(decision, image)
    assert [partition(image).directory_of(each) for each in (ONE, TWO, THREE, BrokerId(9))] == [here, there, None, None]
    assert partition(image)._replace(directories=()) == before
    again = controller().decide(image, AssignDirectories(ONE, ((topic_id, 0, here),)))
    assert not again.steps, "what is known is not written again"


def lose(image: ClusterImage, broker_id: BrokerId) -> ClusterImage:
    event = LogsLost(broker_id, ((image.topics["t"].topic_id, 0),))
    return after(controller().decide(image, event), image)


def test_the_only_in_sync_replica_that_gives_its_log_up_leads_in_a_new_epoch() -> None:
    image = with_topic(cluster(broker(1)), "t", unclean_leader_election_enable="true")
    places = ((image.topics["t"].topic_id, 0, uuid.UUID(int=7)),)
    image = lose(after(controller().decide(image, AssignDirectories(ONE, places)), image), ONE)
    assert partition(image) == PartitionImage((ONE,), (ONE,), ONE, LeaderEpoch(1), 1)


def test_a_replica_that_lost_its_log_leaves_the_others_in_sync() -> None:
    image = three_replicas()
    assert partition(lose(image, ONE)) == PartitionImage((ONE, TWO, THREE), (TWO, THREE), TWO, LeaderEpoch(1), 1)
    assert partition(lose(image, TWO)) == PartitionImage((ONE, TWO, THREE), (ONE, THREE), ONE, LeaderEpoch(1), 1)
    last = seen(seen(image, broker(3)))
    assert partition(lose(seen(last, broker(1)), ONE)) == partition(last), "it was not in sync, and decides nothing"
