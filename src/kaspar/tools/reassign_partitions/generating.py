"""--generate: proposes an assignment of the partitions of some topics to a list of brokers."""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.client.admin.cluster import ClusterNode, describe_cluster
from kaspar.client.admin.session import Admin
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.java_numbers import parse_int
from kaspar.tools.reassign_partitions.plan import duplicates, format_assignment, parse_topics
from kaspar.tools.reassign_partitions.topics import log_dirs_of, replicas_of_topics


class Broker(NamedTuple):
    broker_id: BrokerId
    rack: str | None


def generate(admin: Admin, text: str, broker_list: str, *, rack_aware: bool) -> None:
    broker_ids = parse_broker_list(broker_list)
    topics = parse_topics(text)
    current = replicas_of_topics(admin, topics)
    log_dirs = log_dirs_of(admin, current)
    brokers = usable_brokers(describe_cluster(admin).nodes, broker_ids, rack_aware=rack_aware)
    proposed = propose(current, brokers, random.Random())
    print(f"Current partition replica assignment\n{format_assignment(current, log_dirs)}\n")
    print(f"Proposed partition reassignment configuration\n{format_assignment(proposed, {})}")


def parse_broker_list(text: str) -> list[int]:
    broker_ids = []
    for word in text.split(","):
        try:
            broker_ids.append(parse_int(word))
        except ValueError:
            raise CommandFailed(f'"{word}" in --broker-list is not a broker id') from None
    if twice := duplicates(broker_ids):
        raise CommandFailed(f"Broker list contains duplicate entries: [{', '.join(map(str, twice))}]")
    return broker_ids


def usable_brokers(nodes: Sequence[ClusterNode], broker_ids: Sequence[int], *, rack_aware: bool) -> list[Broker]:
    """The brokers of the list that are up. Their racks are removed unless the placement is to be rack-aware."""
    listed = [Broker(BrokerId(each.node_id), each.rack) for each in nodes if each.node_id in broker_ids]
    if not rack_aware:
        return [each._replace(rack=None) for each in listed]
    if len({each.rack is None for each in listed}) > 1:
        raise CommandFailed(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    return listed


def propose(
    current: Mapping[TopicPartition, Sequence[int]], brokers: Sequence[Broker], rng: random.Random
) -> dict[TopicPartition, tuple[int, ...]]:
    """Place replicas as if the topics were created now, with the same number of partitions and replication factor."""
    # The placement of Kaspar's controller; imported here because no other action needs it.
    from kaspar.controller.placement import place

    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in sorted({where.topic for where in current}):
        partitions = sorted(where for where in current if where.topic == topic)
        replication_factor = len(current[partitions[0]])
        try:
            placed = place(brokers, len(partitions), replication_factor, rng)
        except Refused as refused:
            raise CommandFailed(refused.message.split(" time(s): ")[-1]) from None
        proposed.update(zip(partitions, placed, strict=True))
    return proposed
