"""A compacted topic at work: what people earn, watched while it shrinks to one record a person.

    python examples/salaries.py                                       with a broker of its own
    python examples/salaries.py --bootstrap-server localhost:9092     with yours, Kaspar or Apache Kafka

The key of a record is the person, its value the salary. Every raise is one more record, so the log grows; the cleaner
takes away what was replaced, so the log shrinks. A person who leaves gets a record without a value, a tombstone, and
in the end nothing of that person is left. docs/compaction.md explains each step.
"""

import argparse
import contextlib
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.client import Client
from kaspar.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kaspar.testing import Broker

TOPIC = "salaries"
SEGMENT_MS = 500
TOPIC_CONFIG = {
    "cleanup.policy": "compact",
    "segment.ms": str(SEGMENT_MS),  # a segment is closed by the first record that comes so long after its first
    "min.cleanable.dirty.ratio": "0.001",  # clean as soon as there is anything to clean
    "delete.retention.ms": "500",  # how long a cleaned log still keeps tombstones
}
BROKER_CONFIG = {"log.cleaner.backoff.ms": "200"}  # look five times a second whether there is something to clean
LOOK_SECONDS = 0.5
LEAVER_ONE_IN = 5
PATIENCE_SECONDS = 180.0


@dataclass
class Company:
    """The employees and their salaries: the expected final state of the topic."""

    producer: Producer
    chance: random.Random
    salaries: dict[str, int] = field(default_factory=dict)
    hired: int = 0

    def hire(self) -> None:
        self.hired += 1
        self._pay(f"employee-{self.hired:04}", self.chance.randrange(30_000, 90_000, 500))

    def raise_somebody(self) -> None:
        person = self.chance.choice(list(self.salaries))
        self._pay(person, self.salaries[person] + self.chance.randrange(100, 2_000, 100))

    def let_somebody_go(self) -> None:
        person = self.chance.choice(list(self.salaries))
        del self.salaries[person]
        self._write(person, None)

    def _pay(self, person: str, salary: int) -> None:
        self.salaries[person] = salary
        self._write(person, str(salary))

    def _write(self, person: str, salary: str | None) -> None:
        self.producer.produce(TOPIC, key=person, value=salary, partition=0, on_delivery=_check_delivery)
        self.producer.poll(0)


def _check_delivery(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        raise KafkaException(error)


@dataclass(frozen=True)
class Look:
    """What the log holds at one moment: its records in order, and its size on disk."""

    records: list[tuple[str, int | None]]
    size: int

    @property
    def people(self) -> dict[str, int]:
        """The last value for each person, without the deleted ones."""
        last = dict(self.records)
        return {person: salary for person, salary in last.items() if salary is not None}

    @property
    def tombstones(self) -> int:
        return sum(salary is None for _, salary in self.records)


def look(bootstrap: str) -> Look:
    """Read the whole topic, as any consumer that starts at its beginning would."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    records: list[tuple[str, int | None]] = []
    try:
        while True:
            for message in consumer.consume(1000, timeout=1.0):
                problem = message.error()
                if problem is not None:
                    if problem.code() == KafkaError._PARTITION_EOF:
                        return Look(records, _size_on_disk(bootstrap))
                    raise KafkaException(problem)
                key, value = message.key(), message.value()
                assert isinstance(key, bytes)
                records.append((key.decode(), None if value is None else int(value)))
    finally:
        consumer.close()


def _size_on_disk(bootstrap: str) -> int:
    """What `kafka-log-dirs` reports. confluent-kafka has no call for it, so this sends the request itself."""
    request = DescribeLogDirsRequest(topics=(DescribableLogDirTopic(topic=TOPIC, partitions=(0,)),))
    with Client(bootstrap) as client:
        response = client.request(request, DescribeLogDirsResponse)
    partitions = (part for found in response.results for topic in found.topics for part in topic.partitions)
    return sum(partition.partition_size for partition in partitions)


def show(moment: str, seen: Look) -> None:
    deleted = f", {seen.tombstones} tombstones" if seen.tombstones else ""
    print(f"{moment:24} {len(seen.records):>7,} records  {seen.size:>10,} bytes  {len(seen.people):>4} people{deleted}")
    sys.stdout.flush()


def run(bootstrap: str, *, people: int, changes: int, rate: int, seed: int) -> bool:
    """Whether the topic came down to one record a person, each with the last salary."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=TOPIC_CONFIG)])[TOPIC].result(30)
    company = Company(Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True}), random.Random(seed))
    for _ in range(people):
        company.hire()
    company.producer.flush()
    show("hired", look(bootstrap))

    began = looked = time.monotonic()
    for done in range(1, changes + 1):
        company.raise_somebody()
        ahead = done / rate - (time.monotonic() - began)
        if ahead > 0:
            time.sleep(ahead)
        if time.monotonic() - looked > LOOK_SECONDS:
            company.producer.flush()
            show(f"{done:,} raises", look(bootstrap))
            looked = time.monotonic()
    for _ in range(people // LEAVER_ONE_IN):
        company.let_somebody_go()
    company.producer.flush()
    show(f"{people // LEAVER_ONE_IN} people left", look(bootstrap))
    return _wait_until_clean(bootstrap, company)


def _wait_until_clean(bootstrap: str, company: Company) -> bool:
    """The last segment is never cleaned, and only a record that comes later closes it: so a few more people are hired.

    They are new, so that their records replace nobody's: what they were written for is also all that is left of them.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        time.sleep(SEGMENT_MS * 1.2 / 1000)
        company.hire()
        company.producer.flush()
        time.sleep(LOOK_SECONDS)
        seen = look(bootstrap)
        show(f"{company.hired:,} were ever hired", seen)
        if seen.people != company.salaries:
            print("The log does not say what people earn.", file=sys.stderr)
            return False
        if len(seen.records) == len(seen.people):
            count = len(seen.records)
            print(f"\nOne record a person: {count} records, {len(seen.people)} people, the last salary of each.")
            return True
    print(f"The log still holds replaced records after {PATIENCE_SECONDS:.0f} s.", file=sys.stderr)
    return False


@contextlib.contextmanager
def _broker(bootstrap: str | None) -> Iterator[str]:
    if bootstrap is not None:
        yield bootstrap
        return
    with Broker(process=True, overrides=BROKER_CONFIG) as broker:
        yield broker.bootstrap_servers


def main() -> int:
    parser = argparse.ArgumentParser(description="A topic of salaries shrinks to one record a person.")
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="a broker that runs (default: one of its own)")
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--changes", type=int, default=20_000, help="raises, spread over all people")
    parser.add_argument("--rate", type=int, default=4_000, help="raises a second")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with _broker(arguments.bootstrap_server) as bootstrap:
        numbers = {name: getattr(arguments, name) for name in ("people", "changes", "rate", "seed")}
        return 0 if run(bootstrap, **numbers) else 1


if __name__ == "__main__":
    sys.exit(main())
