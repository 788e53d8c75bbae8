"""One broker of each kind for all tests of this folder, and the places of each test.

On PLAINTEXT everybody is a super user. A scenario that is about users has their `credentials` (secured.py)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.compat.commands.places import Place, Places
from tests.compat.commands.secured import add_secured_listener
from tests.peers.kafka import ApacheKafka, kafka_jars
from tests.peers.kafka_tools import KafkaTools
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing

SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",  # records of the tests may be years old
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "a-secret-of-the-tests",
}


@pytest.fixture(scope="session")
def kaspar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    broker = KasparProcess(tmp_path_factory.mktemp("kaspar"), overrides=SETTINGS)
    add_secured_listener(broker)
    with broker as running:
        yield running


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    unless_missing(kafka_jars)
    broker = ApacheKafka(tmp_path_factory.mktemp("kafka"), overrides=SETTINGS)
    add_secured_listener(broker)
    with broker as running:
        yield running


@pytest.fixture(scope="session")
def kafka_tools() -> Iterator[KafkaTools]:
    with unless_missing(KafkaTools) as tools:
        yield tools


@pytest.fixture
def places(kaspar: KasparProcess, apache_kafka: ApacheKafka, kafka_tools: KafkaTools, tmp_path: Path) -> Places:
    return (
        Place("Kafka's command on Kaspar", kaspar, tmp_path, kafka_tools),
        Place("our command on Kaspar", kaspar, tmp_path, None),
        Place("our command on Apache Kafka", apache_kafka, tmp_path, None),
    )
