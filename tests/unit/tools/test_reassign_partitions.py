"""kafka-reassign-partitions without a cluster: files, moves and throttles, proposals, log directories."""

import random

import pytest

from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.client.admin.cluster import ClusterNode
from kaspar.client.admin.log_dirs import Replica, ReplicaLogDirs
from kaspar.client.admin.reassignments import Reassignment
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.reassign_partitions.generating import Broker, parse_broker_list, propose, usable_brokers
from kaspar.tools.reassign_partitions.log_dir_moves import describe_move
from kaspar.tools.reassign_partitions.plan import check_executable, format_assignment, parse_plan, parse_topics
from kaspar.tools.reassign_partitions.throttles import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    Move,
    proposed_moves,
    topic_throttles,
)

FOO_0, FOO_1, FOO_10, BAR_0 = (TopicPartition(*each) for each in (("foo", 0), ("foo", 1), ("foo", 10), ("bar", 0)))


# --- files ------------------------------------------------------------------------------------------------------------


def test_plan_is_written_and_read_again() -> None:
    assignment = {FOO_1: (1, 2), FOO_0: (3,)}
    log_dirs = {Replica(2, FOO_1): "/data"}
    text = format_assignment(assignment, log_dirs)
    assert text == (
        '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[3],"log_dirs":["any"]},'
        '{"topic":"foo","partition":1,"replicas":[1,2],"log_dirs":["any","/data"]}]}'
    )
    plan = parse_plan(text)
    assert plan.assignment == assignment
    assert plan.log_dirs == log_dirs
    assert (plan.topics, plan.broker_ids) == (["foo"], {1, 2, 3})
    check_executable(plan)


def test_plan_needs_neither_version_nor_log_directories() -> None:
    plan = parse_plan('{"partitions": [{"topic": "foo", "partition": 0, "replicas": [1, 2]}]}')
    assert plan.assignment == {FOO_0: (1, 2)}
    assert plan.log_dirs == {}


def test_plan_with_one_partition_twice_is_not_executed() -> None:
    entry = '{"topic": "foo", "partition": 0, "replicas": [1, 2]}'
    plan = parse_plan(f'{{"partitions": [{entry}, {entry}]}}')
    with pytest.raises(CommandFailed, match="contains duplicate topic partitions: foo-0"):
        check_executable(plan)


def test_topics_of_a_file() -> None:
    assert parse_topics('{"topics": [{"topic": "foo"}, {"topic": "bar"}]}') == ["foo", "bar"]
    assert parse_topics("{}") == []
    with pytest.raises(CommandFailed, match=r"duplicate entries: \[foo\]"):
        parse_topics('{"topics": [{"topic": "foo"}, {"topic": "foo"}]}')


# --- throttles --------------------------------------------------------------------------------------------------------


def test_replicas_that_are_kept_are_sources_and_new_ones_destinations() -> None:
    moves = proposed_moves({}, {FOO_0: (2, 3)}, {FOO_0: (1, 2)})
    assert moves == {FOO_0: Move(frozenset({1, 2}), frozenset({3}))}


def test_replica_that_is_still_being_added_is_no_source() -> None:
    current = {FOO_0: Reassignment((1, 2, 3), adding_replicas=(3,), removing_replicas=(1,))}
    moves = proposed_moves(current, {FOO_0: (3, 4)}, {FOO_0: (1, 2, 3)})
    assert moves == {FOO_0: Move(frozenset({1, 2}), frozenset({3, 4}))}


def test_other_active_reassignments_stay_throttled() -> None:
    current = {BAR_0: Reassignment((1, 2), adding_replicas=(2,), removing_replicas=())}
    moves = proposed_moves(current, {FOO_0: (2,), FOO_10: (1,)}, {FOO_0: (1,), FOO_10: (1,)})
    assert topic_throttles(moves) == {
        "bar": {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2"},
        "foo": {LEADER_REPLICAS: "0:1,10:1", FOLLOWER_REPLICAS: "0:2"},
    }


# --- proposals --------------------------------------------------------------------------------------------------------


def _brokers(*racks: str | None) -> list[Broker]:
    return [Broker(BrokerId(number), rack) for number, rack in enumerate(racks, 1)]


def _nodes(*racks: str | None) -> list[ClusterNode]:
    return [ClusterNode(number, "host", 9092, rack, is_fenced=False) for number, rack in enumerate(racks, 1)]


def test_proposal_keeps_replication_factors_and_spreads_leaders() -> None:
    current = {TopicPartition("foo", number): (1, 2) for number in range(6)} | {BAR_0: (1,)}
    proposed = propose(current, _brokers("a", "b", "c"), random.Random(1))
    assert proposed.keys() == current.keys()
    assert {len(set(proposed[where])) for where in proposed if where.topic == "foo"} == {2}
    assert len(proposed[BAR_0]) == 1
    leaders = sorted(proposed[where][0] for where in proposed if where.topic == "foo")
    assert leaders == [1, 1, 2, 2, 3, 3]


def test_proposal_puts_replicas_into_different_racks() -> None:
    current = {TopicPartition("foo", number): (1, 2) for number in range(8)}
    proposed = propose(current, _brokers("a", "a", "b", "b"), random.Random(1))
    assert all(len({replica <= 2 for replica in replicas}) == 2 for replicas in proposed.values())


def test_too_few_brokers_for_the_replication_factor() -> None:
    sentence = "^The target replication factor of 3 cannot be reached because only 2 broker"
    with pytest.raises(CommandFailed, match=sentence):
        propose({FOO_0: (1, 2, 3)}, _brokers(None, None), random.Random(1))


def test_brokers_of_the_list_that_are_up_are_used() -> None:
    found = usable_brokers(_nodes("a", "b", "c"), [1, 3, 9], rack_aware=True)
    assert [(each.broker_id, each.rack) for each in found] == [(1, "a"), (3, "c")]
    found = usable_brokers(_nodes("a", None), [1, 2], rack_aware=False)
    assert [(each.broker_id, each.rack) for each in found] == [(1, None), (2, None)]
    with pytest.raises(CommandFailed, match=r"Not all brokers have rack information\. Add --disable-rack-aware"):
        usable_brokers(_nodes("a", None), [1, 2], rack_aware=True)


@pytest.mark.parametrize(
    ("text", "sentence"), [("1,x", '"x" in'), ("", '"" in'), ("1,2,1", r"duplicate entries: \[1\]")]
)
def test_wrong_broker_lists(text: str, sentence: str) -> None:
    with pytest.raises(CommandFailed, match=sentence):
        parse_broker_list(text)


# --- log directories --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (ReplicaLogDirs("/b"), "Reassignment of replica foo-0-1 completed successfully."),
        (ReplicaLogDirs("/a"), "Partition foo-0 on broker 1 is not being moved from log dir /a to /b."),
        (ReplicaLogDirs("/a", "/b"), "Reassignment of replica foo-0-1 is still in progress."),
        (ReplicaLogDirs("/a", "/c"), "Partition foo-0 on broker 1 is being moved to log dir /c instead of /b."),
        (
            ReplicaLogDirs(),
            "Partition foo-0 is not found in any live log dir on broker 1. There is likely an offline log directory on "
            "the broker.",
        ),
    ],
)
def test_what_became_of_a_move_between_directories(found: ReplicaLogDirs, sentence: str) -> None:
    assert describe_move(Replica(1, FOO_0), "/b", found) == sentence
