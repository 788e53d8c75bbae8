"""Transactions and groups in a cluster: their coordinators, and the partitions they are about, on different brokers."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Partition

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.client import Client
from kaspar.client.transactions import Ending, describe, end, init_producer_id, list_transactions
from kaspar.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kaspar.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kaspar.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kaspar.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kaspar.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kaspar.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kaspar.records import Record, build_batch
from tests.integration.cluster.up import needs_java
from tests.integration.placed_cluster import NODES, PlacedCluster
from tests.peers.observed import wait_until
from tests.peers.raw_transactions import GROUP, MAY_PASS, TRANSACTION, until_settled

PATIENCE_S = 30.0
LATEST = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlacedCluster]:
    needs_java()
    with PlacedCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
        assert not cluster.unexpected_errors()


class Writer:
    """A transactional producer of transactions v2, in single steps: each partition's leader is asked, once."""

    def __init__(self, client: Client, transactional_id: str, producer: ProducerIdAndEpoch | None = None) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.pair = producer or init_producer_id(client, transactional_id).producer
        self._sequences: dict[TopicPartition, int] = {}

    def send(self, partition: TopicPartition, value: bytes) -> PartitionProduceResponse:
        sequence = self._sequences.get(partition, 0)
        batch = build_batch(
            [Record(time.time_ns() // 1_000_000, None, value)],
            producer_id=self.pair.producer_id,
            producer_epoch=self.pair.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = PartitionProduceData(index=partition.partition, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=(TopicProduceData(name=partition.topic, partition_data=(data,)),),
        )
        answer = self.client.request_broker(self.client.leader_of(partition), request, ProduceResponse, 12)
        result = answer.responses[0].partition_responses[0]
        if result.error_code == ErrorCode.NONE:
            self._sequences[partition] = sequence + 1
        return result

    def write(self, partition: TopicPartition, value: bytes) -> None:
        assert until_settled(lambda: self.send(partition, value)).error_code == ErrorCode.NONE

    def prepare(self) -> ProducerIdAndEpoch:
        kept = init_producer_id(
            self.client, self.transactional_id, enable_2pc=True, keep_prepared=True, producer=self.pair
        )
        assert kept.ongoing == self.pair
        return kept.producer

    def end(self, *, commit: bool, pair: ProducerIdAndEpoch | None = None) -> None:
        end(self.client, Ending(self.transactional_id, pair or self.pair, commit), version=2)


def committed(cluster: PlacedCluster, topic: str, count: int, **settings: str | int | bool) -> list[bytes]:
    """What a read_committed consumer of all partitions reads, until it has so many."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"reader-of-{topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            **settings,
        }
    )
    values: list[bytes] = []
    try:
        consumer.assign([Partition(topic, index, 0) for index in cluster.leaders(topic)])
        deadline = time.monotonic() + PATIENCE_S
        while len(values) < count and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                value = message.value()
                assert value is not None
                values.append(value)
        message = consumer.poll(0.5)
        assert message is None or message.error() is not None, "more than was committed"
        return sorted(values)
    finally:
        consumer.close()


def end_offset(client: Client, partition: TopicPartition, isolation_level: int) -> int | None:
    """None while a leader that was elected just now does not know it yet (KIP-207), or has lost its place again."""
    asked = ListOffsetsPartition(partition_index=partition.partition, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=(ListOffsetsTopic(name=partition.topic, partitions=(asked,)),),
    )
    answer = client.request_broker(client.leader_of(partition), request, ListOffsetsResponse)
    (found,) = answer.topics[0].partitions
    if found.error_code in (ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        return None
    assert found.error_code == ErrorCode.NONE
    return found.offset


def is_stable(cluster: PlacedCluster, topic: str) -> bool:
    """Whether no transaction is open on any partition."""
    with cluster.client() as client:
        partitions = [TopicPartition(topic, index) for index in cluster.leaders(topic)]
        stable = [end_offset(client, each, READ_COMMITTED) for each in partitions]
        return None not in stable and stable == [end_offset(client, each, READ_UNCOMMITTED) for each in partitions]


@contextmanager
def producer(cluster: PlacedCluster, transactional_id: str) -> Iterator[Producer]:
    """librdkafka's: it adds partitions itself (transactions v1), and leaders verify that."""
    made = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 60_000,
            "linger.ms": 0,
        }
    )
    made.init_transactions(PATIENCE_S)
    yield made


# -- transactions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("coordinator", NODES)
def test_a_stock_producer_whose_coordinator_is_on_any_broker(
    cluster: PlacedCluster, coordinator: int, commit: bool
) -> None:
    topic = f"stock-{coordinator}-{commit}"
    cluster.create_topic(topic)
    with producer(cluster, cluster.transactional_id_at(coordinator, topic)) as sender:
        for round_ in range(3):
            ends_well = commit or round_ == 2
            sender.begin_transaction()
            for index in range(3):
                sender.produce(topic, f"{round_}-{index}-{ends_well}".encode(), partition=index)
            sender.flush(PATIENCE_S)
            if ends_well:
                sender.commit_transaction(PATIENCE_S)
            else:
                sender.abort_transaction(PATIENCE_S)
    rounds = (0, 1, 2) if commit else (2,)
    expected = sorted(f"{round_}-{index}-True".encode() for round_ in rounds for index in range(3))
    assert committed(cluster, topic, len(expected)) == expected


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("coordinator", NODES)
def test_transactions_v2_add_partitions_of_any_broker(cluster: PlacedCluster, coordinator: int, commit: bool) -> None:
    topic = f"second-{coordinator}-{commit}"
    cluster.create_topic(topic)
    transactional_id = cluster.transactional_id_at(coordinator, topic)
    with cluster.client() as client:
        writer = Writer(client, transactional_id)
        for index in range(3):
            writer.write(TopicPartition(topic, index), b"%d" % index)
        described = describe(client, [transactional_id])[transactional_id]
        assert sorted(described.partitions) == [TopicPartition(topic, index) for index in range(3)]
        writer.end(commit=commit)
        wait_until(lambda: is_stable(cluster, topic), "every partition has its marker")
        assert writer.send(TopicPartition(topic, 0), b"late").error_code in FENCED
    expected = [b"0", b"1", b"2"] if commit else []
    assert committed(cluster, topic, len(expected)) == expected


def test_a_new_producer_fences_the_one_before_on_every_broker(cluster: PlacedCluster) -> None:
    topic = "fenced"
    cluster.create_topic(topic)
    with cluster.client() as client:
        first = Writer(client, cluster.transactional_id_at(2, topic))
        for index in range(3):
            first.write(TopicPartition(topic, index), b"of the first")
        second = Writer(client, first.transactional_id)
        wait_until(lambda: is_stable(cluster, topic), "what the first left open is aborted")
        for index in range(3):
            assert first.send(TopicPartition(topic, index), b"too late").error_code in FENCED
            second.write(TopicPartition(topic, index), b"of the second")
        second.end(commit=True)
    assert committed(cluster, topic, 3) == [b"of the second"] * 3


def test_a_stock_producer_is_fenced(cluster: PlacedCluster) -> None:
    topic = "stock-fenced"
    cluster.create_topic(topic)
    transactional_id = cluster.transactional_id_at(3, topic)
    with producer(cluster, transactional_id) as first:
        first.begin_transaction()
        first.produce(topic, b"of the first", partition=0)
        first.flush(PATIENCE_S)
        with producer(cluster, transactional_id) as second:
            second.begin_transaction()
            second.produce(topic, b"of the second", partition=1)
            second.commit_transaction(PATIENCE_S)
        with pytest.raises(KafkaException) as refused:
            first.commit_transaction(PATIENCE_S)
        assert refused.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    assert committed(cluster, topic, 1) == [b"of the second"]


def test_offsets_in_a_transaction_of_three_brokers(cluster: PlacedCluster) -> None:
    """The partition on one broker, the group's coordinator on another, the transaction's on the third."""
    topic = "read-and-write"
    placed = cluster.create_topic(topic)
    group, transactional_id = cluster.group_at(2, topic), cluster.transactional_id_at(3, topic)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + PATIENCE_S
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.poll(0.1)
        with producer(cluster, transactional_id) as sender:
            for offset, commits in ((7, True), (9, False)):
                sender.begin_transaction()
                sender.produce(topic, b"v", partition=placed[1])
                sender.send_offsets_to_transaction(
                    [Partition(topic, placed[1], offset)], consumer.consumer_group_metadata(), PATIENCE_S
                )
                if commits:
                    sender.commit_transaction(PATIENCE_S)
                else:
                    sender.abort_transaction(PATIENCE_S)
                (found,) = consumer.committed([Partition(topic, placed[1])], timeout=PATIENCE_S)
                assert found.offset == 7
    finally:
        consumer.close()


# -- prepared transactions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("coordinator", NODES)
def test_once_a_transaction_is_prepared_no_broker_takes_a_record_of_it(
    cluster: PlacedCluster, coordinator: int, commit: bool
) -> None:
    topic = f"prepared-{coordinator}-{commit}"
    cluster.create_topic(topic)
    with cluster.client() as client:
        writer = Writer(client, cluster.transactional_id_at(coordinator, topic))
        for index in range(2):
            writer.write(TopicPartition(topic, index), b"%d" % index)
        pair = writer.prepare()
        owner = Writer(client, writer.transactional_id, pair)
        for index in range(3):
            partition = TopicPartition(topic, index)
            assert writer.send(partition, b"of a zombie").error_code in FENCED
            assert owner.send(partition, b"of the owner").error_code == ErrorCode.INVALID_TXN_STATE
        assert writer.prepare() == pair, "repeated"
        assert not is_stable(cluster, topic)
        writer.end(commit=commit, pair=pair)
        wait_until(lambda: is_stable(cluster, topic), "every partition has its marker")
    expected = [b"0", b"1"] if commit else []
    assert committed(cluster, topic, len(expected)) == expected


# -- groups ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("coordinator", NODES)
def test_a_group_whose_coordinator_is_on_any_broker(cluster: PlacedCluster, coordinator: int, protocol: str) -> None:
    topic = f"grouped-{coordinator}-{protocol}"
    cluster.create_topic(topic)
    group = cluster.group_at(coordinator, topic)
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    sender = Producer({"bootstrap.servers": cluster.bootstrap})
    for index in range(3):
        sender.produce(topic, b"%d" % index, partition=index)
    assert sender.flush(PATIENCE_S) == 0
    members = [Consumer(settings) for _ in range(2)]
    try:
        seen: set[bytes | None] = set()
        deadline = time.monotonic() + PATIENCE_S
        for member in members:
            member.subscribe([topic])
        while len(seen) < 3 or not all(member.assignment() for member in members):
            assert time.monotonic() < deadline
            for member in members:
                message = member.poll(0.1)
                if message is not None and message.error() is None:
                    seen.add(message.value())
        for member in members:
            member.commit(
                offsets=[Partition(each.topic, each.partition, 1) for each in member.assignment()], asynchronous=False
            )
        found = members[0].committed([Partition(topic, index) for index in range(3)], timeout=PATIENCE_S)
        assert [each.offset for each in found] == [1, 1, 1]
    finally:
        for member in members:
            member.close()


# -- who is asked what -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", NODES)
def test_every_broker_knows_who_coordinates(cluster: PlacedCluster, asked: int) -> None:
    with cluster.raw(asked) as client:
        for node in NODES:
            for kind, key in ((GROUP, cluster.group_at(node)), (TRANSACTION, cluster.transactional_id_at(node))):
                request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
                (found,) = client.call(request, FindCoordinatorResponse).coordinators
                assert (found.node_id, found.port) == (node, cluster.port(node))


def test_a_broker_lists_and_describes_what_it_coordinates_and_nothing_else(cluster: PlacedCluster) -> None:
    topic = "listed"
    cluster.create_topic(topic)
    group, transactional_id = cluster.group_at(1, topic), cluster.transactional_id_at(2, topic)
    with cluster.client() as client:
        Writer(client, transactional_id)
        assert [each.transactional_id for each in list_transactions(client, prefix=transactional_id)] == [
            transactional_id
        ]
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    try:
        consumer.commit(offsets=[Partition(topic, 0, 5)], asynchronous=False)
    finally:
        consumer.close()
    for node in NODES:
        with cluster.raw(node) as client:
            listed = client.call(ListGroupsRequest(), ListGroupsResponse).groups
            assert (group in {each.group_id for each in listed}) is (node == 1)
            (described,) = client.call(DescribeGroupsRequest(groups=(group,)), DescribeGroupsResponse).groups
            assert (described.error_code == ErrorCode.NOT_COORDINATOR) is (node != 1)
            states = client.call(ListTransactionsRequest(), ListTransactionsResponse).transaction_states
            assert (transactional_id in {each.transactional_id for each in states}) is (node == 2)
            request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
            (state,) = client.call(request, DescribeTransactionsResponse).transaction_states
            assert state.error_code == (ErrorCode.NONE if node == 2 else ErrorCode.NOT_COORDINATOR)
            wanted = OffsetFetchRequestGroup(
                group_id=group, topics=(OffsetFetchRequestTopics(name=topic, partition_indexes=(0,)),)
            )
            (fetched,) = client.call(OffsetFetchRequest(groups=(wanted,)), OffsetFetchResponse, 9).groups
            assert fetched.error_code == (ErrorCode.NONE if node == 1 else ErrorCode.NOT_COORDINATOR)


# -- brokers that die --------------------------------------------------------------------------------------------------


def test_markers_reach_a_leader_that_was_killed_when_it_is_back(cluster: PlacedCluster) -> None:
    """Its transaction is decided, and the parts on other brokers are seen at once; the next one has to wait."""
    topic = "killed"
    placed = cluster.create_topic(topic)
    with cluster.client() as client:
        transactional_id = cluster.transactional_id_at(1, topic)
        writer = Writer(client, transactional_id)
        for index in range(3):
            writer.write(TopicPartition(topic, index), b"%d" % index)
        cluster.kill(3)
        cluster.wait_for_brokers(2)
        writer.end(commit=True)
        assert describe(client, [transactional_id])[transactional_id].state == "PrepareCommit"
        following = ProducerIdAndEpoch(writer.pair.producer_id, writer.pair.producer_epoch + 1)
        waits = Writer(client, transactional_id, following)
        early = waits.send(TopicPartition(topic, placed[1]), b"the next")
        assert early.error_code in MAY_PASS
        cluster.start_broker(3)
        cluster.wait_for_brokers(3)
        wait_until(
            lambda: describe(client, [transactional_id])[transactional_id].state == "CompleteCommit",
            "every partition has its marker",
        )
    assert committed(cluster, topic, 3) == [b"0", b"1", b"2"]


def test_a_prepared_transaction_waits_while_a_leader_is_away_and_is_fenced_when_it_is_back(
    cluster: PlacedCluster,
) -> None:
    topic = "prepared-and-killed"
    placed = cluster.create_topic(topic)
    with cluster.client() as client:
        writer = Writer(client, cluster.transactional_id_at(1, topic))
        for index in range(3):
            writer.write(TopicPartition(topic, index), b"%d" % index)
        pair = writer.prepare()
        cluster.kill(2)
        cluster.wait_for_brokers(2)
        cluster.start_broker(2)
        cluster.wait_for_brokers(3)
        lost = TopicPartition(topic, placed[2])
        wait_until(lambda: cluster.leaders(topic)[lost.partition] == 2, "it leads again")
    with cluster.client() as client:
        writer.client = client
        assert until_settled(lambda: writer.send(lost, b"of a zombie")).error_code in FENCED
        writer.end(commit=True, pair=pair)
    assert committed(cluster, topic, 3) == [b"0", b"1", b"2"]
