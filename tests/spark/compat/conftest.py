"""The two brokers that the data source is held to: ours, and Apache Kafka's. Each has the same topics, the menagerie.

A test that takes `side` runs once against each of them:

    @pytest.mark.long_on_kafka("a", "b")
    @pytest.mark.parametrize("case", ["a", "b", "c"])
    def test_...(side: BrokerProcess, case: str) -> None: ...

The mark names cases that are about the data source alone: against Apache Kafka they run only with --long.
"""

from collections.abc import Iterator

import pytest

from tests.peers.kafka import ApacheKafka, kafka_jars
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess
from tests.spark.compat.menagerie import Menagerie
from tests.spark.conftest import SETTINGS
from tests.spark.topics import Topics


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long_on_kafka(*cases): run these against Apache Kafka only with --long")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before tests/conftest.py leaves out what is marked as long."""
    for item in items:
        mark = item.get_closest_marker("long_on_kafka")
        if mark is not None and isinstance(item, pytest.Function):
            params = item.callspec.params
            if params.get("side") == "kafka" and params.get("case") in mark.args:
                item.add_marker(pytest.mark.long)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "side" in metafunc.fixturenames:
        metafunc.parametrize("side", ["kaspar", "kafka"], indirect=True, scope="session")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    unless_missing(kafka_jars)
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), overrides=SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def side(request: pytest.FixtureRequest) -> BrokerProcess:
    name = "shared_broker" if request.param == "kaspar" else "kafka"
    broker: BrokerProcess = request.getfixturevalue(name)
    return broker


@pytest.fixture(autouse=True)
def no_errors_logged(shared_broker: KasparProcess) -> Iterator[None]:
    yield
    errors = shared_broker.unexpected_errors()
    assert not errors, "the broker logged:\n" + "\n".join(errors)


@pytest.fixture
def side_topics(side: BrokerProcess) -> Topics:
    return Topics(side.bootstrap)


@pytest.fixture(scope="session")
def menagerie(side: BrokerProcess) -> Menagerie:
    return Menagerie.on(Topics(side.bootstrap))
