"""Topics for the tests of Spark: made, filled and read by a stock client, so that none of the data source is trusted.

topics = Topics(broker.bootstrap)
orders = topics.create(partitions=2)
topics.produce(orders, [Message(b"one", key=b"k", headers=(("h", None),)), b"two"], codec="lz4")
topics.transact(orders, [b"three"], commit=False)
assert topics.values(orders) == [b"one", b"two"]
"""

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka import Message as Delivered
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.peers.wire import leads

TIMEOUT_SECONDS = 30.0
LONGEST_TRANSACTION_MS = "900000"  # the brokers' default limit
_MOST_WAITING = 50_000  # half of what librdkafka's queue has room for
_POLL_SECONDS = 0.01
_PAUSE_PER_LOOK = 4  # a test that looks again and again takes little from what it waits for
_LONGEST_PAUSE_SECONDS = 0.5
_END_MS = 10  # a broker tells by an empty response, which it holds back for so long, that an end is reached
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Message:
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = 0
    timestamp_ms: int = 0  # 0: the time when it is produced


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as a consumer is given it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: tuple[int, int]  # its type and milliseconds


class Topics:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    # The topics themselves

    def create(self, *, partitions: int = 1, config: Mapping[str, str] | None = None, name: str | None = None) -> str:
        """Returns when every partition has a leader."""
        name = name or f"table-{next(_numbers)}"
        topic = NewTopic(name, partitions, -1, config=dict(config or {}))
        self._admin.create_topics([topic], request_timeout=TIMEOUT_SECONDS)[name].result()
        self._wait_for_leaders(name, partitions)
        return name

    def grow(self, name: str, partitions: int) -> None:
        """To so many partitions."""
        self._admin.create_partitions([NewPartitions(name, partitions)])[name].result()
        self._wait_for_leaders(name, partitions)

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name], request_timeout=TIMEOUT_SECONDS)[name].result()
        wait_until(lambda: name not in self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics, f"{name} is gone")

    def delete_records(self, name: str, before: int, *, partition: int = 0) -> None:
        """All records before this offset."""
        place = TopicPartition(name, partition, before)
        self._admin.delete_records([place], request_timeout=TIMEOUT_SECONDS)[place].result()

    def groups(self) -> list[str]:
        """The names of all consumer groups."""
        listed = self._admin.list_consumer_groups(request_timeout=TIMEOUT_SECONDS).result()
        return [each.group_id for each in listed.valid]

    def _wait_for_leaders(self, name: str, partitions: int) -> None:
        wait_until(lambda: self._have_leaders(name, partitions), f"{name} has leaders")

    def _have_leaders(self, name: str, partitions: int) -> bool:
        cluster = self._admin.list_topics(timeout=TIMEOUT_SECONDS)
        if name not in cluster.topics or len(cluster.topics[name].partitions) < partitions:
            return False
        led: dict[int, list[int]] = defaultdict(list)
        for partition in cluster.topics[name].partitions.values():
            led[partition.leader].append(partition.id)
        return led.keys() <= cluster.brokers.keys() and all(
            leads(str(cluster.brokers[leader].host), int(cluster.brokers[leader].port or 0), name, its)
            for leader, its in led.items()
        )

    def partition_count(self, name: str) -> int:
        return len(self._admin.list_topics(name, timeout=TIMEOUT_SECONDS).topics[name].partitions)

    # Writing

    def produce(self, name: str, messages: Iterable[Message | bytes | None], *, codec: str = "none") -> None:
        """Returns when all are acknowledged. A value alone goes to partition 0."""
        producer = self._producer({"compression.type": codec})
        _produce(producer, name, messages)
        producer.flush(TIMEOUT_SECONDS)

    def transact(self, name: str, messages: Iterable[Message | bytes | None], *, commit: bool) -> None:
        """Produce all of them in one transaction, and end it."""
        producer = self._producer({"transactional.id": f"transactional-{next(_numbers)}"})
        producer.init_transactions(TIMEOUT_SECONDS)
        producer.begin_transaction()
        _produce(producer, name, messages)
        producer.flush(TIMEOUT_SECONDS)  # an abort drops what was not sent, and then there would be nothing to skip
        if commit:
            producer.commit_transaction(TIMEOUT_SECONDS)
        else:
            producer.abort_transaction(TIMEOUT_SECONDS)

    def open_transaction(self, name: str, messages: Iterable[Message | bytes | None]) -> Producer:
        """A transaction that was written and not ended; `abort_transaction` or `commit_transaction` ends it."""
        producer = self._producer(
            {"transactional.id": f"transactional-{next(_numbers)}", "transaction.timeout.ms": LONGEST_TRANSACTION_MS}
        )
        producer.init_transactions(TIMEOUT_SECONDS)
        producer.begin_transaction()
        _produce(producer, name, messages)
        producer.flush(TIMEOUT_SECONDS)
        return producer

    def _producer(self, settings: Mapping[str, str]) -> Producer:
        # An idempotent one, so that batches keep their order.
        common: dict[str, str | int] = {
            "bootstrap.servers": self.bootstrap,
            "enable.idempotence": "true",
            "log_level": 0,
        }
        return Producer({**common, **settings})

    # Reading

    def read(self, name: str, *, isolation_level: str = "read_committed") -> list[Stored]:
        """All that a consumer is given from the start to the present end, by partition and offset."""
        settings: dict[str, str | int | bool] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": "unused: partitions are assigned by hand",
            "isolation.level": isolation_level,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": _END_MS,
            "log_level": 0,
        }
        consumer = Consumer(settings)
        try:
            partitions = consumer.list_topics(name, timeout=TIMEOUT_SECONDS).topics[name].partitions
            _wait_for_logs(consumer, name, partitions)
            consumer.assign([TopicPartition(name, partition, OFFSET_BEGINNING) for partition in partitions])
            return sorted(_until_the_ends(consumer, set(partitions)), key=lambda each: (each.partition, each.offset))
        finally:
            consumer.close()

    def values(self, name: str, *, isolation_level: str = "read_committed") -> list[bytes | None]:
        return [record.value for record in self.read(name, isolation_level=isolation_level)]


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = TIMEOUT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    look = time.monotonic()
    while not condition():
        now = time.monotonic()
        assert now < deadline, f"not within {seconds:.0f} s: {what}"
        pause.wait(min(max(_POLL_SECONDS, _PAUSE_PER_LOOK * (now - look)), _LONGEST_PAUSE_SECONDS))
        look = time.monotonic()


