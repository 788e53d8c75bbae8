"""Leaders change the in-sync replicas (AlterPartition): KIP-497, KIP-841, KIP-903, ReplicationControlManager."""

import uuid

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import LeaderEpoch
from kaspar.controller.events import (
    AlterPartitions,
    AssignDirectories,
    ControlledShutdown,
    DirectoriesFailed,
    IsrChange,
)
from kaspar.metadata.image import PartitionImage
from tests.unit.controller.clusters import after, broker, controller, with_topic
from tests.unit.controller.partitions import (
    ONE,
    THREE,
    TWO,
    altered,
    back,
    decided,
    fenced,
    isr_change,
    of_three,
    partition,
    with_partition,
)

ALL = (ONE, TWO, THREE)


@pytest.mark.parametrize(
    ("epochs", "error"),
    [
        ((1, 9), ErrorCode.NONE),
        ((1, -1), ErrorCode.NONE),
        ((-1, -1), ErrorCode.NONE),
        ((), ErrorCode.NONE),
        ((1, 1), ErrorCode.INELIGIBLE_REPLICA),
        ((0, 9), ErrorCode.INELIGIBLE_REPLICA),
        ((1,), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_replica_joins_in_the_registration_in_which_it_caught_up(epochs: tuple[int, ...], error: ErrorCode) -> None:
    image = back(altered(of_three(), 1)[0], broker(3, epoch=9))
    image, reply = altered(image, 1, 3, epochs=epochs)
    assert reply.outcome.error == error
    assert partition(image).isr == ((ONE, THREE) if error == ErrorCode.NONE else (ONE,))


def test_brokers_that_are_down_or_shut_down_are_not_in_sync() -> None:
    image = fenced(of_three(), 2)
    _, reply = altered(image, 1, 2, 3)
    assert reply.outcome.error == ErrorCode.INELIGIBLE_REPLICA
    assert reply.outcome.message == "Not eligible to be in sync: 2 (fenced)."
    image = decided(of_three(), ControlledShutdown(THREE, 1))
    _, reply = altered(image, 1, 2, 3)
    assert reply.outcome.message == "Not eligible to be in sync: 3 (shutting down)."


def test_a_replica_whose_log_directory_has_failed_is_not_in_sync() -> None:
    here, other = uuid.UUID(int=7), uuid.UUID(int=8)
    image = with_partition(of_three(), directories=(here, here, here))
    image = back(image, broker(3, epoch=9, clean_start=True, log_dirs=(here, other)))
    image = decided(image, DirectoriesFailed(THREE, 9, (here,)))
    assert partition(image).isr == (ONE, TWO)
    _, reply = altered(image, 1, 2, 3)
    assert reply.outcome.error == ErrorCode.INELIGIBLE_REPLICA
    assert reply.outcome.message == "Not eligible to be in sync: 3 (log directory offline)."
    placed = decided(image, AssignDirectories(THREE, ((image.topics["t"].topic_id, 0, other),)))
    assert partition(altered(placed, 1, 2, 3)[0]).isr == ALL


def test_a_change_that_changes_nothing_is_answered_with_the_state_that_there_is() -> None:
    image = of_three()
    decision = controller().decide(image, AlterPartitions(ONE, 1, (isr_change(image, 1, 2, 3),)))
    assert decision.steps == ()
    assert decision.reply[0].partition == partition(image)


def test_a_second_change_of_the_same_partition_must_know_of_the_first() -> None:
    image = of_three()
    first, stale = isr_change(image, 1, 2), isr_change(image, 1, 3)
    later = isr_change(image, 1, 2, 3, partition_epoch=1)
    decision = controller().decide(image, AlterPartitions(ONE, 1, (first, stale, later)))
    errors = [reply.outcome.error for reply in decision.reply]
    assert errors == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.NONE]
    assert partition(after(decision, image)) == PartitionImage(ALL, ALL, ONE, LeaderEpoch(0), 2)


def test_changes_of_many_partitions_of_a_topic_write_each_node_once() -> None:
    image = with_topic(of_three(), "u", 1200, 4)
    topic = image.topics["u"]
    changes = tuple(
        IsrChange(topic.topic_id, number, one.leader_epoch, one.partition_epoch, (one.leader,))
        for number, one in enumerate(topic.partitions)
        if one.leader == ONE
    )
    decision = controller().decide(image, AlterPartitions(ONE, 1, changes))
    assert len(changes) == 300
    assert sum(len(step.operations) for step in decision.steps) == 3


def test_unknown_topics_are_refused_one_by_one() -> None:
    image = of_three()
    unknown = IsrChange(uuid.UUID(int=1), 0, LeaderEpoch(0), 0, (ONE,))
    decision = controller().decide(image, AlterPartitions(ONE, 1, (unknown, isr_change(image, 1))))
    assert [reply.outcome.error for reply in decision.reply] == [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE]
