"""Members of a consumer group share its partitions, and take over those of a member that leaves."""

from collections.abc import Iterator

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import Admin
from kaspar.client.group_member import GroupMember
from kaspar.testing import Broker
from tests.peers.observed import wait_until

TOPIC = "orders"
EVERYTHING = {TopicPartition(TOPIC, number) for number in range(4)}
SETTINGS = {"group.consumer.heartbeat.interval.ms": "100", "group.consumer.min.heartbeat.interval.ms": "100"}


@pytest.fixture
def client() -> Iterator[Client]:
    with Broker(overrides=SETTINGS) as broker, Client(broker.bootstrap_servers) as client:
        with Admin(broker.bootstrap_servers) as admin:
            create_topics(admin, [NewTopic(TOPIC, len(EVERYTHING), 1)])
        yield client


def test_partitions_are_shared_and_taken_over(client: Client) -> None:
    first, second = GroupMember(client, "g", [TOPIC]), GroupMember(client, "g", [TOPIC])
    wait_until(lambda: first.maybe_heartbeat() and first.partitions == EVERYTHING, "the first has all partitions")

    def are_shared() -> bool:
        first.maybe_heartbeat()
        second.maybe_heartbeat()
        return len(first.partitions) == len(second.partitions) == 2

    wait_until(are_shared, "each has two partitions")
    assert first.partitions | second.partitions == EVERYTHING
    first.leave()

    def are_taken_over() -> bool:
        second.maybe_heartbeat()
        return second.partitions == EVERYTHING

    wait_until(are_taken_over, "the second has all partitions")
    second.leave()


def test_fenced_member_begins_again(client: Client) -> None:
    member = GroupMember(client, "g", [TOPIC])
    wait_until(lambda: member.maybe_heartbeat() and member.partitions == EVERYTHING, "it has all partitions")
    impostor = GroupMember(client, "g", [TOPIC])
    impostor.member_id = member.member_id
    impostor.maybe_heartbeat()
    impostor.leave()
    wait_until(lambda: member.maybe_heartbeat() and not member.partitions, "it learns that it has no partitions")
    wait_until(lambda: member.maybe_heartbeat() and member.partitions == EVERYTHING, "it has them again")
