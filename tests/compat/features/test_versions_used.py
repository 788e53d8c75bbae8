"""That the new protocols are really spoken, seen from the broker, and that after a downgrade the old ones are.

Transactions v2 (KIP-890): the partitions are added by the produce itself, and every end bumps the epoch. Java and
franz-go speak it; librdkafka has no word of it up to 2.16, so it must be served by the older rules on any broker.
"""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.compat.clients.api import Client, ClientKind
from tests.compat.clients.registry import CLIENTS, CONFLUENT, FRANZ_GO, JAVA
from tests.compat.clients.words import wait_for_values
from tests.compat.conftest import SETTINGS
from tests.compat.drivers.confluent import ConfluentDriver
from tests.compat.features.served import Served, broker_that_counts, served, versions_of
from tests.compat.scenario import eventually, wait_for_leaders
from tests.peers.kafka import kafka_jars, run_tool
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess

FEATURE_TOOL = "org.apache.kafka.tools.FeatureCommand"
OF_CLIENTS = range(4)  # the versions of AddPartitionsToTxn that clients send; above are those of brokers
FIRST_V2 = {"Produce": 12, "EndTxn": 5, "TxnOffsetCommit": 5}

SPEAKS_V2 = [JAVA, FRANZ_GO]
SPEAKS_V1 = [CONFLUENT, *(CLIENTS[name] for name in ("aiokafka", "kafka-python", "kafkajs"))]
KNOWS_KIP_848 = [CONFLUENT, JAVA, FRANZ_GO]


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    unless_missing(kafka_jars)  # of the tool that changes features
    with broker_that_counts(
        request.config.getoption("--against"), tmp_path_factory.mktemp("broker"), SETTINGS
    ) as broker:
        yield broker


def feature(broker: BrokerProcess, verb: str, name: str, level: int) -> None:
    run_tool(FEATURE_TOOL, "--bootstrap-server", broker.bootstrap, verb, "--feature", f"{name}={level}")


def during(broker: BrokerProcess, before: Served) -> Served:
    return served(broker) - before


def transform(broker: BrokerProcess, kind: ClientKind, name: str) -> Served:
    """The requests of a transaction that reads, writes and commits offsets."""
    driver = ConfluentDriver(broker.bootstrap)
    for topic in (f"{name}-source", f"{name}-target"):
        driver.create_topic(topic)
        wait_for_leaders(broker, topic, [0])
    client = unless_missing(lambda: Client(kind, broker.bootstrap))
    before = served(broker)
    producer = client.producer(f"{name}-writer")
    producer.begin()
    producer.send(f"{name}-source", "a", "b")
    producer.commit()
    transformer = client.transformer(f"{name}-group", f"{name}-source", f"{name}-target", f"{name}-id")
    reader = client.consumer(f"{name}-reader", f"{name}-target", isolation="read_committed")
    wait_for_values([reader], ["A", "B"])
    for opened in (reader, transformer, producer):
        opened.close()
    client.close()
    return during(broker, before)


def check_v2(requests: Served) -> None:
    for api, first in FIRST_V2.items():
        assert {version for version in versions_of(requests, api) if version < first} == set(), api
        assert versions_of(requests, api), api
    assert versions_of(requests, "AddPartitionsToTxn").isdisjoint(OF_CLIENTS)
    assert versions_of(requests, "AddOffsetsToTxn") == set()


def check_v1(requests: Served) -> None:
    for api, first in FIRST_V2.items():
        assert versions_of(requests, api), api
        assert {version for version in versions_of(requests, api) if version >= first} == set(), api
    assert versions_of(requests, "AddPartitionsToTxn") & set(OF_CLIENTS)
    assert versions_of(requests, "AddOffsetsToTxn")


@pytest.mark.parametrize("kind", SPEAKS_V2, ids=lambda kind: kind.name)
def test_transactions_v2_are_used(broker: BrokerProcess, kind: ClientKind) -> None:
    check_v2(transform(broker, kind, f"v2-{kind.name}"))


@pytest.mark.parametrize("kind", SPEAKS_V1, ids=lambda kind: kind.name)
def test_a_client_that_knows_no_v2_is_served_by_the_older_rules(broker: BrokerProcess, kind: ClientKind) -> None:
    check_v1(transform(broker, kind, f"v1-{kind.name}"))


@pytest.mark.parametrize("kind", KNOWS_KIP_848, ids=lambda kind: kind.name)
def test_the_new_group_protocol_is_used(broker: BrokerProcess, kind: ClientKind) -> None:
    before = served(broker)
    use_group(broker, kind, f"group-{kind.name}")
    requests = during(broker, before)
    assert versions_of(requests, "ConsumerGroupHeartbeat")
    assert versions_of(requests, "JoinGroup") == set()
    assert versions_of(requests, "Heartbeat") == set()


def use_group(broker: BrokerProcess, kind: ClientKind, topic: str) -> None:
    driver = ConfluentDriver(broker.bootstrap)
    driver.create_topic(topic)
    wait_for_leaders(broker, topic, [0])
    client = unless_missing(lambda: Client(kind, broker.bootstrap))
    member = client.consumer(topic, topic, protocol="consumer")
    eventually(lambda: member.look().assignment == {(topic, 0)}, "the assignment")
    client.close()


def check_without_848(broker: BrokerProcess, kind: ClientKind, topic: str) -> None:
    with closing(unless_missing(lambda: Client(kind, broker.bootstrap))) as client:
        new = client.consumer(f"{topic}-new-{kind.name}", topic, protocol="consumer")
        classic = client.consumer(f"{topic}-classic-{kind.name}", topic)
        eventually(lambda: classic.look().assignment == {(topic, 0)}, "the assignment")
        if kind is FRANZ_GO:  # it falls back by itself
            eventually(lambda: new.look().assignment == {(topic, 0)}, "the assignment by the classic protocol")
        else:
            eventually(lambda: new.look().error is not None, "the refusal")
            assert new.look().error in ("UNSUPPORTED_VERSION", "_UNSUPPORTED_FEATURE")


def test_a_downgrade_of_transactions_falls_back_and_an_upgrade_returns(broker: BrokerProcess) -> None:
    feature(broker, "downgrade", "transaction.version", 1)
    try:
        for kind in SPEAKS_V2:
            check_v1(transform(broker, kind, f"downgraded-{kind.name}"))
    finally:
        feature(broker, "upgrade", "transaction.version", 2)
    check_v2(transform(broker, JAVA, "upgraded"))


def test_without_the_new_group_protocol_members_of_it_are_refused_and_classic_ones_served(
    broker: BrokerProcess,
) -> None:
    driver = ConfluentDriver(broker.bootstrap)
    driver.create_topic("no-848")
    wait_for_leaders(broker, "no-848", [0])
    feature(broker, "downgrade", "group.version", 0)
    try:
        for kind in KNOWS_KIP_848:
            check_without_848(broker, kind, "no-848")
    finally:
        feature(broker, "upgrade", "group.version", 1)
    use_group(broker, JAVA, "group-upgraded")
