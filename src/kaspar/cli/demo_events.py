"""The demo's events: views of a web site's pages, produced at an even rate; and what its threads tell each other."""

import itertools
import json
import random
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.base.errors import KasparError

TOPIC = "page-views"
PARTITIONS = 4
PAGES = ("/", "/pricing", "/docs", "/docs/quickstart", "/blog", "/login", "/cart")
FAVOUR = (30, 8, 12, 9, 14, 6, 5)  # how often a page is looked at, beside the others
COUNTRIES = ("DE", "FR", "IN", "JP", "BR", "US", "NG", "SE")


@dataclass
class Figures:
    """What the threads have done so far, and what the view draws."""

    produced: int = 0
    consumed: int = 0
    consumed_how: str = "consumed"
    end_offsets: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    read_offsets: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=2_000))
    last_value: str = ""


class Worker:
    """A thread beside the view. What goes wrong in it ends the demo, and is raised where the thread is waited for."""

    def __init__(self, stop: threading.Event, work: Callable[..., None], *arguments: Any) -> None:
        self._stop = stop
        self._work = work
        self._arguments = arguments
        self._problem: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._problem is not None and error is None:
            raise KasparError(f"the demo stopped: {self._problem}") from self._problem

    def _run(self) -> None:
        try:
            self._work(*self._arguments)
        except Exception as problem:  # the edge of the thread
            self._problem = problem
            self._stop.set()


def listen_to_signals(stop: threading.Event) -> None:
    def asked(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, asked)


def create_topic(bootstrap: str, name: str) -> None:
    topic = NewTopic(name, num_partitions=PARTITIONS, replication_factor=1)
    # It has to be there until the answer is; at its end it would tell of events that nobody has waited for.
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    admin.create_topics([topic])[name].result(10)


def produce(bootstrap: str, figures: Figures, stop: threading.Event, rate: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True})
    chance = random.Random()

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
        page = chance.choices(PAGES, FAVOUR)[0]
        event = {"user": chance.randint(1, 5_000), "page": page, "country": chance.choice(COUNTRIES)}
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
