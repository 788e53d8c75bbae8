"""Reassignments: more replicas, and replicas spread evenly, with few moves."""

import json
from collections import Counter

from kaspar.base.ids import TopicPartition
from kaspar.monitor.doctor.checks import balance, durability
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import Observation
from kaspar.monitor.doctor.plans import Replicas, add_replicas, reassignment_json, spread
from tests.unit.monitor.doctor.observations import look, partition, topic, with_topic


def applied(seen: Observation, plan: Replicas) -> Observation:
    """The cluster after the plan was executed."""
    for topic_seen in list(seen.topics.values()):
        changed = tuple(
            partition(each.partition, plan.get(TopicPartition(topic_seen.name, each.partition), each.replicas))
            for each in topic_seen.partitions
        )
        seen = with_topic(seen, topic(topic_seen.name, *changed))
    return seen


def lone(*brokers: int) -> Observation:
    return with_topic(look(), topic("lone", *(partition(number, (each,)) for number, each in enumerate(brokers))))


def test_partitions_with_one_replica_get_three_and_keep_their_leader() -> None:
    seen = lone(2, 2, 3)
    plan = add_replicas(seen)
    assert {where: replicas[0] for where, replicas in plan.items()} == {
        TopicPartition("lone", 0): 2,
        TopicPartition("lone", 1): 2,
        TopicPartition("lone", 2): 3,
    }
    assert all(sorted(replicas) == [1, 2, 3] for replicas in plan.values())
    after = Looks((applied(seen, plan),))
    assert list(durability.one_replica.findings(after)) == []


def test_a_single_broker_has_nothing_to_add_replicas_on() -> None:
    seen = look()
    alone = with_topic(Observation(0, brokers={1: seen.brokers[1]}), topic("lone", partition(0, (1,))))
    assert add_replicas(alone) == {}
    assert spread(alone) == {}


def test_what_is_even_already_is_left_alone() -> None:
    assert spread(look()) == {}
    assert add_replicas(look()) == {}


def test_spreading_ends_the_findings_it_is_for_and_moves_no_more_than_needed() -> None:
    seen = lone(*[3] * 60)
    before = Looks((seen,))
    assert list(balance.skewed_replicas.findings(before))
    assert list(balance.skewed_leaders.findings(before))
    plan = spread(seen)
    after = applied(seen, plan)
    assert list(balance.skewed_replicas.findings(Looks((after,)))) == []
    assert list(balance.skewed_leaders.findings(Looks((after,)))) == []
    counts = Counter(broker for _, each in after.partitions() for broker in each.replicas)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len(plan) <= 41  # two thirds of the sixty, and a leader


def test_leaders_are_spread_without_moving_a_replica() -> None:
    seen = with_topic(look(), topic("many", *(partition(number, (3, 1, 2)) for number in range(30))))
    plan = spread(seen)
    assert all(sorted(replicas) == [1, 2, 3] for replicas in plan.values())
    assert list(balance.skewed_leaders.findings(Looks((applied(seen, plan),)))) == []


def test_a_partition_with_a_replica_on_a_broker_that_is_gone_is_not_touched() -> None:
    seen = with_topic(look(), topic("lost", *(partition(number, (9, 3)) for number in range(60))))
    assert not [where for where in spread(seen) if where.topic == "lost"]


def test_the_plan_is_what_kafka_reassign_partitions_reads() -> None:
    text = reassignment_json({TopicPartition("lone", 0): (2, 1)})
    assert json.loads(text) == {
        "version": 1,
        "partitions": [{"topic": "lone", "partition": 0, "replicas": [2, 1]}],
    }
