"""Other replicas for a partition: KIP-455, KIP-860, PartitionReassignmentReplicas, PartitionReassignmentRevert."""

import uuid

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ZERO_UUID, BrokerId, LeaderEpoch
from kaspar.controller.events import (
    DONE,
    AlterReassignments,
    DeleteTopics,
    Outcome,
    Reassignment,
    TopicReference,
)
from kaspar.metadata.image import ClusterImage, PartitionImage
from tests.unit.controller.clusters import after, broker, controller, with_topic
from tests.unit.controller.partitions import (
    FOUR,
    ONE,
    THREE,
    TWO,
    altered,
    fenced,
    of_three,
    partition,
    with_partition,
)

FIVE = BrokerId(5)


def reassign(
    image: ClusterImage, replicas: tuple[int, ...] | None, *, topic: str = "t", number: int = 0, allow: bool = True
) -> tuple[ClusterImage, Outcome]:
    event = AlterReassignments((Reassignment(topic, number, replicas),), allow)
    decision = controller().decide(image, event)
    (reply,) = decision.reply
    assert (reply.topic, reply.partition) == (topic, number)
    return after(decision, image), reply.outcome


def done(image: ClusterImage, replicas: tuple[int, ...] | None) -> ClusterImage:
    image, outcome = reassign(image, replicas)
    assert outcome == DONE
    return image


def moving(*, elr: bool = False) -> ClusterImage:
    """From 1, 2, 3 to 4, 2, 5."""
    return done(of_three(brokers=6, elr=elr), (4, 2, 5))


def test_wanted_replicas_are_added_and_the_others_stay_for_now() -> None:
    assert partition(moving()) == PartitionImage(
        (FOUR, TWO, FIVE, ONE, THREE),
        (ONE, TWO, THREE),
        ONE,
        LeaderEpoch(0),
        1,
        adding_replicas=(FOUR, FIVE),
        removing_replicas=(ONE, THREE),
    )
    assert moving().topics["t"].replication_factor == 3


def test_it_is_done_when_all_wanted_replicas_are_in_sync() -> None:
    image, reply = altered(moving(), 1, 2, 3, 4)
    assert reply.outcome == DONE
    assert partition(image).is_reassigning
    image, reply = altered(image, 1, 2, 3, 4, 5)
    assert reply.outcome.error == ErrorCode.NEW_LEADER_ELECTED, "the leader that asked is not a replica any more"
    assert reply.partition == partition(image)
    assert partition(image) == PartitionImage((FOUR, TWO, FIVE), (TWO, FOUR, FIVE), FOUR, LeaderEpoch(1), 3)


def test_brokers_that_leave_are_told_to_remove_their_logs() -> None:
    image = moving()
    topic_id = image.topics["t"].topic_id
    assert not image.has_left(ONE, topic_id, 0)
    image, _ = altered(image, 1, 2, 3, 4, 5)
    assert [image.has_left(each, topic_id, 0) for each in (ONE, TWO, THREE)] == [True, False, True]
    assert image.topics["t"].former_brokers == (ONE, THREE)


def test_brokers_that_left_also_hear_of_the_deletion_of_the_topic() -> None:
    image, _ = altered(moving(), 1, 2, 3, 4, 5)
    topic_id = image.topics["t"].topic_id
    image = after(controller().decide(image, DeleteTopics((TopicReference("t"),))), image)
    assert image.deleted_topics[topic_id].brokers == (ONE, TWO, THREE, FOUR, FIVE)


def test_a_topic_is_deleted_also_while_it_is_reassigned() -> None:
    image = moving()
    topic_id = image.topics["t"].topic_id
    image = after(controller().decide(image, DeleteTopics((TopicReference("t"),))), image)
    assert image.deleted_topics[topic_id].brokers == (ONE, TWO, THREE, FOUR, FIVE)


def test_another_order_of_the_same_replicas_needs_no_copying_and_no_election() -> None:
    image = done(of_three(), (3, 1, 2))
    assert partition(image) == PartitionImage((THREE, ONE, TWO), (ONE, TWO, THREE), ONE, LeaderEpoch(0), 1)


def test_fewer_replicas_are_done_at_once_if_those_that_stay_are_in_sync() -> None:
    image = done(of_three(), (2, 3))
    assert partition(image) == PartitionImage((TWO, THREE), (TWO, THREE), TWO, LeaderEpoch(1), 1)
    lagging, _ = altered(of_three(), 1, 2)
    assert partition(done(lagging, (2, 3))).removing_replicas == (ONE,)


def test_the_directories_go_with_their_replicas() -> None:
    one, two, three = (uuid.UUID(int=number) for number in (1, 2, 3))
    image = done(with_partition(of_three(), directories=(one, two, three)), (4, 3))
    assert partition(image).directories == (ZERO_UUID, three, one, two)


