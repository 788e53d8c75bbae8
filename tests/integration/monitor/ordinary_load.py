"""Load as a cluster has it every day: uneven producers, transactions, consumers of both protocols that come and go, and
a query that commits once in a while. Everything keeps up."""

import random
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import Client
from kaspar.client.offsets import commit_offsets, offsets_at

PLAIN: Final = "orders"
TRANSACTIONAL: Final = "payments"
PARTITIONS: Final = 4
_LATEST: Final = -1
_COMMITS_MS: Final = 500
"""In a window of ten rounds of a second, as every five seconds in rounds of ten."""


class OrdinaryLoad:
    """Context manager. What goes wrong in a thread is raised at the end."""

    def __init__(self, bootstrap_servers: str, seed: int) -> None:
        self._servers = bootstrap_servers
        self._seed = seed
        self._stop = threading.Event()
        self._problems: list[BaseException] = []
        self.rebalances = 0
        self.written = 0
        jobs: list[Callable[[random.Random], None]] = [
            self._write,
            self._write_in_transactions,
            lambda rng: self._read(rng, "classic-readers", "classic", PLAIN, steady=True),
            lambda rng: self._read(rng, "classic-readers", "classic", PLAIN, steady=False),
            lambda rng: self._read(rng, "kip-848-readers", "consumer", PLAIN, steady=True),
            lambda rng: self._read(rng, "kip-848-readers", "consumer", PLAIN, steady=False),
            lambda rng: self._read(rng, "committed-readers", "classic", TRANSACTIONAL, steady=True),
            self._query,
        ]
        self._threads = [
            threading.Thread(target=self._run, args=(job, random.Random(seed + number)), name=f"load-{number}")
            for number, job in enumerate(jobs)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
        if self._problems and error is None:
            raise self._problems[0]

    def _run(self, job: Callable[[random.Random], None], rng: random.Random) -> None:
        try:
            job(rng)
        except BaseException as problem:
            self._problems.append(problem)

    def _write(self, rng: random.Random) -> None:
        """Bursts, lulls, and steady times."""
        producer = Producer({"bootstrap.servers": self._servers, "log_level": 0, "linger.ms": 5})
        while not self._stop.wait(0.02):
            for _ in range(rng.choice((0, 1, 5, 5, 5, 40))):
                producer.produce(PLAIN, b"order", partition=rng.randrange(PARTITIONS))
                self.written += 1
            producer.poll(0)
            if rng.random() < 0.002:
                self._stop.wait(rng.uniform(1, 5))
        producer.flush(10)

    def _write_in_transactions(self, rng: random.Random) -> None:
        producer = Producer({"bootstrap.servers": self._servers, "transactional.id": "payments", "log_level": 0})
        producer.init_transactions(30)
        while not self._stop.is_set():
            producer.begin_transaction()
            for _ in range(rng.randrange(1, 50)):
                producer.produce(TRANSACTIONAL, b"payment", partition=rng.randrange(PARTITIONS))
            producer.flush(10)
            self._stop.wait(rng.choice((0.01, 0.1, 0.1, 4.0)))
            if rng.random() < 0.2:
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)

    def _read(self, rng: random.Random, group: str, protocol: str, topic: str, *, steady: bool) -> None:
        """A member that stays, or one that comes and goes, with a rebalance each time."""
        while not self._stop.is_set():
            settings = {
                "bootstrap.servers": self._servers,
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": _COMMITS_MS,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
            if protocol == "classic":
                settings["heartbeat.interval.ms"] = 300
            consumer = Consumer(settings)
            consumer.subscribe([topic])
            until = time.monotonic() + (10**9 if steady else rng.uniform(5, 15))
            while not self._stop.is_set() and time.monotonic() < until:
                _check(consumer.consume(500, 0.1))
            consumer.close()
            self.rebalances += 1
            self._stop.wait(rng.uniform(2, 8))

    def _query(self, rng: random.Random) -> None:
        """As a Spark query of a micro-batch every two or three seconds commits."""
        partitions = [TopicPartition(PLAIN, number) for number in range(PARTITIONS)]
        client = Client(self._servers)
        try:
            while not self._stop.wait(rng.uniform(2, 3)):
                commit_offsets(client, "query", offsets_at(client, partitions, _LATEST))
        finally:
            client.close()


def _check(messages: list) -> None:  # type: ignore[type-arg]
    for message in messages:
        error = message.error()
        if error is not None and error.code() not in (KafkaError._PARTITION_EOF, KafkaError._TRANSPORT):
            raise KafkaException(error)
