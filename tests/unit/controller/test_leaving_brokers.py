"""Brokers are fenced, shut down in an orderly way, and are forgotten."""

from dataclasses import replace

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, LeaderEpoch, TopicPartition
from kaspar.controller.events import (
    AlterReassignments,
    BrokersSeen,
    ControlledShutdown,
    CreateTopics,
    DeleteTopics,
    FenceBrokers,
    NewTopic,
    Reassignment,
    TopicReference,
    UnregisterBroker,
)
from kaspar.metadata.image import NO_LEADER, ClusterImage, PartitionImage
from kaspar.metadata.store import Delete
from tests.unit.controller.clusters import after, broker, cluster, controller, with_topic
from tests.unit.controller.partitions import (
    FOUR,
    ONE,
    THREE,
    TWO,
    altered,
    back,
    decided,
    fenced,
    of_three,
    partition,
    with_partition,
)

ALL = (ONE, TWO, THREE)


def test_fencing_ends_the_registration_and_elects_in_one_transaction() -> None:
    image = back(of_three(), replace(broker(1, epoch=7, clean_start=True), incarnation=1))
    decision = controller().decide(image, FenceBrokers(((ONE, 7),)))
    (step,) = decision.steps
    assert step.operations[0] == Delete("/brokers/ids/1-1")
    assert [operation.path for operation in step.operations[1:]] == ["/topics/t"]
    assert ONE not in step.image.brokers
    assert step.image.broker_epochs[ONE] == 7, "it is still registered"
    assert partition(step.image).leader == TWO


def test_a_broker_that_has_registered_again_is_not_fenced() -> None:
    for stale in (FenceBrokers(((ONE, 0),)), FenceBrokers(((BrokerId(9), 1),)), FenceBrokers(())):
        assert controller().decide(of_three(), stale).steps == ()


def shut_down(image: ClusterImage, broker_id: int) -> tuple[ClusterImage, tuple[TopicPartition, ...]]:
    epoch = image.brokers[BrokerId(broker_id)].epoch
    decision = controller().decide(image, ControlledShutdown(BrokerId(broker_id), epoch))
    return after(decision, image), decision.reply


def test_a_broker_that_shuts_down_hands_its_leaderships_over_and_leaves_the_in_sync_replicas() -> None:
    image, led = shut_down(of_three(), 1)
    assert led == ()
    assert partition(image) == PartitionImage(ALL, (TWO, THREE), TWO, LeaderEpoch(1), 1)
    image, led = shut_down(image, 3)
    assert partition(image) == PartitionImage(ALL, (TWO,), TWO, LeaderEpoch(1), 2)
    assert image.shutting_down == {ONE, THREE}


@pytest.mark.parametrize("elr", [False, True])
def test_it_leads_on_where_nobody_can_take_over_until_a_follower_is_in_sync(elr: bool) -> None:
    image, led = shut_down(altered(of_three(elr=elr), 1)[0], 1)
    assert led == (TopicPartition("t", 0),)
    assert partition(image) == PartitionImage(ALL, (ONE,), ONE, LeaderEpoch(0), 1)
    again = controller().decide(image, ControlledShutdown(ONE, 1))
    assert (again.steps, again.reply) == ((), led), "asking again changes nothing"
    image, outcome = altered(image, 1, 2)
    assert outcome.outcome.error == ErrorCode.NEW_LEADER_ELECTED
    image, led = shut_down(image, 1)
    assert led == ()
    assert partition(image).isr == (TWO,)


def test_an_eligible_replica_takes_over_from_a_leader_that_shuts_down() -> None:
    image, _ = altered(of_three(elr=True, min_insync_replicas="2"), 1)
    image, led = shut_down(image, 1)
    assert led == ()
    assert partition(image) == PartitionImage(ALL, (TWO,), TWO, LeaderEpoch(1), 2, (ONE, THREE))


def test_a_broker_that_shuts_down_gets_no_leaderships_and_no_new_replicas() -> None:
    image, _ = shut_down(with_topic(of_three(), "u", 8, 1), 4)
    image = fenced(image, 1, 2)
    assert partition(image).leader == THREE
    image = fenced(of_three(brokers=3), 1, 2)
    image, _ = shut_down(back(image, broker(1, epoch=8), broker(2, epoch=8)), 2)
    created = controller().decide(image, CreateTopics((NewTopic("u", 6, 2), NewTopic("v", 1, 3))))
    replicas = {each for one in after(created, image).topics["u"].partitions for each in one.replicas}
    assert replicas == {ONE, THREE}
    assert created.reply[1].outcome.error == ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_broker_that_comes_back_is_not_shutting_down_any_more() -> None:
    image, _ = shut_down(of_three(), 1)
    again = {**image.brokers, ONE: broker(1, epoch=1)}
    assert decided(image, BrokersSeen(again)).shutting_down == {ONE}, "it is the same start"
    assert back(image, broker(1, epoch=9, clean_start=True)).shutting_down == frozenset()
    assert fenced(image, 1).shutting_down == frozenset()


def test_a_shutdown_of_another_start_is_refused() -> None:
    for broker_id, epoch in ((ONE, 0), (BrokerId(9), 1)):
        with pytest.raises(Refused) as refused:
            controller().decide(of_three(), ControlledShutdown(broker_id, epoch))
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_is_up_or_unknown_is_not_unregistered() -> None:
    for broker_id, code in ((ONE, ErrorCode.INVALID_REQUEST), (BrokerId(9), ErrorCode.BROKER_ID_NOT_REGISTERED)):
        with pytest.raises(Refused) as refused:
            controller().decide(of_three(), UnregisterBroker(broker_id))
        assert refused.value.code == code
    assert refused.value.message == "Broker ID 9 is not currently registered"


def test_nothing_waits_for_a_broker_that_is_unregistered() -> None:
    image = with_partition(of_three(), isr=ALL)
    image = decided(image, AlterReassignments((Reassignment("t", 0, (1, 2)),)))
    assert image.topics["t"].former_brokers == (THREE,)
    image = with_topic(image, "u", 4, 4)
    image = fenced(decided(image, DeleteTopics((TopicReference("u"),))), 3)
    image = decided(image, UnregisterBroker(THREE))
    assert not image.is_registered(THREE)
    assert [deleted.brokers for deleted in image.deleted_topics.values()] == [(ONE, TWO, FOUR)]
    assert image.topics["t"].former_brokers == ()


def test_a_broker_that_was_unregistered_may_have_crashed_since() -> None:
    image = decided(fenced(of_three(), 1, 2, 3), UnregisterBroker(TWO))
    assert partition(image).isr == ALL, "all went down together, and each can lead when it is back"
    image = back(image, replace(broker(2, epoch=9, clean_start=True), incarnation=2, last_crash=1))
    assert (partition(image).leader, partition(image).isr) == (NO_LEADER, (ONE, THREE))


def test_a_lost_broker_takes_one_pass_and_few_transactions() -> None:
    """Of 100 brokers with 20,000 partitions: nothing that grows with the square."""
    image = cluster(*(broker(number) for number in range(100)))
    for name in range(20):
        image = with_topic(image, f"topic-{name}", 1000, 3)
    decision = controller().decide(image, FenceBrokers(((BrokerId(7), 1),)))
    changed = decision.steps[-1].image
    assert all(BrokerId(7) not in one.isr for topic in changed.topics.values() for one in topic.partitions)
    assert all(one.leader not in (7, NO_LEADER) for topic in changed.topics.values() for one in topic.partitions)
    assert sum(len(step.operations) for step in decision.steps) <= 1 + 20 * 2
