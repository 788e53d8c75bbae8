"""Produces events to topics at the times of their timestamps."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.demo.events import Event

PARTITIONS: Final = 4
QUIET: Final = {"log_level": 2}
"""Keeps librdkafka from printing errors, which are raised anyway."""
_TOO_EARLY_S: Final = 0.005  # send what is due sooner now: waiting for each event costs more than producing it


def create_topics(bootstrap: str, topics: Iterable[str]) -> None:
    """Create the topics that do not exist yet."""
    admin = AdminClient({**QUIET, "bootstrap.servers": bootstrap})
    for topic, created in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics]).items():
        try:
            created.result(30)
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise KafkaException(f"{topic} cannot be created: {problem}") from problem


class Producing:
    """Produces events to their topics, and keeps the first delivery error."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
        # Partitions are chosen as Java's producer does: joined topics must use the same partitioner.
        self._producer = Producer({**QUIET, **settings, "partitioner": "murmur2_random"})
        self._problem: KafkaError | None = None
        self.stored: Counter[str] = Counter()
        """The number of events that were stored in each topic."""

    def run(self, events: Iterator[Event], stop: threading.Event) -> None:
        for topic, key, value, timestamp_ms in events:
            ahead_s = timestamp_ms / 1000 - time.time()
            if ahead_s > _TOO_EARLY_S and stop.wait(ahead_s):
                return
            self._producer.produce(topic, value, key, timestamp=timestamp_ms, on_delivery=self._delivered)
            self._producer.poll(0)
            if stop.is_set():
                return

    def flush(self) -> None:
        if self._producer.flush(30):
            raise TimeoutError("the broker did not store all events within 30 s")
        if self._problem is not None:
            raise KafkaException(self._problem)

    def _delivered(self, problem: KafkaError | None, message: Message) -> None:
        if problem is not None:
            self._problem = self._problem or problem
        else:
            self.stored[message.topic() or ""] += 1
