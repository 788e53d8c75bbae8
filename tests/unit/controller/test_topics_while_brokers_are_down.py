"""Topics are created and grown while some brokers are down or about to stop (StripedReplicaPlacer)."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId
from kaspar.controller.events import (
    ControlledShutdown,
    CreatePartitions,
    CreateTopics,
    MorePartitions,
    NewTopic,
    UnregisterBroker,
)
from kaspar.metadata.image import ClusterImage
from tests.unit.controller.clusters import after, broker, cluster, controller, with_topic
from tests.unit.controller.partitions import ONE, THREE, TWO, decided, fenced


def without_three() -> ClusterImage:
    return fenced(cluster(broker(1), broker(2), broker(3)), 3)


def test_replicas_on_a_broker_that_is_down_are_not_in_sync_and_do_not_lead() -> None:
    image = with_topic(without_three(), "t", 6, 3)
    for partition in image.topics["t"].partitions:
        assert set(partition.replicas) == {ONE, TWO, THREE}
        assert set(partition.isr) == {ONE, TWO}
        assert partition.leader == partition.replicas[0] != THREE


def test_a_broker_that_is_down_is_not_used_if_others_suffice() -> None:
    image = with_topic(without_three(), "t", 6, 2)
    assert all(set(partition.replicas) == {ONE, TWO} for partition in image.topics["t"].partitions)
    image = decided(image, CreatePartitions((MorePartitions("t", 9),)))
    assert all(set(partition.replicas) == {ONE, TWO} for partition in image.topics["t"].partitions)


def test_a_broker_that_was_unregistered_is_not_used_at_all() -> None:
    image = decided(without_three(), UnregisterBroker(THREE))
    (reply,) = controller().decide(image, CreateTopics((NewTopic("t", 1, 3),))).reply
    assert reply.outcome.error == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "only 2 broker(s) are registered" in str(reply.outcome.message)


def test_a_manual_assignment_may_name_a_broker_that_is_down_but_not_only_such() -> None:
    image = without_three()
    event = CreateTopics(
        (NewTopic("t", assignments=((0, (3, 1)), (1, (2, 3)))), NewTopic("u", assignments=((0, (3,)),)))
    )
    decision = controller().decide(image, event)
    first, second = after(decision, image).topics["t"].partitions
    assert (first.leader, first.isr, second.leader) == (ONE, (ONE,), TWO)
    refused = decision.reply[1].outcome
    assert refused.error == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refused.message == (
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled shutdown."
    )


@pytest.mark.parametrize("factor", [1, 2])
def test_a_broker_that_is_about_to_stop_is_not_used(factor: int) -> None:
    image = cluster(broker(1), broker(2), broker(3))
    image = decided(image, ControlledShutdown(BrokerId(3), 1))
    image = with_topic(image, "t", 6, factor)
    assert all(THREE not in partition.replicas for partition in image.topics["t"].partitions)
