"""Stock clients that see themselves throttled, and go on near their quota; and Kafka's kafka-configs, which sets it.

Quotas are measured over three windows here, so a client may send two seconds' worth at once before it is throttled.
Times have generous bounds: a busy machine is slower, and never faster than the quota.
"""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, ThrottleEvent
from confluent_kafka.admin import AdminClient, NewTopic

from tests.peers.kafka_tools import KafkaTools
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker

CONFIGS = "kafka.admin.ConfigCommand"
WINDOWS = 3
RATE = 200_000
AMOUNT = 1_200_000
AT_ONCE = RATE * (WINDOWS - 1)
LEAST_S = (AMOUNT - AT_ONCE) / RATE * 0.7
MOST_S = 60.0
RECORD = b"x" * 10_000


@pytest.fixture(scope="module")
def tools() -> Iterator[KafkaTools]:
    with unless_missing(KafkaTools) as running:
        yield running


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedBroker]:
    overrides = {"quota.window.num": str(WINDOWS), "controller.quota.window.num": str(WINDOWS)}
    with ObservedBroker(tmp_path_factory.mktemp("quotas"), overrides=overrides) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic("t", 1)])["t"].result(30)
        yield running


class Configs:
    """kafka-configs."""

    def __init__(self, tools: KafkaTools, broker: ObservedBroker) -> None:
        self._tools = tools
        self._bootstrap = broker.bootstrap

    def __call__(self, *arguments: str) -> str:
        done = self._tools.run(CONFIGS, "--bootstrap-server", self._bootstrap, *arguments)
        assert done.code == 0, done.errors + done.output
        return done.output

    def limit(self, client_id: str, key: str) -> None:
        self("--alter", "--add-config", f"{key}={RATE}", "--entity-type", "clients", "--entity-name", client_id)


@pytest.fixture
def configs(tools: KafkaTools, broker: ObservedBroker) -> Configs:
    return Configs(tools, broker)


def test_kafka_configs_sets_shows_and_removes_quotas_of_every_kind(configs: Configs) -> None:
    entities = {
        "clients": ("--entity-type", "clients", "--entity-name", "shown"),
        "default clients": ("--entity-type", "clients", "--entity-default"),
        "users": ("--entity-type", "users", "--entity-default"),
        "both": ("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-default"),
        "ips": ("--entity-type", "ips", "--entity-name", "10.1.2.3"),
        "default ips": ("--entity-type", "ips", "--entity-default"),
    }
    for number, (name, entity) in enumerate(entities.items(), 1_000_000):
        key = "connection_creation_rate" if "ips" in name else "producer_byte_rate"
        configs("--alter", "--add-config", f"{key}={number}", *entity)
        assert f"{key}={number}.0" in configs("--describe", *entity), name
        configs("--alter", "--delete-config", key, *entity)
        assert f"{key}=" not in configs("--describe", *entity), name


def test_a_producer_of_librdkafka_is_throttled_to_its_quota(configs: Configs, broker: ObservedBroker) -> None:
    client = "librdkafka-producer"
    configs(
        "--alter", "--add-config", f"producer_byte_rate={RATE}", "--entity-type", "clients", "--entity-name", client
    )
    throttled: list[float] = []

    def note(event: ThrottleEvent) -> None:
        throttled.append(event.throttle_time)

    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "client.id": client, "batch.size": 50_000, "throttle_cb": note}
    )
    started = time.monotonic()
    for _ in range(AMOUNT // len(RECORD)):
        producer.produce("t", RECORD)
        producer.poll(0)
    assert producer.flush(MOST_S) == 0
    took = time.monotonic() - started
    producer.poll(0)
    assert LEAST_S <= took <= MOST_S
    assert max(throttled, default=0) > 0
    labels = f'{{user="",client_id="{client}"}}'
    metrics = broker.metrics()
    assert 0 < metrics[f"kafka_server_produce_byte_rate{labels}"] < RATE * 2
    assert metrics[f"kafka_server_produce_throttle_time{labels}"] > 0


def test_a_consumer_of_librdkafka_is_throttled_and_reads_everything(configs: Configs, broker: ObservedBroker) -> None:
    client = "librdkafka-consumer"
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.size": 50_000})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("read", 1)])["read"].result(30)
    count = AMOUNT // len(RECORD)
    for _ in range(count):
        producer.produce("read", RECORD)
    assert producer.flush(MOST_S) == 0
    configs(
        "--alter", "--add-config", f"consumer_byte_rate={RATE}", "--entity-type", "clients", "--entity-name", client
    )
    throttled: list[float] = []
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "client.id": client,
            "group.id": "throttled",
            "auto.offset.reset": "earliest",
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )
    consumer.subscribe(["read"])
    started, seen = time.monotonic(), 0
    while seen < count and time.monotonic() - started < MOST_S:
        message = consumer.poll(1.0)
        seen += message is not None and message.error() is None
    took = time.monotonic() - started
    consumer.close()
    assert seen == count
    assert took >= LEAST_S
    assert max(throttled, default=0) > 0


def test_kafkas_performance_producer_reports_its_throttle_time(
    configs: Configs, tools: KafkaTools, broker: ObservedBroker
) -> None:
    client = "java-producer"
    configs(
        "--alter", "--add-config", f"producer_byte_rate={RATE}", "--entity-type", "clients", "--entity-name", client
    )
    properties = (f"bootstrap.servers={broker.bootstrap}", f"client.id={client}", "batch.size=50000")
    size = ("--num-records", str(AMOUNT // 1000), "--record-size", "1000", "--throughput", "-1")
    started = time.monotonic()
    done = tools.run(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "t", *size, "--print-metrics", "--producer-props", *properties),
    )
    assert done.code == 0, done.errors
    assert time.monotonic() - started >= LEAST_S
    (line,) = [line for line in done.output.splitlines() if "produce-throttle-time-max" in line]
    assert float(line.rpartition(":")[2]) > 0


def test_an_administrator_over_the_quota_of_mutations_waits_and_gets_its_topics(
    configs: Configs, tools: KafkaTools, broker: ObservedBroker
) -> None:
    user = ("--entity-type", "users", "--entity-default")
    configs("--alter", "--add-config", "controller_mutation_rate=4", *user)
    try:
        started = time.monotonic()
        for number in range(4):  # twelve tokens at first, four a second
            done = tools.run(
                "org.apache.kafka.tools.TopicCommand",
                *("--bootstrap-server", broker.bootstrap, "--create", "--topic", f"made-{number}"),
                *("--partitions", "7", "--replication-factor", "1"),
            )
            # The command does not retry by itself: it reports the code, and the next one succeeds once tokens are back.
            if done.code:
                assert "throttl" in (done.output + done.errors).lower(), done
                break
        else:
            pytest.fail(f"nothing was refused in {time.monotonic() - started:.1f} s")
    finally:
        configs("--alter", "--delete-config", "controller_mutation_rate", *user)
