"""Members that come, go and die for minutes, in groups of one client and in a group of all."""

import random
import time
from collections.abc import Callable, Sequence

import pytest

from tests.compat.clients.api import Client, Consumer, Partition, Protocol
from tests.compat.clients.registry import CLIENTS, CONFLUENT
from tests.compat.clients.stage import Crew, Stage, for_every_client, protocols
from tests.compat.clients.words import partitions_of, wait_until_shared
from tests.compat.scenario import eventually
from tests.peers.brokers import Brokers

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PARTITIONS = 12
ROUNDS = 15
MOST_MEMBERS = 5

Join = Callable[[], tuple[Client, Consumer]]


@for_every_client(variants=protocols)
def test_a_group_settles_after_every_change(stage: Stage, protocol: Protocol) -> None:
    topic, group = stage.new_topic(partitions=PARTITIONS), stage.new_name("group")

    def join() -> tuple[Client, Consumer]:
        process = stage.spare()
        return process, process.consumer(group, topic, protocol=protocol, auto_commit=True)

    churn(stage, topic, group, [join], random.Random(f"{stage.kind.name} {protocol}"))


def test_a_group_of_all_clients_settles_after_every_change(broker: Brokers, crew: Crew) -> None:
    with Stage(crew, CONFLUENT) as stage:
        topic, group = stage.new_topic(partitions=PARTITIONS), stage.new_name("group")

        def joining(kind_name: str) -> Join:
            def join() -> tuple[Client, Consumer]:
                process = stage.spare(CLIENTS[kind_name])
                return process, process.consumer(group, topic, assignor="range", auto_commit=True)

            return join

        names = [kind.name for kind in CLIENTS.values() if "range" in kind.assignors]
        churn(stage, topic, group, [joining(name) for name in names], random.Random("all"))


def churn(stage: Stage, topic: str, group: str, joins: Sequence[Join], rng: random.Random) -> None:
    """After each change all partitions are shared, and at the end everything is consumed and committed."""
    members: list[tuple[Client, Consumer]] = [rng.choice(joins)()]
    ends: dict[Partition, int] = {}
    for _ in range(ROUNDS):
        partition = rng.randrange(PARTITIONS)
        stage.write(topic, *(f"{number}" for number in range(20)), partition=partition)
        ends[topic, partition] = ends.get((topic, partition), 0) + 20
        change = rng.choice(["join", "leave", "die"])
        if len(members) == 1 or (change == "join" and len(members) < MOST_MEMBERS):
            members.append(rng.choice(joins)())
        else:
            process, consumer = members.pop(rng.randrange(len(members)))
            if change != "die":
                consumer.close()
            process.kill()
        time.sleep(rng.uniform(0, 1))  # not waiting for anything: some changes meet a rebalance under way
        wait_until_shared([consumer for _, consumer in members], partitions_of(topic, PARTITIONS), seconds=60.0)

    def committed() -> dict[Partition, int]:
        return {(name, number): offset for name, number, offset, _ in stage.admin.group_offsets(group) if offset}

    eventually(lambda: committed() == ends, lambda: f"{ends}, but {committed()}", seconds=60.0)