def _produce(producer: Producer, name: str, messages: Iterable[Message | bytes | None]) -> None:
    def delivered(error: KafkaError | None, message: Delivered) -> None:
        if error is not None:
            raise KafkaException(error)

    for each in messages:
        message = each if isinstance(each, Message) else Message(each)
        producer.produce(
            name,
            message.value,
            message.key,
            partition=message.partition,
            timestamp=message.timestamp_ms,
            headers=list(message.headers),
            on_delivery=delivered,
        )
        producer.poll(0)
        while len(producer) >= _MOST_WAITING:
            producer.poll(_POLL_SECONDS)


def _wait_for_logs(consumer: Consumer, name: str, partitions: Iterable[int]) -> None:
    """The metadata of a new topic may name partitions whose logs are not there yet, which the consumer would report as
    an error: it has no other place to begin."""

    def are_there() -> bool:
        try:
            for partition in partitions:
                consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=TIMEOUT_SECONDS)
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return False
        return True

    wait_until(are_there, f"the partitions of {name} have logs")


def _until_the_ends(consumer: Consumer, partitions: set[int]) -> Iterable[Stored]:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while partitions:
        for message in consumer.consume(1000, timeout=2 * _END_MS / 1000):
            partition, error = message.partition(), message.error()
            assert partition is not None
            if error is None:
                yield _stored(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                partitions.discard(partition)
            else:
                raise KafkaException(error)
        assert time.monotonic() < deadline, f"the ends of partitions {partitions} were not reached"


def _stored(message: Delivered) -> Stored:
    partition, offset, key, value = message.partition(), message.offset(), message.key(), message.value()
    assert partition is not None
    assert offset is not None
    assert key is None or isinstance(key, bytes)
    assert value is None or isinstance(value, bytes)
    headers: Any = message.headers() or ()
    return Stored(partition, offset, key, value, tuple(headers), message.timestamp())
