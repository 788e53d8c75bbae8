"""A simulated web shop, which produces the clicks and orders of the examples.

A visitor looks at a few pages, mostly of one kind of goods, sometimes puts something into the cart and sometimes buys
it; robots read everything and buy nothing. There is more traffic by day than by night. Everything follows from a seed,
except for the times, which come from a clock.
"""

import itertools
import json
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

CLICK = "at TIMESTAMP, user STRING, page STRING, action STRING, agent STRING"
ORDER = "id STRING, at TIMESTAMP, customer INT, items INT, amount DECIMAL(10,2)"
PARTITIONS = 4

_GOODS = ("shoes", "coats", "hats", "bags", "socks")
_ACTIONS = ("view", "view", "view", "view", "cart", "buy")
_ROBOT_ONE_IN = 8
_FIRST_FEW = 20
_TICK_SECONDS = 0.05
_QUIET = {"log_level": 2}  # errors are raised, and need not be printed, too

Clock = Callable[[], datetime]
Event = tuple[str, datetime, dict[str, Any]]  # key, time, value


def now() -> datetime:
    return datetime.now(UTC)


def fast_clock(days: int, seconds: float) -> Clock:
    """A clock that runs through the last `days` in the next `seconds`, and then stands still."""
    began, start = time.monotonic(), now() - timedelta(days=days)
    return lambda: start + timedelta(days=days) * min(1.0, (time.monotonic() - began) / seconds)


@dataclass
class Visitor:
    name: str
    agent: str
    goods: str
    pages_left: int


@dataclass
class Clicks:
    """What visitors do, one click after the other."""

    chance: random.Random
    clock: Clock = now
    visitors: list[Visitor] = field(default_factory=list)

    def __iter__(self) -> Iterator[Event]:
        while True:
            if len(self.visitors) < 30:
                self.visitors.append(self._visitor())
            visitor = self.chance.choice(self.visitors)
            yield self._click(visitor)
            visitor.pages_left -= 1
            if visitor.pages_left == 0:
                self.visitors.remove(visitor)

    def _visitor(self) -> Visitor:
        robot = self.chance.randrange(_ROBOT_ONE_IN) == 0
        name = f"robot-{self.chance.randrange(5)}" if robot else f"user-{self.chance.randrange(10_000):04}"
        pages = self.chance.randint(20, 60) if robot else self.chance.randint(1, 12)
        return Visitor(name, "robot" if robot else "browser", self.chance.choice(_GOODS), pages)

    def _click(self, visitor: Visitor) -> Event:
        goods = visitor.goods if self.chance.random() < 0.7 else self.chance.choice(_GOODS)
        action = "view" if visitor.agent == "robot" else self.chance.choice(_ACTIONS)
        at = self.clock()
        page = f"/{goods}/{self.chance.randint(1, 9)}"
        value = {"at": _text(at), "user": visitor.name, "page": page, "action": action, "agent": visitor.agent}
        return visitor.name, at, value


@dataclass
class Orders:
    """What customers order. `customers` may grow meanwhile."""

    chance: random.Random
    customers: list[int]
    clock: Clock = now

    def __iter__(self) -> Iterator[Event]:
        count = 0
        while True:
            count += 1
            customer, at = self.chance.choice(self.customers), self.clock()
            items = self.chance.randint(1, 5)
            cents = sum(self.chance.randint(199, 9_999) for _ in range(items))
            value = {"id": f"order-{count:06}", "at": _text(at), "customer": customer, "items": items}
            yield str(customer), at, {**value, "amount": f"{cents // 100}.{cents % 100:02}"}


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def busy(at: datetime) -> float:
    """How much of the rate there is at this time of day: a fifth by night, all of it in the afternoon."""
    hour = at.hour + at.minute / 60
    return 0.6 - 0.4 * math.cos((hour - 3) / 24 * 2 * math.pi)


def create_topic(bootstrap: str, topic: str) -> None:
    """If it is not there yet."""
    admin = AdminClient({**_QUIET, "bootstrap.servers": bootstrap})
    try:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    except KafkaException as problem:
        if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


class Traffic:
    """Events that flow into a topic, `rate` a second when it is busiest, from a thread of its own, within a `with`."""

    def __init__(self, bootstrap: str, topic: str, events: Clicks | Orders, rate: int) -> None:
        self.sent = 0
        self._topic = topic
        self._events = events
        self._rate = rate
        self._producer = Producer(
            {**_QUIET, "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20}
        )
        self._problem: KafkaError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)

    def _run(self) -> None:
        due, last = 0.0, time.monotonic()
        stream = iter(self._events)
        while not self._stop.wait(_TICK_SECONDS):
            moment = time.monotonic()
            due += (moment - last) * self._rate * busy(self._events.clock())
            last = moment
            while due >= 1:
                self.send(next(stream))
                due -= 1
            self._producer.poll(0)

    def send(self, event: Event) -> None:
        key, at, value = event
        milliseconds = int(at.timestamp() * 1000)
        self._producer.produce(self._topic, json.dumps(value), key, timestamp=milliseconds, on_delivery=self._delivered)
        self.sent += 1

    def send_some(self) -> None:
        """A first few, so that there is something to read."""
        for event in itertools.islice(self._events, _FIRST_FEW):
            self.send(event)
        self.flush()

    def flush(self) -> None:
        """Returns when all that was sent is stored."""
        if self._producer.flush(30):
            raise TimeoutError(f"the broker has not taken all events of {self._topic} within 30 s")
        if self._problem is not None:
            raise KafkaException(self._problem)

    def _delivered(self, problem: KafkaError | None, message: Message) -> None:
        self._problem = self._problem or problem

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self.flush()
