"""Replicas are even, on distinct brokers, and on distinct racks while there are some."""

import random
from collections import Counter

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.controller.placement import place
from tests.unit.controller.clusters import broker


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (3, 1), (3, 3), (5, 3), (7, 2)])
def test_leaders_and_replicas_are_even_without_racks(brokers: int, factor: int, seed: int) -> None:
    placed = place([broker(number) for number in range(brokers)], brokers * 6, factor, random.Random(seed))
    assert all(len(set(replicas)) == factor for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert set(leaders.values()) == {6}
    per_broker = Counter(replica for replicas in placed for replica in replicas)
    assert set(per_broker.values()) == {6 * factor}


@pytest.mark.parametrize("seed", range(5))
def test_racks_are_distinct_and_even(seed: int) -> None:
    racks = {BrokerId(number): "abc"[number % 3] for number in range(9)}
    brokers = [broker(number, rack=racks[BrokerId(number)]) for number in range(9)]
    placed = place(brokers, 90, 3, random.Random(seed))
    for replicas in placed:
        assert {racks[replica] for replica in replicas} == {"a", "b", "c"}
    assert set(Counter(replicas[0] for replicas in placed).values()) == {10}
    per_broker = Counter(replica for replicas in placed for replica in replicas)
    assert set(per_broker.values()) == {30}


def test_more_replicas_than_racks_still_take_distinct_brokers() -> None:
    brokers = [broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="a"), broker(4, rack="b")]
    for replicas in place(brokers, 20, 4, random.Random(0)):
        assert sorted(replicas) == [1, 2, 3, 4]


def test_a_leaders_followers_vary() -> None:
    placed = place([broker(number) for number in range(6)], 60, 3, random.Random(1))
    followers = {frozenset(replicas[1:]) for replicas in placed if replicas[0] == 0}
    assert len(followers) > 1


def test_added_partitions_go_on_where_the_topic_stopped() -> None:
    brokers = [broker(number) for number in range(4)]
    first = place(brokers, 3, 1, random.Random(3))
    added = place(brokers, 1, 1, random.Random(99), first)
    assert sorted(replicas[0] for replicas in first + added) == [0, 1, 2, 3]


def test_small_topics_do_not_all_start_on_one_broker() -> None:
    brokers = [broker(number) for number in range(4)]
    rng = random.Random(0)
    starts = {place(brokers, 1, 1, rng)[0][0] for _ in range(50)}
    assert starts == {0, 1, 2, 3}


def test_existing_replicas_on_brokers_that_are_gone_do_not_matter() -> None:
    (replicas,) = place([broker(1), broker(2)], 1, 2, random.Random(0), [(BrokerId(8), BrokerId(9))])
    assert sorted(replicas) == [1, 2]


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (0, "Unable to replicate the partition 2 time(s): All brokers are currently fenced."),
        (1, "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached"),
    ],
)
def test_too_few_brokers_are_refused(count: int, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        place([broker(number) for number in range(count)], 1, 2, random.Random(0))
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert refused.value.message.startswith(sentence)


def test_brokers_that_are_down_get_replicas_only_where_those_that_are_up_are_too_few() -> None:
    down = [BrokerId(8), BrokerId(9)]
    brokers = [broker(1), broker(2), broker(3)]
    for replicas in place(brokers, 12, 3, random.Random(0), down=down):
        assert set(replicas) == {1, 2, 3}
    placed = place(brokers, 12, 4, random.Random(0), down=down)
    assert all(set(replicas[:3]) == {1, 2, 3} for replicas in placed)
    assert Counter(replicas[3] for replicas in placed) == {8: 6, 9: 6}
    assert all(len(set(replicas)) == 5 for replicas in place(brokers, 12, 5, random.Random(0), down=down))
    with pytest.raises(Refused, match="only 5 broker"):
        place(brokers, 1, 6, random.Random(0), down=down)
    with pytest.raises(Refused, match="All brokers are currently fenced"):
        place([], 1, 1, random.Random(0), down=down)


@pytest.mark.parametrize("seed", range(5))
def test_racks_of_different_sizes_each_get_a_replica(seed: int) -> None:
    brokers = [broker(number, rack="a" if number < 5 else "b" if number < 7 else "c") for number in range(8)]
    for replicas in place(brokers, 40, 3, random.Random(seed)):
        assert {brokers[replica].rack for replica in replicas} == {"a", "b", "c"}
