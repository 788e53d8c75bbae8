"""A broker that the tests of the messages view share. With `--against kafka` it is Apache Kafka's."""

import itertools
from collections.abc import Callable, Iterator, Mapping

import pytest

from kaspar.client.cluster import Client
from tests.peers.against import broker_to_test
from tests.peers.process import BrokerProcess

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "log.cleaner.backoff.ms": "50",
}

NewTopic = Callable[..., str]


@pytest.fixture(scope="session")
def messages_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with broker_to_test(request, tmp_path_factory.mktemp("messages-broker"), SETTINGS) as broker:
        yield broker


@pytest.fixture(scope="session")
def client(messages_broker: BrokerProcess) -> Iterator[Client]:
    with Client(messages_broker.bootstrap, timeout_s=10) as client:
        yield client


@pytest.fixture(scope="session")
def new_topic(messages_broker: BrokerProcess) -> NewTopic:
    """Creates a topic with so many partitions and these settings, and returns its name."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin import NewTopic as Wanted

    admin = AdminClient({"bootstrap.servers": messages_broker.bootstrap, "log_level": 0})
    numbers = itertools.count()

    def create(partitions: int = 1, settings: Mapping[str, str] | None = None) -> str:
        name = f"messages-{next(numbers)}"
        wanted = Wanted(name, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
        admin.create_topics([wanted])[name].result()
        return name

    return create
