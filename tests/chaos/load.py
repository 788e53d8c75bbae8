"""Producers and readers that go on while the broker beneath them is killed and started again.

`Producers` are librdkafka's: an idempotent one and one with acks=1. `Witness` reads with a client of its own what is
visible, and notes any offset whose record changed or vanished and any high watermark that went back.
"""

import threading
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

from kaspar.records import Record
from tests.chaos.actors.membership import NO_SETTINGS
from tests.chaos.ledger import Ledger, value_of
from tests.peers.background import Background
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

IDEMPOTENT = "idempotent"
PLAIN = "plain"
_KIND_OF_PRODUCER: dict[str, dict[str, str | int | bool]] = {
    IDEMPOTENT: {"enable.idempotence": True},
    PLAIN: {"acks": 1, "retries": 1000, "max.in.flight.requests.per.connection": 1},
}
_IMPATIENT: dict[str, str | int] = {
    # Otherwise a client that has lost its only broker asks for metadata once a second, which is as often as we kill.
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 100,
    "linger.ms": 1,
    "message.timeout.ms": 90_000,
    "log_level": 0,
}
_MOST_WAITING = 200  # records of one producer that are not acknowledged yet


class Producers:
    """Threads that write to every partition of a topic until they are stopped."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        record_bytes: int = 100,
        kinds: Iterable[str] = (IDEMPOTENT, PLAIN),
        client: Mapping[str, str | int] = NO_SETTINGS,
    ) -> None:
        self.ledger = Ledger(idempotent=frozenset({IDEMPOTENT}))
        self.problems: list[str] = []
        self._settings = {"bootstrap.servers": bootstrap, **_IMPATIENT, **client}
        self._topic = topic
        self._partitions = partitions
        self._record_bytes = record_bytes
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._produce, args=(kind,)) for kind in kinds]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends with every record acknowledged or given up; the broker should be running."""
        self.finish()

    def finish(self) -> None:
        """May be called before the block ends, and again."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for_acknowledgements(self) -> None:
        """Return when the producers are at work: a kill while they still connect tries little."""
        before = self.ledger.count
        wait_until(lambda: self.ledger.count > before, "records are acknowledged", seconds=60)

    def _produce(self, kind: str) -> None:
        producer = Producer({**self._settings, **_KIND_OF_PRODUCER[kind]})
        number = 0
        while not self._stop.is_set():
            for partition in range(self._partitions):
                value = value_of(kind, partition, number, size=self._record_bytes)
                producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
            number += 1
            producer.poll(0)
            while len(producer) > _MOST_WAITING and not self._stop.is_set():
                producer.poll(0.01)
        if producer.flush(90):
            self.problems.append(f"the {kind} producer has {len(producer)} records that were never acknowledged")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.problems.append(f"{message.value()!r}: {error}")
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert isinstance(value, bytes)
        self.ledger.acknowledge(partition, offset, value)


class Witness(Background):
    """Reads each partition again and again, and remembers what it saw."""

    def __init__(self, port: int, topic: str, partitions: int) -> None:
        super().__init__()
        self.problems: list[str] = []
        self._port = port
        self._topic = topic
        self._seen: dict[int, list[bytes]] = {partition: [] for partition in range(partitions)}
        self._high_watermarks = dict.fromkeys(range(partitions), 0)

    @property
    def seen_count(self) -> int:
        return sum(map(len, self._seen.values()))

    def _work(self) -> None:
        while not self._stop.is_set() and not self.problems:
            try:
                with RawClient(self._port, timeout=5) as client:
                    while not self._stop.is_set() and not self.problems:
                        for partition in self._seen:
                            self._look(client, partition)
            except OSError:
                self._stop.wait(0.01)  # the broker is down just now

    def _look(self, client: RawClient, partition: int) -> None:
        seen = self._seen[partition]
        read = client.fetch(self._topic, len(seen), partition=partition, max_wait_ms=5)
        if read.error_code:
            self.problems.append(f"reading partition {partition} at {len(seen)}, seen before: error {read.error_code}")
            return
        before = self._high_watermarks[partition]
        if read.high_watermark < before:
            self.problems.append(
                f"the high watermark of partition {partition} went back from {before} to {read.high_watermark}"
            )
        self._high_watermarks[partition] = read.high_watermark
        for record in read.records:
            if record.offset != len(seen) or record.value is None:
                self.problems.append(f"offset {record.offset} of partition {partition} came where {len(seen)} should")
                return
            seen.append(record.value)

    def check(self, found: dict[int, list[Record]]) -> None:
        """Everything that was ever seen is still there, at its offset."""
        assert not self.problems, self.problems
        for partition, seen in self._seen.items():
            now = [record.value for record in found[partition][: len(seen)]]
            assert now == seen, f"what was read from partition {partition} before is not what is there now"


def read_everything(client: RawClient, topic: str, partitions: int) -> dict[int, list[Record]]:
    return {partition: list(client.read_all(topic, partition=partition)) for partition in range(partitions)}
