"""A broker and a proxy that the tests of the REST API share. With `--against kafka` the broker is Apache Kafka's."""

import itertools
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.integration.rest.api import Api
from tests.integration.rest.serving import RunningRest
from tests.peers.against import broker_to_test
from tests.peers.process import BrokerProcess

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
REGISTRY = "mock://rest"

CreateTopic = Callable[[str, int], None]
NewTopic = Callable[..., str]


@pytest.fixture(scope="session")
def rest_broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_to_test(request, tmp_path_factory.mktemp("rest-broker"), SETTINGS) as broker:
        yield broker


@pytest.fixture(scope="session")
def rest(rest_broker: BrokerProcess) -> Iterator[RunningRest]:
    values = {
        "bootstrap.servers": rest_broker.bootstrap,
        "schema.registry.url": REGISTRY,
        "kaspar.http.max.body.bytes": "3000000",
        "consumer.heartbeat.interval.ms": "200",  # so that members soon know of a rebalance
    }
    with RunningRest(values) as running:
        yield running


@pytest.fixture
def api(rest: RunningRest) -> Iterator[Api]:
    with httpx.Client(base_url=rest.url, timeout=30) as client:
        api = Api(client)
        yield api
        api.delete_instances()


@pytest.fixture(scope="session")
def create_topic(rest_broker: BrokerProcess) -> CreateTopic:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin import NewTopic as Wanted

    admin = AdminClient({"bootstrap.servers": rest_broker.bootstrap, "log_level": 0})

    def create(name: str, partitions: int) -> None:
        admin.create_topics([Wanted(name, num_partitions=partitions, replication_factor=1)])[name].result()

    return create


@pytest.fixture(scope="session")
def new_topic(create_topic: CreateTopic) -> NewTopic:
    numbers = itertools.count()

    def create(partitions: int = 1, prefix: str = "topic") -> str:
        name = f"{prefix}-{next(numbers)}"
        create_topic(name, partitions)
        return name

    return create