def test_a_reassignment_that_is_cancelled_goes_back() -> None:
    image, _ = altered(moving(), 1, 2, 3, 4)
    image = done(image, None)
    assert partition(image)._replace(partition_epoch=0) == PartitionImage(
        (TWO, ONE, THREE), (ONE, TWO, THREE), ONE, LeaderEpoch(1), 0
    )
    assert image.topics["t"].former_brokers == (FOUR, FIVE)
    none = Outcome(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)  # without a sentence, as in Kafka
    assert reassign(image, None) == (image, none)


def test_a_changed_reassignment_drops_what_it_was_adding_and_still_goes_back_to_the_beginning() -> None:
    image = done(moving(), (5, 6, 3))
    assert partition(image) == PartitionImage(
        (FIVE, BrokerId(6), THREE, TWO, ONE),
        (ONE, TWO, THREE),
        ONE,
        LeaderEpoch(1),
        2,
        adding_replicas=(FIVE, BrokerId(6)),
        removing_replicas=(TWO, ONE),
    )
    assert set(partition(done(image, None)).replicas) == {ONE, TWO, THREE}


@pytest.mark.parametrize("wanted", [None, (1, 2, 3)])
def test_replicas_that_alone_have_the_records_are_not_dropped(wanted: tuple[int, ...] | None) -> None:
    image = with_partition(moving(), isr=(FOUR,), leader=FOUR)
    same, outcome = reassign(image, wanted)
    assert outcome.error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert same == image
    if wanted is None:
        assert outcome.message == (
            "Unable to revert partition assignment for t:0 because it would require an unclean leader election."
        )


def test_a_cancellation_may_lose_records_where_unclean_elections_are_allowed() -> None:
    image = done(of_three(brokers=5, unclean_leader_election_enable="true"), (4, 5))
    image = with_partition(image, isr=(FOUR,), leader=FOUR)
    image = done(image, None)
    assert (partition(image).leader, partition(image).isr) == (ONE, (ONE,))


def test_a_cancellation_elects_an_eligible_replica() -> None:
    image = with_partition(moving(elr=True), isr=(FOUR,), elr=(TWO,), leader=FOUR)
    image = done(image, None)
    assert (partition(image).leader, partition(image).isr) == (TWO, (TWO,))


def test_a_partition_without_a_leader_can_be_reassigned() -> None:
    image = fenced(of_three(brokers=5), 1, 2, 3)
    image = done(image, (4, 5))
    assert partition(image).adding_replicas == (FOUR, FIVE)


@pytest.mark.parametrize(
    ("topic", "number", "replicas", "outcome"),
    [
        ("u", 0, (1,), Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named u.")),
        ("t", 3, (1,), Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition t:3.")),
        ("t", -1, None, Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition t:-1.")),
        (
            "t",
            0,
            (),
            Outcome(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes an empty replica list.",
            ),
        ),
        (
            "t",
            0,
            (1, 9),
            Outcome(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes broker 9, but no such broker is registered.",
            ),
        ),
        (
            "t",
            0,
            (2, 2),
            Outcome(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes the broker 2 more than once.",
            ),
        ),
    ],
)
def test_wrong_reassignments_are_refused(
    topic: str, number: int, replicas: tuple[int, ...] | None, outcome: Outcome
) -> None:
    assert reassign(of_three(), replicas, topic=topic, number=number) == (of_three(), outcome)


def test_the_replication_factor_changes_only_if_that_is_allowed() -> None:
    image = of_three(brokers=6)
    for replicas in ((1, 2), (1, 2, 3, 4)):
        _, outcome = reassign(image, replicas, allow=False)
        sentence = f"The replication factor is changed from 3 to {len(replicas)}"
        assert outcome == Outcome(ErrorCode.INVALID_REPLICATION_FACTOR, sentence)
    assert reassign(image, (4, 5, 6), allow=False)[1] == DONE
    assert reassign(moving(), (4, 2, 6), allow=False)[1] == DONE, "three are wanted, though there are five now"


def test_a_broker_that_is_down_can_be_wanted() -> None:
    image = done(fenced(of_three(), 4), (4, 2, 3))
    assert partition(image).adding_replicas == (FOUR,)


def test_many_partitions_of_a_topic_write_each_node_once() -> None:
    image = with_topic(of_three(brokers=5), "u", 700, 1)
    target = tuple(Reassignment("u", number, (4, 5)) for number in range(700))
    decision = controller().decide(image, AlterReassignments(target))
    assert all(reply.outcome == DONE for reply in decision.reply)
    assert sum(len(step.operations) for step in decision.steps) == 2


def test_a_reassignment_goes_on_while_brokers_come_and_go() -> None:
    image = fenced(moving(), 1)
    assert (partition(image).leader, partition(image).isr) == (TWO, (TWO, THREE))
    image, reply = altered(image, 2, 4, 5)
    assert reply.outcome == DONE
    assert partition(image)._replace(partition_epoch=0) == PartitionImage(
        (FOUR, TWO, FIVE), (TWO, FOUR, FIVE), TWO, LeaderEpoch(2), 0
    )
    assert broker(1).broker_id in image.topics["t"].former_brokers
