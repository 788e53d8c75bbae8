"""The broker and the clients of the compat tests.

A test that takes `driver` runs once for each client that can do what the test needs:

    @needs(Ability.CONSUME)
    def test_...(driver: Driver, new_topic: NewTopic) -> None: ...

`reference` is one client that can do everything, for what a test needs but is not about. All tests share one broker and
use topics of their own. An ERROR that our broker logs during a test fails that test. `clients/stage.py` makes tests of
the scenarios of groups and transactions.
"""

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.compat.clients.stage import Crew
from tests.compat.drivers import foreign
from tests.compat.drivers.api import Ability, Driver
from tests.compat.drivers.confluent import ConfluentDriver
from tests.compat.drivers.registry import DRIVERS, able
from tests.compat.scenario import NewTopic, wait_for_leaders
from tests.peers.against import brokers_to_test
from tests.peers.brokers import Brokers
from tests.peers.missing import unless_missing

SETTINGS = {
    "num.partitions": "3",  # not the default, so that a test can see that it is honoured
    "log.cleaner.backoff.ms": "50",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*abilities): run only for clients that can do this")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "driver" in metafunc.fixturenames:
        needed = [ability for mark in metafunc.definition.iter_markers("needs") for ability in mark.args]
        assert all(isinstance(ability, Ability) for ability in needed)
        metafunc.parametrize("driver", able(*needed), indirect=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """The clients' programs are built before the first test: on a new machine that takes longer than a test may."""
    if not session.config.option.collectonly:
        callspecs = (getattr(item, "callspec", None) for item in session.items)
        foreign.build({str(value) for each in callspecs if each is not None for value in each.params.values()})


@pytest.fixture(scope="session")
def shared_broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with brokers_to_test(request, tmp_path_factory.mktemp("broker"), SETTINGS, kafka_heap="1g") as running:
        yield running


@pytest.fixture
def broker(shared_broker: Brokers) -> Iterator[Brokers]:
    assert shared_broker.running, f"the broker has ended:\n{shared_broker.log_text()[-3000:]}"
    yield shared_broker
    errors = shared_broker.unexpected_errors()
    assert not errors, "the broker logged:\n" + "\n".join(errors)


@pytest.fixture(scope="session")
def drivers(shared_broker: Brokers) -> Iterator[Callable[[str], Driver]]:
    """A client's driver by name, started when first asked for."""
    started: dict[str, Driver] = {}

    def driver(name: str) -> Driver:
        if name not in started:
            started[name] = unless_missing(lambda: DRIVERS[name](shared_broker.bootstrap))
        return started[name]

    yield driver
    for each in started.values():
        each.close()


@pytest.fixture
def driver(request: pytest.FixtureRequest, broker: Brokers, drivers: Callable[[str], Driver]) -> Driver:
    return drivers(request.param)


@pytest.fixture
def reference(broker: Brokers, drivers: Callable[[str], Driver]) -> Driver:
    return drivers(ConfluentDriver.name)


@pytest.fixture(scope="session")
def crew(request: pytest.FixtureRequest, shared_broker: Brokers, drivers: Callable[[str], Driver]) -> Iterator[Crew]:
    chosen: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and "variant" in item.fixturenames:
            case = (str(item.callspec.params["client"]), str(item.callspec.params["variant"]))
            chosen.setdefault((item.function.__module__, item.originalname), []).append(case)
    crew = Crew(shared_broker, drivers(ConfluentDriver.name), chosen)
    yield crew
    crew.close()


@pytest.fixture(scope="session")
def topic_names() -> Iterator[str]:
    return (f"topic-{number}" for number in itertools.count())


@pytest.fixture
def new_topic(broker: Brokers, reference: Driver, topic_names: Iterator[str]) -> NewTopic:
    """Makes a topic that no other test uses."""

    def create(*, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = next(topic_names)
        reference.create_topic(name, partitions=partitions, config=config)
        wait_for_leaders(broker, name, range(partitions))
        return name

    return create


@pytest.fixture
def topic_name(topic_names: Iterator[str]) -> str:
    """A name that no topic has yet."""
    return next(topic_names)
