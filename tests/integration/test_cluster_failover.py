"""Coordinators and leaders that are killed in a cluster whose topics have three replicas: what was decided stays so."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.client.transactions import describe
from kaspar.coordination import partition_for
from kaspar.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kaspar.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.integration.cluster.up import needs_java
from tests.integration.placed_cluster import GROUPS, INTERNAL_PARTITIONS, NODES, TRANSACTIONS, PlacedCluster
from tests.integration.test_cluster_coordinators import FENCED, PATIENCE_S, Writer, committed, is_stable
from tests.peers.observed import wait_until
from tests.peers.raw_transactions import GROUP, TRANSACTION, find_coordinator, until_settled

REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "zookeeper.session.timeout.ms": "3000",  # each test kills a broker, and waits until the others know
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlacedCluster]:
    needs_java()
    with PlacedCluster(tmp_path_factory.mktemp("cluster"), REPLICATED) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _all_are_up(cluster: PlacedCluster) -> Iterator[None]:
    yield
    for node in NODES:
        if not cluster.is_running(node):
            cluster.start_broker(node)
    cluster.wait_for_brokers(len(NODES))
    wait_until(lambda: all(is_in_sync(cluster, topic) for topic in (GROUPS, TRANSACTIONS)), "all replicas are in sync")


def is_in_sync(cluster: PlacedCluster, topic: str) -> bool:
    with cluster.any() as client:
        (found,) = client.metadata(topic).topics
    return all(len(each.isr_nodes) == len(NODES) for each in found.partitions)


def create_topic(cluster: PlacedCluster, name: str, partitions: int = 3) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 3, config={"min.insync.replicas": "2"})])[name].result(PATIENCE_S)
    for kind in (GROUP, TRANSACTION):
        with cluster.any() as client:
            find_coordinator(client, name, kind)
    wait_until(lambda: is_in_sync(cluster, name), "all replicas are in sync")


def coordinator_of(cluster: PlacedCluster, internal_topic: str, key: str) -> int:
    return cluster.leaders(internal_topic)[partition_for(key, INTERNAL_PARTITIONS)]


def kill(cluster: PlacedCluster, node: int) -> None:
    cluster.kill(node)
    cluster.wait_for_brokers(len(NODES) - 1)


def test_internal_topics_wait_for_enough_brokers(tmp_path: Path) -> None:
    needs_java()
    with PlacedCluster(tmp_path, REPLICATED) as started:
        started.stop_broker(3)
        started.wait_for_brokers(2)
        with started.any() as client:
            request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=("g",))
            (found,) = client.call(request, FindCoordinatorResponse).coordinators
            assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert GROUPS not in client.topics()
        started.start_broker(3)
        started.wait_for_brokers(3)
        with started.any() as client:
            find_coordinator(client, "g", GROUP)
            (topic,) = client.metadata(GROUPS).topics
        assert {len(each.replica_nodes) for each in topic.partitions} == {3}


def test_a_transaction_goes_on_at_its_next_coordinator(cluster: PlacedCluster) -> None:
    topic = "goes-on"
    create_topic(cluster, topic)
    with cluster.client() as client:
        writer = Writer(client, topic)
        for index in range(3):
            writer.write(TopicPartition(topic, index), b"%d" % index)
    kill(cluster, coordinator_of(cluster, TRANSACTIONS, topic))
    with cluster.client() as client:
        writer.client = client
        writer.write(TopicPartition(topic, 0), b"3")
        writer.end(commit=True)
        wait_until(lambda: is_stable(cluster, topic), "every partition has its marker")
        following = Writer(client, topic, ProducerIdAndEpoch(writer.pair.producer_id, writer.pair.producer_epoch + 1))
        following.write(TopicPartition(topic, 1), b"4")
        following.end(commit=True)
    assert committed(cluster, topic, 5) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("victim", ["coordinator", "leader"])
@pytest.mark.parametrize("commit", [True, False])
def test_a_prepared_transaction_outlives_any_broker_and_takes_no_more_records(
    cluster: PlacedCluster, victim: str, commit: bool
) -> None:
    topic = f"prepared-{victim}-{commit}"
    create_topic(cluster, topic)
    with cluster.client() as client:
        writer = Writer(client, topic)
        for index in range(3):
            writer.write(TopicPartition(topic, index), b"%d" % index)
        pair = writer.prepare()
    if victim == "coordinator":
        kill(cluster, coordinator_of(cluster, TRANSACTIONS, topic))
    else:
        kill(cluster, cluster.leaders(topic)[0])
    with cluster.client() as client:
        writer.client = client
        for index in range(3):
            partition = TopicPartition(topic, index)
            assert until_settled(lambda: writer.send(partition, b"of a zombie")).error_code in FENCED  # noqa: B023
        assert describe(client, [topic])[topic].state == "Ongoing"
        assert writer.prepare() == pair, "repeated, at another coordinator"
        writer.end(commit=commit, pair=pair)
        wait_until(lambda: is_stable(cluster, topic), "every partition has its marker")
    expected = [b"0", b"1", b"2"] if commit else []
    assert committed(cluster, topic, len(expected)) == expected


@pytest.mark.parametrize("commit", [True, False])
def test_what_was_decided_is_carried_out_whoever_dies(cluster: PlacedCluster, commit: bool) -> None:
    """The coordinator is killed right after it has responded: its markers may or may not have been written."""
    topic = f"decided-{commit}"
    create_topic(cluster, topic)
    with cluster.client() as client:
        writer = Writer(client, topic)
        for index in range(3):
            writer.write(TopicPartition(topic, index), b"%d" % index)
        coordinator = coordinator_of(cluster, TRANSACTIONS, topic)
        writer.end(commit=commit)
        kill(cluster, coordinator)
    wait_until(lambda: is_stable(cluster, topic), "every partition has its marker")
    expected = [b"0", b"1", b"2"] if commit else []
    assert committed(cluster, topic, len(expected)) == expected
    with cluster.client() as client:
        state = "CompleteCommit" if commit else "CompleteAbort"
        wait_until(lambda: describe(client, [topic])[topic].state == state, "it is complete")


def described(cluster: PlacedCluster, group: str) -> DescribedGroup:
    with cluster.raw(coordinator_of(cluster, GROUPS, group)) as client:
        (found,) = client.call(DescribeGroupsRequest(groups=(group,)), DescribeGroupsResponse).groups
    return found


def test_the_members_of_a_group_stay_members_at_its_next_coordinator(cluster: PlacedCluster) -> None:
    topic = "members"
    create_topic(cluster, topic)
    sender = Producer({"bootstrap.servers": cluster.bootstrap})
    for index in range(3):
        sender.produce(topic, b"%d" % index, partition=index)
    assert sender.flush(PATIENCE_S) == 0
    revoked: list[object] = []
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 30_000,
            "heartbeat.interval.ms": 300,
        }
    )
    try:
        consumer.subscribe([topic], on_revoke=lambda consumer, partitions: revoked.append(partitions))
        seen: set[bytes | None] = set()
        deadline = time.monotonic() + PATIENCE_S
        while len(seen) < 3:
            assert time.monotonic() < deadline
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                seen.add(message.value())
        consumer.commit(offsets=[Partition(topic, index, 1) for index in range(3)], asynchronous=False)
        (member,) = described(cluster, topic).members
        kill(cluster, coordinator_of(cluster, GROUPS, topic))
        wait_until(lambda: described(cluster, topic).error_code == ErrorCode.NONE, "another broker coordinates it")
        after = described(cluster, topic)
        assert [each.member_id for each in after.members] == [member.member_id]
        assert after.group_state == "Stable"
        found = consumer.committed([Partition(topic, index) for index in range(3)], timeout=PATIENCE_S)
        assert [each.offset for each in found] == [1, 1, 1]
        until = time.monotonic() + 1.5
        while time.monotonic() < until:  # heartbeats reach the next coordinator, which knows the member
            consumer.poll(0.1)
        assert not revoked
        consumer.commit(offsets=[Partition(topic, 0, 2)], asynchronous=False)
    finally:
        consumer.close()
