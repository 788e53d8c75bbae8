"""Assignments: the assignors of the clients under the classic protocol, those of the broker under the new one."""

from collections.abc import Sequence

import pytest

from tests.compat.clients.api import ClientKind, Feature
from tests.compat.clients.registry import CLIENTS, CONFLUENT
from tests.compat.clients.stage import Crew, Stage, for_every_client
from tests.compat.clients.words import healthy, partitions_of, wait_until_shared
from tests.compat.scenario import eventually
from tests.peers.brokers import Brokers

STICKY = ("sticky", "cooperative-sticky")
OF_THE_BROKER = ("uniform", "range")


def of_the_client(kind: ClientKind) -> Sequence[str]:
    return kind.assignors


def of_the_broker(kind: ClientKind) -> Sequence[str]:
    return OF_THE_BROKER


@for_every_client(variants=of_the_client)
def test_a_classic_assignor_divides_two_topics(stage: Stage, assignor: str) -> None:
    check_assignor(stage, assignor, protocol="classic")


@for_every_client(Feature.CONSUMER_PROTOCOL, variants=of_the_broker)
def test_an_assignor_of_the_broker_divides_two_topics(stage: Stage, assignor: str) -> None:
    check_assignor(stage, assignor, protocol="consumer")


def check_assignor(stage: Stage, assignor: str, *, protocol: str) -> None:
    topics = [stage.new_topic(partitions=3) for _ in range(2)]
    everything = partitions_of(topics[0], 3) | partitions_of(topics[1], 3)
    group = stage.new_name("group")
    options = {"protocol": protocol, "assignor": None if stage.kind.name == "kafkajs" else assignor}
    first = stage.consumer(group, *topics, **options)
    wait_until_shared([first], everything)
    second = stage.consumer(group, *topics, **options)
    wait_until_shared([first, second], everything)
    shares = [healthy(member).assignment for member in (first, second)]
    if assignor == "range":  # of each topic the first half, rounded up, and the rest; and the same to the same member
        numbers = sorted(sorted(number for _, number in share) for share in shares)
        assert numbers == [[0, 0, 1, 1], [2, 2]]
    else:
        assert sorted(map(len, shares)) == [3, 3]
    if assignor in STICKY:
        second.close()
        wait_until_shared([first], everything)
        assert shares[0] <= first.look().assignment
    described = stage.admin.describe_group(group)
    assert (described.state, described.assignor) == ("Stable", assignor)


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_different_clients_share_one_group(broker: Brokers, crew: Crew, assignor: str) -> None:
    """Each leads in turn, since the oldest member leads and is the first to leave."""
    kinds = [kind for kind in CLIENTS.values() if assignor in kind.assignors]
    with Stage(crew, CONFLUENT) as stage:
        topic = stage.new_topic(partitions=12)
        group = stage.new_name("group")
        members = []
        for kind in kinds:
            members.append(crew.client(kind).consumer(group, topic, assignor=assignor))
            stage.callback(members[-1].close)
        wait_until_shared(members, partitions_of(topic, 12))
        while len(members) > 1:
            members.pop(0).close()
            wait_until_shared(members, partitions_of(topic, 12))


@for_every_client(Feature.CONSUMER_PROTOCOL)
def test_members_of_both_protocols_are_in_one_group(stage: Stage) -> None:
    """The online migration: a classic member, a new one that joins, and the classic one that goes."""
    topic = stage.new_topic(partitions=4)
    group = stage.new_name("group")
    classic = stage.consumer(group, topic, assignor="range")
    wait_until_shared([classic], partitions_of(topic, 4))
    new = stage.consumer(group, topic, protocol="consumer", assignor="range")
    wait_until_shared([classic, new], partitions_of(topic, 4))
    classic.close()
    wait_until_shared([new], partitions_of(topic, 4))
    another = stage.consumer(group, topic, assignor="range")
    wait_until_shared([new, another], partitions_of(topic, 4))
    new.close()
    wait_until_shared([another], partitions_of(topic, 4))
    eventually(lambda: stage.admin.describe_group(group).state == "Stable", "the group is a classic one again")
