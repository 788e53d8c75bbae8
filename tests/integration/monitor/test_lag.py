"""Groups of real consumers, evaluated by the monitor. With `--against kafka` the broker is Apache Kafka's.

The monitor's clock is the test's, ten seconds a round; brokers and consumers live in real time.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.deletion import delete_topics
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.groups import delete_groups
from kaspar.client.admin.session import Admin
from kaspar.client.cluster import Client
from kaspar.monitor.views import Status
from kaspar.spark.reading.group_commits import GroupCommits
from tests.integration.monitor.lag_rounds import WINDOW, DrivenMonitor
from tests.peers.against import broker_to_test
from tests.peers.process import BrokerProcess

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "5",
}
PROTOCOLS = ("classic", "consumer")
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_to_test(request, tmp_path_factory.mktemp("monitored"), SETTINGS) as broker:
        yield broker


@pytest.fixture(scope="module")
def admin(broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(broker.bootstrap) as admin:
        yield admin


@pytest.fixture(scope="module")
def producer(broker: BrokerProcess) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0, "linger.ms": 0})


@pytest.fixture
def topic(admin: Admin) -> str:
    return new_topic(admin)


@pytest.fixture
def monitor(broker: BrokerProcess) -> Iterator[DrivenMonitor]:
    with DrivenMonitor(broker.bootstrap) as monitor:
        yield monitor


def new_topic(admin: Admin) -> str:
    name = f"lag-{next(_NUMBERS)}"
    create_topics(admin, [NewTopic(name, 1)])
    return name


def write(producer: Producer, topic: str, count: int) -> None:
    for _ in range(count):
        producer.produce(topic, b"value", partition=0)
    assert producer.flush(10) == 0


@contextmanager
def member(broker: BrokerProcess, topic: str, protocol: str = "classic") -> Iterator[Consumer]:
    """A consumer of the group `g-TOPIC` that has its partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"g-{topic}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        consumer.subscribe([topic])
        for _ in range(200):
            consumer.poll(0.05)
            if consumer.assignment():
                break
        assert consumer.assignment()
        yield consumer
    finally:
        consumer.close()


def commit(consumer: Consumer, topic: str, offset: int) -> None:
    consumer.commit(offsets=[Position(topic, 0, offset)], asynchronous=False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_life_of_a_consumer(
    broker: BrokerProcess, producer: Producer, topic: str, monitor: DrivenMonitor, protocol: str
) -> None:
    """It keeps up, falls behind, catches up, stands still, leaves, and is set back."""
    group = f"g-{topic}"
    written = committed = 0
    with member(broker, topic, protocol) as consumer:
        for _ in range(WINDOW + 3):
            write(producer, topic, 10)
            written += 10
            commit(consumer, topic, written - 2)
            assert monitor.status_after_round(group) is Status.OK
        committed = written - 2
        assert monitor.group(group).kind == ("Classic" if protocol == "classic" else "Consumer")
        owner = monitor.partition(group).owner
        assert owner is not None
        assert (owner.client_id, monitor.group(group).members) == ("rdkafka", 1)

        statuses = []
        for _ in range(WINDOW + 1):
            write(producer, topic, 10)
            written += 10
            committed += 2
            commit(consumer, topic, committed)
            statuses.append(monitor.status_after_round(group))
        assert statuses[0] is Status.OK
        assert statuses[-1] is Status.WARN
        assert monitor.group(group).status is Status.WARN

        committed = written - 1
        commit(consumer, topic, committed)
        assert monitor.status_after_round(group) is Status.OK

        write(producer, topic, 50)
        statuses = [monitor.status_after_round(group) for _ in range(WINDOW + 1)]
        assert statuses[-1] is Status.STALL
        assert monitor.group(group).status is Status.ERR
    assert monitor.status_after_round(group) is Status.STOP


def test_a_group_that_is_set_back(broker: BrokerProcess, producer: Producer, topic: str, admin: Admin) -> None:
    where = TopicPartition(topic, 0)
    write(producer, topic, 100)
    with DrivenMonitor(broker.bootstrap) as monitor:
        for number in range(WINDOW):
            alter_group_offsets(admin, "set-back", {where: 50 + number})
            monitor.round()
        assert monitor.partition("set-back").status is Status.OK  # catching up
        alter_group_offsets(admin, "set-back", {where: 10})
        assert monitor.status_after_round("set-back") is Status.REWIND
    delete_groups(admin, ["set-back"])


def test_a_reader_of_committed_records_waits_for_an_open_transaction(
    broker: BrokerProcess, topic: str, monitor: DrivenMonitor
) -> None:
    group = f"g-{topic}"
    transactional = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": f"id-{topic}", "log_level": 0, "linger.ms": 0}
    )
    transactional.init_transactions(30)
    transactional.begin_transaction()
    for _ in range(7):
        transactional.produce(topic, b"open", partition=0)
    transactional.flush(10)
    with member(broker, topic) as consumer:
        commit(consumer, topic, 0)
        for _ in range(WINDOW + 3):
            assert monitor.status_after_round(group) is Status.OK
        partition = monitor.partition(group)
        assert (partition.lag, partition.stable_lag, partition.stable_offset) == (7, 0, 0)
        transactional.commit_transaction(30)
        _until(monitor, lambda: monitor.partition(group).stable_lag == 8)  # with the marker
        assert monitor.partition(group).status is Status.OK
        statuses = [monitor.status_after_round(group) for _ in range(WINDOW + 1)]
        assert statuses[-1] is Status.STALL


