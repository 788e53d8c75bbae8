"""The demo without Spark: a consumer reads the events, and the view shows rates, lag and end-to-end latency."""

import threading
import time
from collections import Counter
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, TopicPartition

from kaspar.demo.delays import Delays
from kaspar.demo.producing import PARTITIONS, QUIET
from kaspar.demo.screen import Heading, Screen
from kaspar.demo.threads import Worker


class Read:
    """What the consumer has read so far."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.last: dict[str, str] = {}
        self.delays = Delays()


def show_consumer(
    bootstrap: str, topics: Sequence[str], stored: Counter[str], stop: threading.Event, screen: Screen
) -> str:
    """Returns a sentence that says what was done. `stored` has the number of events in each topic."""
    read = Read()
    with Worker(stop, _consume, bootstrap, topics, read, stop):
        produced, consumed = stored.total(), 0
        for _ in screen.ticks():
            rates = f"produced {stored.total() - produced:>7,}/s   consumed {read.counts.total() - consumed:>7,}/s"
            produced, consumed = stored.total(), read.counts.total()
            headline = f"{rates}   latency {read.delays.middle_ms or 0:.0f} ms"
            details = [
                f"  {topic:<12}{read.counts[topic]:>9,} read   lag {max(0, stored[topic] - read.counts[topic]):>6,}   "
                f"{read.last.get(topic, '')}"
                for topic in topics
            ]
            in_a_line = " ".join(f"{topic} {read.counts[topic]:,}" for topic in topics)
            screen.draw([Heading(headline), *details], f"{headline}   {in_a_line}")
    return f"{read.counts.total():,} consumed"


def _consume(bootstrap: str, topics: Sequence[str], read: Read, stop: threading.Event) -> None:
    consumer = Consumer({**QUIET, "bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for topic in topics for partition in range(PARTITIONS)])
    while not stop.is_set():
        for message in consumer.consume(100, timeout=0.1):
            problem = message.error()
            if problem is not None:
                raise KafkaException(problem)
            topic, value = message.topic() or "", message.value()
            read.counts[topic] += 1
            read.last[topic] = value.decode() if isinstance(value, bytes) else ""
            read.delays.add(time.time() * 1000 - message.timestamp()[1])
    consumer.close()
