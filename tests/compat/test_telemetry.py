"""Stock clients push their metrics once there is a subscription (KIP-714), as they do by default.

Only what other brokers show of it differs, so this runs on ours alone.
"""

import contextlib
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer

from tests.compat.clients.api import Client, ClientKind
from tests.compat.clients.registry import CONFLUENT, FRANZ_GO, JAVA
from tests.peers.downloads import require_tool
from tests.peers.kafka import LIGHT_JVM, classpath, kafka_jars
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.telemetry_client import subscribe

TOPIC = "orders"
SOFTWARE = {"java": "apache-kafka-java", "confluent-kafka": "confluent-kafka-python", "franz-go": "kgo"}
_OF_CLIENT = re.compile(r'(kafka_client_\w+)\{.*client_id="([\w.-]*)".*client_software_name="([\w.-]+)"')


@contextlib.contextmanager
def java_producer(bootstrap: str) -> Iterator[None]:
    unless_missing(kafka_jars)
    java = [require_tool("java"), "-Xmx128m", *LIGHT_JVM, "-cp", classpath()]
    tool = ["org.apache.kafka.tools.ProducerPerformance", "--topic", TOPIC, "--num-records", "1000000"]
    more = ["--record-size", "10", "--throughput", "20", "--bootstrap-server", bootstrap]
    process = subprocess.Popen(
        [*java, *tool, *more, "--command-property", "client.id=java"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def librdkafka_producer(bootstrap: str) -> Iterator[None]:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "librdkafka"})
    ended = threading.Event()

    def produce() -> None:
        while not ended.wait(0.02):
            producer.produce(TOPIC, b"value")
            producer.poll(0)
        producer.flush(10)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        producer.close()


CLIENTS: dict[str, tuple[Callable[[str], contextlib.AbstractContextManager[None]], str, str]] = {
    "java": (java_producer, "apache-kafka-java", "kafka_client_producer_topic_record_send_total"),
    "librdkafka": (librdkafka_producer, "confluent-kafka-python", "kafka_client_producer_request_latency_avg"),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedBroker]:
    with ObservedBroker(tmp_path_factory.mktemp("telemetry")) as running:
        with running.client() as client:
            assert client.create_topic(TOPIC) == 0
            subscribe(client, "all", metrics="org.apache.kafka.producer.,org.apache.kafka.consumer.", interval_ms=100)
        yield running


def pushed(broker: ObservedBroker) -> dict[tuple[str, str, str], float]:
    return {
        (match[1], match[2], match[3]): value
        for name, value in broker.metrics().items()
        if (match := _OF_CLIENT.match(name))
    }


@pytest.mark.parametrize("client", CLIENTS)
def test_metrics_of_stock_clients_arrive(client: str, broker: ObservedBroker) -> None:
    start, software, metric = CLIENTS[client]
    with start(broker.bootstrap):
        wait_until(lambda: pushed(broker).get((metric, client, software), 0) > 0, f"{client} has pushed")
        first = pushed(broker)[metric, client, software]
        wait_until(lambda: pushed(broker)[metric, client, software] != first, f"{client} has pushed again")
    check_nothing_is_left(broker)


@pytest.mark.parametrize("kind", [JAVA, CONFLUENT, FRANZ_GO], ids=lambda kind: kind.name)
def test_metrics_of_stock_consumers_arrive(kind: ClientKind, broker: ObservedBroker) -> None:
    def of_consumer() -> set[str]:
        return {
            metric
            for metric, _, software in pushed(broker)
            if metric.startswith("kafka_client_consumer_") and software == SOFTWARE[kind.name]
        }

    with (
        closing(unless_missing(lambda: Client(kind, broker.bootstrap))) as client,
        closing(client.consumer(f"{kind.name}-readers", TOPIC)),
    ):
        wait_until(lambda: len(of_consumer()) > 3, f"{kind.name} has pushed")
    check_nothing_is_left(broker)


def check_nothing_is_left(broker: ObservedBroker) -> None:
    wait_until(lambda: not pushed(broker), "what clients pushed goes with them")
    metrics = broker.metrics()
    for error in ("throttle", "unknown_subscription_request", "plugin_error"):
        assert metrics[f"kafka_server_client_metrics_{error}_count"] == 0
