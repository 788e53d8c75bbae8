"""One broker of ours and one Spark session for all tests of this folder; topics of its own for each test.

    def test_...(spark: SparkSession, broker: KasparProcess, topics: Topics) -> None:
        orders = topics.create(partitions=2)
        topics.produce(orders, [b"one"])
        spark.read.format("kaspar").option("kafka.bootstrap.servers", broker.bootstrap)...

The session also knows Spark's own connector, format("kafka"). An ERROR that the broker logs during a test fails it.
All JVMs, also those of programs that tests start, compile with C1 only: short runs do not pay for more. Their classes
come from an archive.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kaspar.spark
from kaspar.spark.running.java import JavaMissing, find_java
from tests.peers.downloads import ToolMissingError
from tests.peers.kafka import LIGHT_JVM
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.spark_classes import spark_archive_flags
from tests.peers.spark_connector import connector_jars
from tests.spark.topics import Topics

SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "log.cleaner.backoff.ms": "50",
    "log.retention.check.interval.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
}
SESSION = {
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spark's gateway leaves sockets for the garbage collector, which is its own affair."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session", autouse=True)
def _java() -> None:
    """Not only for the session: many tests start programs of their own."""

    def found() -> None:
        try:
            find_java()
        except JavaMissing as missing:
            raise ToolMissingError(str(missing)) from missing

    unless_missing(found)


@pytest.fixture(scope="session", autouse=True)
def _light_jvms(_java: None) -> Iterator[None]:
    """For the session's JVM and those of programs that tests start: the java launcher reads this variable."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", " ".join((*LIGHT_JVM, *spark_archive_flags())))
        yield


@pytest.fixture(autouse=True)
def _no_query_goes_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """A query that a failed test has left would slow down, and so fail, those behind it."""
    yield
    if "spark" in request.fixturenames:
        session: SparkSession = request.getfixturevalue("spark")
        for query in session.streams.active:
            query.stop()


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    with KasparProcess(tmp_path_factory.mktemp("broker"), overrides=SETTINGS) as running:
        yield running


@pytest.fixture
def broker(shared_broker: KasparProcess) -> Iterator[KasparProcess]:
    assert shared_broker.running, f"the broker has ended:\n{shared_broker.log_text()[-3000:]}"
    yield shared_broker
    errors = shared_broker.unexpected_errors()
    assert not errors, "the broker logged:\n" + "\n".join(errors)


@pytest.fixture
def topics(broker: KasparProcess) -> Topics:
    return Topics(broker.bootstrap)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars = unless_missing(connector_jars)
    # Not on the class path of the JVM, which is then that of the archive of classes.
    settings = {**SESSION, "spark.jars": ",".join(map(str, jars))}
    settings["spark.sql.warehouse.dir"] = str(tmp_path_factory.mktemp("warehouse"))
    session = kaspar.spark.session("tests", "local[2]", settings)
    yield session
    session.stop()
