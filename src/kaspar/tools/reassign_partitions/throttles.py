"""The throttles of a reassignment: the rates at which replicas are copied between brokers, and between log directories.

A throttle consists of a rate on each participating broker, and of a list of throttled replicas on each topic: those
that are read (leaders) and those that are written (followers). As a result, Kafka and Kaspar throttle only the replicas
that move. See KIP-73.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.cluster import describe_cluster
from kaspar.client.admin.configs import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
    incremental_alter_configs,
)
from kaspar.client.admin.reassignments import Reassignment
from kaspar.client.admin.session import Admin, raise_first
from kaspar.tools.reassign_partitions.plan import Assignment, Plan, plural

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIR_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"


class Move(NamedTuple):
    """The replicas of a partition that have its records, and those that will get them."""

    sources: frozenset[int]
    destinations: frozenset[int]


Moves = Mapping[TopicPartition, Move]


def proposed_moves(current: Mapping[TopicPartition, Reassignment], proposed: Assignment, replicas: Assignment) -> Moves:
    """All moves once the proposed ones have started. `replicas` are the current replicas of the partitions. In a
    partition that is being reassigned, replicas that are still being added are not a source."""
    moves = {
        where: Move(frozenset(each.replicas) - frozenset(each.adding_replicas), frozenset(each.adding_replicas))
        for where, each in current.items()
    }
    for where, targets in proposed.items():
        sources = moves[where].sources if where in moves else frozenset(replicas[where])
        moves[where] = Move(sources, frozenset(targets) - sources)
    return moves


def topic_throttles(moves: Moves) -> dict[str, dict[str, str]]:
    """The throttle settings of each topic."""
    leaders: dict[str, set[str]] = {where.topic: set() for where in moves}
    followers: dict[str, set[str]] = {where.topic: set() for where in moves}
    for where, move in moves.items():
        leaders[where.topic] |= {f"{where.partition}:{broker_id}" for broker_id in move.sources}
        followers[where.topic] |= {f"{where.partition}:{broker_id}" for broker_id in move.destinations}
    return {
        topic: {
            LEADER_REPLICAS: ",".join(sorted(leaders[topic])),
            FOLLOWER_REPLICAS: ",".join(sorted(followers[topic])),
        }
        for topic in leaders
    }


def throttle_replication(admin: Admin, moves: Moves, bytes_per_second: int) -> None:
    _set(admin, {ConfigResource(ResourceType.TOPIC, name): each for name, each in topic_throttles(moves).items()})
    rate = str(bytes_per_second)
    brokers = {broker_id for move in moves.values() for broker_id in move.sources | move.destinations}
    _set(admin, {_broker(broker_id): {LEADER_RATE: rate, FOLLOWER_RATE: rate} for broker_id in sorted(brokers)})
    print(f"The inter-broker throttle limit was set to {rate} B/s")


def throttle_log_dirs(admin: Admin, brokers: Collection[int], bytes_per_second: int) -> None:
    _set(admin, {_broker(broker_id): {LOG_DIR_RATE: str(bytes_per_second)} for broker_id in sorted(brokers)})
    print(f"The replica-alter-dir throttle limit was set to {bytes_per_second} B/s")


def clear_throttles(admin: Admin, plan: Plan) -> None:
    """Remove the throttles of the plan's topics and of all brokers, because it is unknown which brokers were
    sources.
    """
    brokers = sorted(plan.broker_ids | {each.node_id for each in describe_cluster(admin).nodes})
    print(f"Clearing broker-level throttles on broker{plural(len(brokers))} {','.join(map(str, brokers))}")
    _delete(admin, map(_broker, brokers), (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE))
    print(f"Clearing topic-level throttles on topic{plural(len(plan.topics))} {','.join(plan.topics)}")
    topics = (ConfigResource(ResourceType.TOPIC, topic) for topic in plan.topics)
    _delete(admin, topics, (LEADER_REPLICAS, FOLLOWER_REPLICAS))


def _broker(broker_id: int) -> ConfigResource:
    return ConfigResource(ResourceType.BROKER, str(broker_id))


def _set(admin: Admin, settings: Mapping[ConfigResource, Mapping[str, str]]) -> None:
    changes = {
        resource: [ConfigChange(name, ConfigOperation.SET, value) for name, value in values.items()]
        for resource, values in settings.items()
    }
    raise_first(incremental_alter_configs(admin, changes).values())


def _delete(admin: Admin, resources: Iterable[ConfigResource], settings: Iterable[str]) -> None:
    deletions = [ConfigChange(name, ConfigOperation.DELETE) for name in settings]
    raise_first(incremental_alter_configs(admin, dict.fromkeys(resources, deletions)).values())
