"""One broker of each kind for all tests of this folder."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.integration.cli.records.command import Kaspar
from tests.peers.kafka import ApacheKafka, kafka_jars
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing

SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="session")
def kaspar_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    with KasparProcess(tmp_path_factory.mktemp("kaspar"), overrides=SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    unless_missing(kafka_jars)
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), overrides=SETTINGS) as running:
        yield running


@pytest.fixture
def kaspar(kaspar_broker: KasparProcess, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Kaspar:
    """The command on our broker."""
    return Kaspar(kaspar_broker.bootstrap, capfd, monkeypatch)


@pytest.fixture(params=["kaspar_broker", "apache_kafka"])
def kaspar_on_both(
    request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Kaspar:
    """The command on our broker, and on Apache Kafka's."""
    broker = request.getfixturevalue(request.param)
    return Kaspar(broker.bootstrap, capfd, monkeypatch)
