"""What kafka-topics --describe shows of topics and partitions."""

import argparse

import pytest

from kaspar.base.ids import random_uuid
from kaspar.client.admin.reassignments import Reassignment
from kaspar.client.admin.topics import PartitionDescription, TopicDescription
from kaspar.tools.topics.command import command_options
from kaspar.tools.topics.describing import Described, lines

LIVE = {1, 2}
IN_SYNC = PartitionDescription(0, 1, 5, (1, 2, 3), (1, 2, 3), (), (), ())
FOLLOWER_BEHIND = PartitionDescription(1, 2, 5, (2, 3, 1), (2, 1), (3,), (3,), ())
LEADER_ALONE = PartitionDescription(2, 1, 5, (1, 2, 3), (1,), (3,), (), (2,))
LEADERLESS = PartitionDescription(3, -1, 5, (3,), (), (3,))
LEADER_GONE = PartitionDescription(4, 3, 5, (3, 1, 2), (3, 1, 2), ())
PARTITIONS = (IN_SYNC, FOLLOWER_BEHIND, LEADER_ALONE, LEADERLESS, LEADER_GONE)


def _options(*arguments: str) -> argparse.Namespace:
    return command_options().parse(["--describe", *arguments])


def _described(*partitions: PartitionDescription, reassignments: dict[int, Reassignment] | None = None) -> Described:
    topic = TopicDescription("orders", random_uuid(), False, partitions)
    return Described(topic, {"cleanup.policy": "compact", "segment.ms": "1"}, 2, reassignments or {})


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ("--under-replicated-partitions", [1, 2, 3]),
        ("--unavailable-partitions", [3, 4]),
        ("--under-min-isr-partitions", [2, 3]),
        ("--at-min-isr-partitions", [1]),
    ],
)
def test_filters(option: str, shown: list[int]) -> None:
    found = lines(_described(*PARTITIONS), _options(option), LIVE)
    assert [int(line.split("\t")[2].removeprefix("Partition: ")) for line in found] == shown


def test_partitions_pass_any_of_several_filters() -> None:
    options = _options("--at-min-isr-partitions", "--unavailable-partitions")
    assert len(lines(_described(*PARTITIONS), options, LIVE)) == 3


def test_layout() -> None:
    described = _described(FOLLOWER_BEHIND, LEADERLESS)
    first, second, third = lines(described, _options(), LIVE)
    assert first.split("\t")[2:] == [
        "PartitionCount: 2",
        "ReplicationFactor: 3",
        "Configs: cleanup.policy=compact,segment.ms=1",
    ]
    assert second == "\tTopic: orders\tPartition: 1\tLeader: 2\tReplicas: 2,3,1\tIsr: 2,1\tElr: 3\tLastKnownElr: "
    assert third == "\tTopic: orders\tPartition: 3\tLeader: none\tReplicas: 3\tIsr: \tElr: N/A\tLastKnownElr: N/A"


def test_topics_with_overrides_are_shown_without_partitions() -> None:
    options = _options("--topics-with-overrides")
    assert len(lines(_described(IN_SYNC), options, LIVE)) == 1
    plain = Described(_described(IN_SYNC).topic, {}, 1, {})
    assert lines(plain, options, LIVE) == []


def test_reassignment_does_not_count_for_the_replication_factor() -> None:
    moving = PartitionDescription(0, 1, 5, (1, 2, 3), (1, 2), (), (), ())
    described = _described(moving, reassignments={0: Reassignment((1, 2, 3), (3,), (1,))})
    first, second = lines(described, _options(), LIVE)
    assert "ReplicationFactor: 2" in first
    assert "\tAdding Replicas: 3\tRemoving Replicas: 1\t" in second
    assert lines(described, _options("--under-replicated-partitions"), LIVE) == []


def test_reassignment_that_has_ended_meanwhile_is_ignored() -> None:
    described = _described(IN_SYNC, reassignments={0: Reassignment((1, 2, 3, 4), (4,), (5,))})
    assert "ReplicationFactor: 3" in lines(described, _options(), LIVE)[0]
