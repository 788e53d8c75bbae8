"""A registry on the broker that the compat tests share: ours, or Apache Kafka's with `--against kafka`."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.registry.clients import foreign
from tests.compat.registry.clients.api import RegistryClient
from tests.compat.registry.clients.registry import CLIENTS
from tests.compat.registry.passing import Pass
from tests.integration.registry.instances import Registry
from tests.peers.brokers import Brokers
from tests.peers.error_log import ErrorLog
from tests.peers.missing import unless_missing

POLL_SECONDS = 15.0
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
def topic(topic_name: str) -> str:
    """A topic for serializers, which look only at its name."""
    return topic_name


@pytest.fixture(scope="session")
def through_kafka(shared_broker: Brokers) -> Iterator[Pass]:
    """What a consumer receives of a record: its value and headers. All records share one topic."""
    bootstrap: dict[str, str | int | float | bool] = {"bootstrap.servers": shared_broker.bootstrap}
    topic = "registry-records"
    admin = AdminClient(bootstrap)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(POLL_SECONDS)
    producer = Producer({**bootstrap, "linger.ms": 0})
    consumer = Consumer({**bootstrap, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])

    def passed(value: bytes | None, headers: Any = None) -> tuple[bytes | None, Any]:
        producer.produce(topic, value, headers=headers or [])
        assert producer.flush(POLL_SECONDS) == 0
        message = consumer.poll(POLL_SECONDS)
        assert message is not None
        assert message.error() is None
        return message.value(), message.headers() or []

    yield passed
    consumer.close()
    producer.close()


@pytest.fixture(scope="session")
def clients(registry: Registry) -> Iterator[Callable[[str], RegistryClient]]:
    """A client by name, started when first asked for."""
    started: dict[str, RegistryClient] = {}

    def client(name: str) -> RegistryClient:
        if name not in started:
            started[name] = unless_missing(lambda: CLIENTS[name](registry.url))
        return started[name]

    yield client
    for each in started.values():
        each.close()


def pytest_collection_finish(session: pytest.Session) -> None:
    """The clients' programs are built before the first test: on a new machine that takes longer than a test may."""
    if not session.config.option.collectonly:
        callspecs = (getattr(item, "callspec", None) for item in session.items)
        foreign.build({str(value) for each in callspecs if each is not None for value in each.params.values()})
