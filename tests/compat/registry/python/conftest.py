"""Both forms of confluent-kafka-python's client, and records that pass through the broker."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.registry.python.flavours import FLAVOURS, Flavour
from tests.compat.registry.python.passing import Pass
from tests.integration.registry.instances import Registry
from tests.peers.brokers import Brokers

POLL_SECONDS = 15.0


@pytest.fixture(scope="session")
def flavours(registry: Registry) -> Iterator[Callable[[str], Flavour]]:
    """By name, each made once: a client of httpx takes its time to start."""
    made: dict[str, Flavour] = {}

    def flavour(name: str) -> Flavour:
        if name not in made:
            made[name] = FLAVOURS[name](registry.url)
        return made[name]

    yield flavour
    for each in made.values():
        each.close()


@pytest.fixture(params=FLAVOURS)
def flavour(request: pytest.FixtureRequest, url: str, flavours: Callable[[str], Flavour]) -> Flavour:
    made = flavours(request.param)
    made.client.clear_caches()
    return made


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
