"""Coordinators that are stopped and killed under stock clients: transactions go on, and static members stay members."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.client import Client
from kaspar.client.coordinators import CoordinatorKind, find_coordinators
from kaspar.testing import Cluster
from tests.peers.observed import wait_until

SECONDS = 60.0
PARTITIONS = 4
A_FEW_HEARTBEATS_S = 2.0

TakeDown = Callable[[Cluster, int], None]
WAYS = [
    pytest.param(Cluster.kill, id="kill -9"),
    pytest.param(Cluster.stop_broker, id="clean stop", marks=pytest.mark.long),
]


def create_topic(cluster: Cluster, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(name, PARTITIONS, 3)])[name].result(SECONDS)


def coordinator_of(cluster: Cluster, kind: CoordinatorKind, key: str) -> int:
    """A broker's id."""
    with Client(cluster.bootstrap_servers) as client:
        (address,) = client.run(find_coordinators(client.core, kind, [key])).values()
    return next(broker for broker in cluster.broker_ids if cluster.port(broker) == address[1])


# -- transactions ------------------------------------------------------------------------------------------------------


def committed_values(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"reader-of-{topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    values: list[bytes] = []
    try:
        until = time.monotonic() + SECONDS
        while len(values) < count and time.monotonic() < until:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                values.append(message.value() or b"")
        after = consumer.poll(0.5)
        assert after is None or after.error() is not None, "more than was committed"
    finally:
        consumer.close()
    return sorted(values)


@pytest.mark.parametrize("take_down", WAYS)
def test_a_transaction_of_a_stock_producer_outlives_its_coordinator(cluster: Cluster, take_down: TakeDown) -> None:
    name = f"transfers-{take_down.__name__}"
    create_topic(cluster, name)
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name, "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions(SECONDS)
    expected = []
    for number, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        values = [b"%d-%d" % (number, each) for each in range(2 * PARTITIONS)]
        for each, value in enumerate(values):
            if each == PARTITIONS:  # half of them are written
                assert producer.flush(SECONDS) == 0
                coordinator = coordinator_of(cluster, CoordinatorKind.TRANSACTION, name)
                take_down(cluster, coordinator)
            producer.produce(name, value, partition=each % PARTITIONS)
        if commit:
            producer.commit_transaction(SECONDS)
            expected += values
        else:
            producer.abort_transaction(SECONDS)
        assert coordinator_of(cluster, CoordinatorKind.TRANSACTION, name) != coordinator
        cluster.start_broker(coordinator)
    assert committed_values(cluster, name, len(expected)) == sorted(expected)


# -- static members ----------------------------------------------------------------------------------------------------


class StaticMember:
    """Notes what it is given and what is taken from it."""

    def __init__(self, cluster: Cluster, group: str, protocol: str, instance_id: str) -> None:
        self.assigned: set[int] = set()
        self.rebalances = 0
        classic = {"session.timeout.ms": 30_000, "heartbeat.interval.ms": 500} if protocol == "classic" else {}
        self.consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": group,
                "group.protocol": protocol,
                "group.instance.id": instance_id,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **classic,
            }
        )
        self.consumer.subscribe([group], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._revoke)

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned |= {each.partition for each in partitions}
        self.rebalances += 1

    def _revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned -= {each.partition for each in partitions}
        self.rebalances += 1


def is_assigned(*members: StaticMember) -> bool:
    """Every member has its share, and every partition its member."""
    for member in members:
        member.consumer.poll(0.05)
    shares = [member.assigned for member in members]
    return all(shares) and sorted(number for share in shares for number in share) == list(range(PARTITIONS))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("take_down", WAYS)
def test_static_members_keep_their_partitions_over_a_change_of_the_coordinator(
    cluster: Cluster, protocol: str, take_down: TakeDown
) -> None:
    group = f"static-{protocol}-{take_down.__name__}"
    create_topic(cluster, group)
    one, other = members = [StaticMember(cluster, group, protocol, name) for name in ("one", "other")]
    try:
        wait_until(lambda: is_assigned(*members), "both have their partitions", seconds=SECONDS)
        before = [set(member.assigned) for member in members]
        for member in members:
            offsets = [TopicPartition(group, number, 7) for number in member.assigned]
            wait_until(lambda member=member, offsets=offsets: commits(member, offsets), "they commit", seconds=SECONDS)  # type: ignore[misc]
        quiet = [member.rebalances for member in members]

        coordinator = coordinator_of(cluster, CoordinatorKind.GROUP, group)
        take_down(cluster, coordinator)
        until = time.monotonic() + A_FEW_HEARTBEATS_S
        while time.monotonic() < until:
            is_assigned(*members)
        assert coordinator_of(cluster, CoordinatorKind.GROUP, group) != coordinator

        # One is restarted, and comes back as the same member: the new coordinator knows both of them.
        one.consumer.close()
        members[0] = one = StaticMember(cluster, group, protocol, "one")
        wait_until(lambda: is_assigned(*members), "both have their partitions", seconds=SECONDS)
        assert [member.assigned for member in members] == before
        assert other.rebalances == quiet[1], "the other one noticed nothing"
        found = one.consumer.committed([TopicPartition(group, number) for number in before[0]], timeout=SECONDS)
        assert {each.offset for each in found} == {7}
    finally:
        for member in members:
            member.consumer.close()


def commits(member: StaticMember, offsets: list[TopicPartition]) -> bool:
    """Whether the commit is acknowledged; a member that has just joined may be asked to try again."""
    member.consumer.poll(0.05)
    try:
        member.consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException:
        return False
    return True
