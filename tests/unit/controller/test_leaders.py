"""Elections on request and automatic ones: KIP-460, ReplicationControlManager.electLeaders."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import LeaderEpoch
from kaspar.controller import leaders
from kaspar.controller.events import DONE, ElectionType, ElectLeaders, Outcome, PartitionOutcome, RebalanceLeaders
from kaspar.metadata.image import NO_LEADER, ClusterImage, PartitionImage
from tests.unit.controller.clusters import after, broker, controller, with_topic
from tests.unit.controller.partitions import ONE, THREE, TWO, altered, back, fenced, of_three, partition

ALL = (ONE, TWO, THREE)
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


def elect(image: ClusterImage, kind: int, *asked: tuple[str, int]) -> tuple[ClusterImage, list[Outcome]]:
    decision = controller().decide(image, ElectLeaders(kind, asked))
    return after(decision, image), [each.outcome for each in decision.reply]


def moved_away() -> ClusterImage:
    """Broker 1 is back, but does not lead."""
    image = back(fenced(of_three(), 1), broker(1, epoch=9, clean_start=True))
    return altered(image, 2, 3, 1)[0]


def test_leadership_goes_back_to_the_preferred_replica() -> None:
    image, (outcome,) = elect(moved_away(), PREFERRED, ("t", 0))
    assert outcome == DONE
    assert partition(image) == PartitionImage(ALL, (TWO, THREE, ONE), ONE, LeaderEpoch(2), 3)


def test_no_election_where_none_is_needed() -> None:
    sentence = "Leader election not needed for topic partition."
    for kind in (PREFERRED, UNCLEAN):
        assert elect(of_three(), kind, ("t", 0))[1] == [Outcome(ErrorCode.ELECTION_NOT_NEEDED, sentence)]


def test_the_preferred_replica_leads_only_if_it_is_in_sync_and_up() -> None:
    sentence = "The preferred leader was not available."
    not_available = Outcome(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, sentence)
    down = fenced(of_three(), 1)
    behind = back(down, broker(1, epoch=9))
    for image in (down, behind):
        assert elect(image, PREFERRED, ("t", 0)) == (image, [not_available])


def test_an_unclean_election_takes_any_replica_that_is_up() -> None:
    image = fenced(altered(of_three(), 1)[0], 1)
    elected, (outcome,) = elect(image, UNCLEAN, ("t", 0))
    assert outcome == DONE
    assert partition(elected) == PartitionImage(ALL, (TWO,), TWO, LeaderEpoch(2), 3)
    nobody = fenced(image, 2, 3)
    sentence = "Eligible topic partition leaders are not available."
    assert elect(nobody, UNCLEAN, ("t", 0))[1] == [Outcome(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, sentence)]


def test_an_unclean_election_forgets_the_eligible_replicas() -> None:
    image = fenced(altered(of_three(elr=True), 1)[0], 1)
    assert (partition(image).leader, partition(image).elr) == (NO_LEADER, (ONE,))
    elected, _ = elect(image, UNCLEAN, ("t", 0))
    assert partition(elected)._replace(partition_epoch=0) == PartitionImage(ALL, (TWO,), TWO, LeaderEpoch(2), 0)


def test_partitions_that_do_not_exist_are_refused_one_by_one() -> None:
    _, outcomes = elect(moved_away(), PREFERRED, ("nope", 0), ("t", 7), ("t", -1), ("t", 0))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcomes == [
        Outcome(unknown, "No such topic as nope"),
        Outcome(unknown, "No such partition as t-7"),
        Outcome(unknown, "No such partition as t--1"),
        DONE,
    ]
    with pytest.raises(Refused, match="Unknown election type 5"):
        elect(moved_away(), 5, ("t", 0))


def test_an_election_for_all_partitions_reports_only_those_that_needed_one() -> None:
    image = with_topic(moved_away(), "u", 5, 1)
    decision = controller().decide(image, ElectLeaders(PREFERRED))
    assert decision.reply == (PartitionOutcome("t", 0, DONE),)
    assert partition(after(decision, image)).leader == ONE


def test_leaders_are_rebalanced_where_the_preferred_replica_is_in_sync() -> None:
    decision = controller().decide(moved_away(), RebalanceLeaders())
    assert decision.reply is False
    assert partition(after(decision, moved_away())).leader == ONE
    balanced = controller().decide(of_three(), RebalanceLeaders())
    assert (balanced.steps, balanced.reply) == ((), False)
    behind = back(fenced(of_three(), 1), broker(1, epoch=9))
    assert controller().decide(behind, RebalanceLeaders()).steps == ()


def test_a_rebalance_is_limited_and_says_that_there_is_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaders, "MAX_ELECTIONS_PER_REBALANCE", 2)
    image = with_topic(of_three(), "u", 12, 4)
    topic = image.topics["u"]
    led_by_last = tuple(each._replace(leader=each.replicas[-1]) for each in topic.partitions)
    image = image.with_topics({"u": type(topic)("u", topic.topic_id, led_by_last)})
    for number in range(6):
        decision = controller().decide(image, RebalanceLeaders())
        image = after(decision, image)
        assert decision.reply is (number < 5)
    assert all(each.leader == each.replicas[0] for each in image.topics["u"].partitions)
