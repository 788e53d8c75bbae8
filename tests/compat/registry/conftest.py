"""A registry on the broker that the compat tests share: ours, or Apache Kafka's with `--against kafka`."""

import itertools
from collections.abc import Iterator

import pytest

from tests.compat.scenario import NewTopic
from tests.integration.registry.instances import Registry
from tests.peers.brokers import Brokers
from tests.peers.error_log import ErrorLog

# Apache Kafka takes no session shorter than six seconds.
SETTINGS = {
    "kafkagroup.session.timeout.ms": "10000",
    "kafkagroup.heartbeat.interval.ms": "3000",
    "kafkastore.topic.replication.factor": "1",
}


@pytest.fixture(scope="session")
def registry(shared_broker: Brokers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("registry")
    with Registry(folder, shared_broker.bootstrap.split(",")[0], "registry", SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def registry_errors(registry: Registry) -> ErrorLog:
    return ErrorLog(registry.log_file)


@pytest.fixture
def url(registry: Registry, registry_errors: ErrorLog, broker: Brokers) -> Iterator[str]:
    """Of the registry. An ERROR that it logs fails the test during which it did."""
    yield registry.url
    errors = registry_errors.unexpected()
    assert not errors, "the registry logged:\n" + "\n".join(errors)


@pytest.fixture(scope="session")
def subject_names() -> Iterator[str]:
    return (f"subject-{number}" for number in itertools.count())


@pytest.fixture
def subject(subject_names: Iterator[str]) -> str:
    """A name that no other test uses."""
    return next(subject_names)


@pytest.fixture
def topic(new_topic: NewTopic) -> str:
    """A topic of the test's own, with one partition."""
    return new_topic()
