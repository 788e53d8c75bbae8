"""A broker that the tests of the messages view share. With `--against kafka` it is Apache Kafka's."""

import itertools
from collections.abc import Callable, Iterator, Mapping

import pytest

from kaspar.client.cluster import EARLIEST_TIMESTAMP, Client
from kaspar.console.messages.reading.fetching import look_up, offsets_at
from kaspar.console.problems import NotThere
from tests.peers.against import broker_to_test
from tests.peers.observed import wait_until
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
def new_topic(messages_broker: BrokerProcess, client: Client) -> NewTopic:
    """Creates a topic with so many partitions and these settings, and returns its name."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin import NewTopic as Wanted

    admin = AdminClient({"bootstrap.servers": messages_broker.bootstrap, "log_level": 0})
    numbers = itertools.count()

    def create(partitions: int = 1, settings: Mapping[str, str] | None = None) -> str:
        name = f"messages-{next(numbers)}"
        wanted = Wanted(name, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
        admin.create_topics([wanted])[name].result()
        wait_until(lambda: _is_readable(client, name), "every partition has a leader")
        return name

    return create


def _is_readable(client: Client, topic: str) -> bool:
    """Kafka creates a topic before its leaders know of it."""
    try:
        layout = look_up(client, topic)
        offsets_at(client, layout, EARLIEST_TIMESTAMP)
    except NotThere:
        return False
    return not layout.problems
