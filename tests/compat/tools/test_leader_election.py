"""kafka-leader-election beside Kafka's."""

import pytest

from kaspar.base.ids import TopicPartition
from tests.compat.tools.comparing import Side, check_same, same_on_both_sides


def _topic_with_other_leaders(side: Side, partitions: int) -> str:
    """The leader of each partition is 1, its preferred leader 2."""
    topic = side.new_topic([(1, 2)] * partitions)
    side.reassign("--execute", "--reassignment-json-file", side.plan(topic, *[(2, 1)] * partitions))
    side.wait_until_reassigned(topic)
    assert {each.leader for each in side.partitions(topic)} == {1}
    return topic


def test_preferred_leader_is_elected_once(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = _topic_with_other_leaders(side, 1)
        for _ in range(2):
            side.elect("--election-type", "preferred", "--topic", topic, "--partition", "0")
            side.wait_for_leader(TopicPartition(topic, 0), 2)
        side.elect("--election-type", "UNCLEAN", "--topic", topic, "--partition", "0")

    same_on_both_sides(sides, scenario)


def test_partitions_of_a_file_are_elected_and_each_failure_is_reported(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        topic = _topic_with_other_leaders(side, 3)
        side.elect("--election-type", "preferred", "--topic", topic, "--partition", "2")
        partitions = [{"topic": topic, "partition": number} for number in (0, 1, 2)]
        side.elect("--election-type", "preferred", "--path-to-json-file", side.file({"partitions": partitions}))
        partitions = [{"topic": topic, "partition": 0}, {"topic": topic, "partition": 7}]
        side.elect("--election-type", "preferred", "--path-to-json-file", side.file({"partitions": partitions}))
        partitions = [{"topic": "nowhere", "partition": 0}]
        side.elect("--election-type", "unclean", "--path-to-json-file", side.file({"partitions": partitions}))

    same_on_both_sides(sides, scenario)


def test_all_partitions_that_need_it_are_elected(sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        side.elect("--election-type", "preferred", "--all-topic-partitions")  # what other tests left behind
        side.seen.clear()
        topic = _topic_with_other_leaders(side, 2)
        side.elect("--election-type", "preferred", "--all-topic-partitions")
        side.elect("--election-type", "preferred", "--all-topic-partitions")
        side.wait_for_leader(TopicPartition(topic, 1), 2)

    same_on_both_sides(sides, scenario)


@pytest.mark.parametrize(
    "content",
    [
        '{"partitions": [{"topic": "x", "partition": 1}, {"topic": "x", "partition": 1}]}',
        "",
        " ",
        "{}",
        "[]",
        '{"partitions": 5}',
        '{"partitions": [5]}',
        '{"partitions": [{"topic": "x"}]}',
        '{"partitions": [{"topic": 5, "partition": 1}]}',
        '{"partitions": [{"topic": "x", "partition": "1"}]}',
    ],
)
def test_wrong_files(content: str, sides: tuple[Side, Side]) -> None:
    def scenario(side: Side) -> None:
        side.elect("--election-type", "preferred", "--path-to-json-file", side.file(content))

    same_on_both_sides(sides, scenario)


def test_file_that_is_not_json(sides: tuple[Side, Side]) -> None:
    codes = [
        side.elect("--election-type", "preferred", "--path-to-json-file", side.file("{bad")).code for side in sides
    ]
    assert codes == [1, 1]
    assert sides[1].seen[0].errors.startswith("The file is not valid JSON: ")


@pytest.mark.long
def test_preferred_and_unclean_election_without_a_live_replica(sides: tuple[Side, Side]) -> None:
    """Node 3 is killed: it is the preferred leader of one partition, and the only replica of another."""
    cluster = sides[0].cluster
    topics = [(side.new_topic([(3, 1)]), side.new_topic([(3,)])) for side in sides]
    cluster.kill(3)
    try:
        for side, (followed, alone) in zip(sides, topics, strict=True):
            side.wait_for_leader(TopicPartition(followed, 0), 1)
            side.wait_for_leader(TopicPartition(alone, 0), -1)
            for kind in ("preferred", "unclean"):
                for topic in (followed, alone):
                    side.elect("--election-type", kind, "--topic", topic, "--partition", "0")
    finally:
        cluster.start(3)
    check_same(sides)