@pytest.mark.skipif("config.getoption('--against') == 'kafka'", reason="Apache Kafka does not tell markers apart")
def test_a_marker_at_the_end_is_nothing_to_read(broker: BrokerProcess, topic: str, monitor: DrivenMonitor) -> None:
    group = f"g-{topic}"
    transactional = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"id-{topic}", "log_level": 0})
    transactional.init_transactions(30)
    transactional.begin_transaction()
    transactional.produce(topic, b"done", partition=0)
    transactional.commit_transaction(30)
    with member(broker, topic) as consumer:
        commit(consumer, topic, 1)
        for _ in range(WINDOW + 3):
            assert monitor.status_after_round(group) is Status.OK
    partition = monitor.partition(group)
    assert (partition.lag, partition.lag_seconds) == (1, 0.0)


@pytest.mark.skipif("config.getoption('--against') == 'kafka'", reason="Apache Kafka does not look up times")
def test_seconds_are_by_the_times_of_records(
    broker: BrokerProcess, producer: Producer, topic: str, admin: Admin, monitor: DrivenMonitor
) -> None:
    now_ms = monitor.clock.now_ms()
    for age_ms in (500_000, 300_000, 100_000):
        producer.produce(topic, b"old", partition=0, timestamp=now_ms - age_ms)
        producer.flush(10)
    alter_group_offsets(admin, f"seconds-{topic}", {TopicPartition(topic, 0): 1})
    monitor.round()
    assert monitor.partition(f"seconds-{topic}").lag_seconds == 310.0
    alter_group_offsets(admin, f"seconds-{topic}", {TopicPartition(topic, 0): 3})
    monitor.round()
    assert monitor.partition(f"seconds-{topic}").lag_seconds == 0.0


def test_the_group_of_a_spark_query_is_evaluated(
    broker: BrokerProcess, producer: Producer, topic: str, monitor: DrivenMonitor
) -> None:
    """It has no members: it is stopped when the query ends."""
    where = TopicPartition(topic, 0)
    client = Client(broker.bootstrap)
    topic_id = next(each.topic_id for each in client.refresh_metadata([topic]).topics)
    commits = GroupCommits("spark-query", lambda: Client(broker.bootstrap))
    try:
        for number in range(WINDOW + 2):
            write(producer, topic, 10)
            commits.processed({where: number * 10 + 8}, {topic: topic_id})
            assert commits.wait_until_committed(10)
            assert monitor.status_after_round("spark-query") is Status.OK
    finally:
        commits.close()
        client.close()
    write(producer, topic, 10)
    statuses = [monitor.status_after_round("spark-query") for _ in range(WINDOW + 1)]
    assert statuses[-1] is Status.STOP


def test_deleted_groups_and_topics_are_forgotten(
    producer: Producer, topic: str, admin: Admin, monitor: DrivenMonitor
) -> None:
    write(producer, topic, 5)
    group = f"short-lived-{topic}"
    other = new_topic(admin)
    alter_group_offsets(admin, group, {TopicPartition(topic, 0): 1, TopicPartition(other, 0): 0})
    monitor.round()
    assert len(monitor.group(group).partitions) == 2
    delete_topics(admin, [other])
    _until(monitor, lambda: [each.topic for each in monitor.group(group).partitions] == [topic])
    delete_groups(admin, [group])
    _until(monitor, lambda: monitor.monitor.lag.group(group) is None)


def _until(monitor: DrivenMonitor, condition: Callable[[], bool]) -> None:
    for _ in range(50):
        monitor.round()
        if condition():
            return
    raise AssertionError("not within 50 rounds")


def test_the_cluster_and_what_is_written_without_metrics_pages(
    producer: Producer, topic: str, monitor: DrivenMonitor
) -> None:
    assert monitor.look_at_cluster()
    cluster = monitor.monitor.cluster
    assert cluster is not None
    assert [each.is_controller for each in cluster.brokers] == [True]
    assert (cluster.under_replicated, cluster.offline, cluster.fenced_brokers) == ((), (), ())
    assert cluster.topics >= 1
    monitor.round()
    write(producer, topic, 50)
    monitor.round()
    assert monitor.monitor.rates.latest("messages_in") == 5.0
    assert topic in monitor.monitor.lag.topics()
