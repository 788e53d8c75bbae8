"""The demo's events: page views of a web site, produced at a steady rate."""

import itertools
import json
import random
import threading
import time

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.cli.demo_threads import PARTITIONS, TOPIC, Figures

PAGES = ("/", "/pricing", "/docs", "/docs/quickstart", "/blog", "/login", "/cart")
PAGE_WEIGHTS = (30, 8, 12, 9, 14, 6, 5)
COUNTRIES = ("DE", "FR", "IN", "JP", "BR", "US", "NG", "SE")


def create_topic(bootstrap: str, name: str) -> None:
    topic = NewTopic(name, num_partitions=PARTITIONS, replication_factor=1)
    # It has to live until the response is there. Its destructor would warn about events that were not polled.
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    admin.create_topics([topic])[name].result(10)


def produce(bootstrap: str, figures: Figures, stop: threading.Event, rate: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True})
    rng = random.Random()

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        figures.produced += 1
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        figures.end_offsets[partition] = offset + 1

    started = time.monotonic()
    for number in itertools.count():
        if stop.is_set():
            break
        page = rng.choices(PAGES, PAGE_WEIGHTS)[0]
        event = {"user": rng.randint(1, 5_000), "page": page, "country": rng.choice(COUNTRIES)}
        producer.produce(
            TOPIC,
            key=str(event["user"]),
            value=json.dumps(event),
            timestamp=int(time.time() * 1000),
            on_delivery=delivered,
        )
        producer.poll(0)
        ahead = (number + 1) / rate - (time.monotonic() - started)
        if ahead > 0.005:
            stop.wait(ahead)
    producer.flush(10)
