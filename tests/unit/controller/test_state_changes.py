"""What one image changed of another: counted, and written to the state change log."""

import logging
import uuid

import pytest

from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.controller.metrics import ControllerMetrics
from kaspar.controller.state_changes import STATE_CHANGE_LOGGER, record_changes
from kaspar.metadata.image import NO_LEADER, ClusterImage, DeletedTopic, PartitionImage, TopicImage

TOPIC_ID = uuid.uuid4()


def partition(leader: int, isr: tuple[int, ...], elr: tuple[int, ...] = (), *, epoch: int = 0) -> PartitionImage:
    return PartitionImage(
        replicas=(BrokerId(1), BrokerId(2), BrokerId(3)),
        isr=tuple(map(BrokerId, isr)),
        leader=BrokerId(leader),
        leader_epoch=LeaderEpoch(epoch),
        partition_epoch=epoch,
        elr=tuple(map(BrokerId, elr)),
    )


def image(*partitions: PartitionImage, topic_id: uuid.UUID = TOPIC_ID) -> ClusterImage:
    topics = {"t": TopicImage("t", topic_id, partitions)} if partitions else {}
    return ClusterImage(cluster_id="c", topics=topics)


@pytest.mark.parametrize(
    ("old", "new", "unclean", "eligible"),
    [
        (partition(1, (1, 2)), partition(2, (2,)), 0, 0),
        (partition(1, (1,), (2,)), partition(2, (2,)), 0, 1),
        (partition(NO_LEADER, (1,)), partition(3, (3,)), 1, 0),
        (partition(1, (1, 2)), partition(NO_LEADER, (1,)), 0, 0),
        (partition(1, (1, 2)), partition(1, (1,)), 0, 0),
    ],
    ids=["from the in-sync", "from the eligible", "unclean", "no leader left", "same leader"],
)
def test_elections_are_counted_by_whether_records_may_be_lost(
    old: PartitionImage, new: PartitionImage, unclean: int, eligible: int
) -> None:
    metrics = ControllerMetrics()
    record_changes(image(old, old), image(old, new), {"t"}, (), metrics)
    assert (metrics.unclean_elections, metrics.eligible_elections) == (unclean, eligible)


def test_a_topic_created_again_under_its_name_is_no_election() -> None:
    metrics = ControllerMetrics()
    old, new = image(partition(1, (1,))), image(partition(2, (2,)), topic_id=uuid.uuid4())
    record_changes(old, new, {"t"}, (), metrics)
    assert metrics.unclean_elections == 0


@pytest.fixture
def state_changes(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, STATE_CHANGE_LOGGER)
    return caplog


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, dict[str, object]]]:
    return [(record.levelname, record.getMessage(), vars(record)["values"]) for record in caplog.records]


def test_changes_of_leaders_and_in_sync_replicas_are_logged(state_changes: pytest.LogCaptureFixture) -> None:
    old, new = partition(1, (1, 2)), partition(2, (2,), epoch=1)
    record_changes(image(old), image(new), {"t"}, (), ControllerMetrics())
    ((level, sentence, values),) = lines(state_changes)
    assert (level, sentence) == ("INFO", "a partition changed")
    assert values["partition"] == "t-0"
    assert values["leader"] == "1 -> 2"
    assert values["isr"] == "[1,2] -> [2]"
    assert values["leader_epoch"] == 1


def test_partitions_without_a_leader_and_unclean_leaders_are_warnings(state_changes: pytest.LogCaptureFixture) -> None:
    led, lost, unclean = partition(1, (1,)), partition(NO_LEADER, (1,)), partition(3, (3,))
    record_changes(image(led), image(lost), {"t"}, (), ControllerMetrics())
    record_changes(image(lost), image(unclean), {"t"}, (), ControllerMetrics())
    assert [(level, sentence) for level, sentence, _ in lines(state_changes)] == [
        ("WARNING", "a partition is offline"),
        ("WARNING", "a leader was elected that may lack committed records"),
    ]


def test_topics_that_come_grow_and_go_are_logged(state_changes: pytest.LogCaptureFixture) -> None:
    one = partition(1, (1,))
    record_changes(image(), image(one), {"t"}, (), ControllerMetrics())
    record_changes(image(one), image(one, one, one), {"t"}, (), ControllerMetrics())
    record_changes(image(one), image(), {"t"}, (DeletedTopic("t", TOPIC_ID, (BrokerId(1),)),), ControllerMetrics())
    assert [(sentence, values.get("partitions")) for _, sentence, values in lines(state_changes)] == [
        ("a topic is created", 1),
        ("partitions are created", 2),
        ("a topic is deleted", None),
    ]


def test_nothing_is_logged_by_default(caplog: pytest.LogCaptureFixture) -> None:
    record_changes(image(), image(partition(1, (1,))), {"t"}, (), ControllerMetrics())
    assert not caplog.records
