"""Reassignments that fix findings, in the format of kafka-reassign-partitions. Pure.

A plan moves as little as possible: existing replicas stay where they are unless their broker has too many.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.monitor.doctor.observation import Observation

WANTED_REPLICAS: Final = 3

Replicas = Mapping[TopicPartition, tuple[int, ...]]


def add_replicas(observation: Observation) -> Replicas:
    """Add replicas to partitions with a single one: up to three, or the number of brokers. New replicas go to the
    brokers with the fewest."""
    brokers = sorted(observation.live_brokers)
    wanted = min(WANTED_REPLICAS, len(brokers))
    counts = Counter(broker_id for _, each in observation.partitions() for broker_id in each.replicas)
    plan = {}
    for where, each in sorted(observation.partitions()):
        replicas = list(each.replicas)
        if len(replicas) != 1:
            continue
        while len(replicas) < wanted:
            broker_id = min((each for each in brokers if each not in replicas), key=lambda each: (counts[each], each))
            replicas.append(broker_id)
            counts[broker_id] += 1
        if len(replicas) > 1:
            plan[where] = tuple(replicas)
    return plan


def spread(observation: Observation) -> Replicas:
    """Move replicas from brokers with more than their share to those with fewer, then move preferred leaders to the
    brokers with the fewest."""
    brokers = sorted(observation.live_brokers)
    current = {
        where: each.replicas for where, each in sorted(observation.partitions()) if set(each.replicas) <= set(brokers)
    }
    moved = _spread_replicas(current, brokers)
    placed = _spread_leaders(moved, brokers)
    return {where: replicas for where, replicas in placed.items() if replicas != current[where]}


def _spread_replicas(current: Replicas, brokers: Sequence[int]) -> dict[TopicPartition, tuple[int, ...]]:
    counts = Counter(dict.fromkeys(brokers, 0))
    counts.update(broker_id for replicas in current.values() for broker_id in replicas)
    most = -(-sum(counts.values()) // len(brokers)) if brokers else 0
    placed = dict(current)
    for where, replicas in current.items():
        for broker_id in replicas:
            targets = [each for each in brokers if each not in placed[where] and counts[each] < counts[broker_id] - 1]
            if counts[broker_id] > most and targets:
                target = min(targets, key=lambda each: (counts[each], each))
                placed[where] = tuple(target if each == broker_id else each for each in placed[where])
                counts[broker_id] -= 1
                counts[target] += 1
    return placed


def _spread_leaders(current: Replicas, brokers: Sequence[int]) -> dict[TopicPartition, tuple[int, ...]]:
    """Reorders replicas, because the first replica is the preferred leader."""
    leads = Counter(dict.fromkeys(brokers, 0))
    leads.update(replicas[0] for replicas in current.values())
    placed = dict(current)
    for where, replicas in current.items():
        leader = min(replicas, key=lambda each: (leads[each], each != replicas[0]))
        if leads[leader] < leads[replicas[0]] - 1:
            leads[replicas[0]] -= 1
            leads[leader] += 1
            placed[where] = (leader, *(each for each in replicas if each != leader))
    return placed


PLANS: Final[Mapping[str, Callable[[Observation], Replicas]]] = {"replication": add_replicas, "spread": spread}


def reassignment_json(plan: Replicas) -> str:
    partitions = [
        {"topic": where.topic, "partition": where.partition, "replicas": list(replicas)}
        for where, replicas in sorted(plan.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions})
