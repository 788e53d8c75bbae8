"""Fills the topics, and detects when a program has processed everything: its group has committed the end offsets.

Throughput is measured from when the records are sent until they are processed. They are built before that, as whole
batches, so that sending them takes little of the machine from the programs.
"""

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, Producer
from confluent_kafka import TopicPartition as Where
from confluent_kafka.admin import AdminClient, OffsetSpec

from bench.programs import LoadError
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.producing import RawProducer
from kaspar.client.transactions import init_producer_id
from kaspar.records import Record, build_batch
from kaspar.records.core.column_writing import partition_of

Batches: TypeAlias = list[tuple[TopicPartition, bytearray]]

PARTITIONS = 2
WORDS_OF_A_LINE = 10
KEYS = 1_000
_RECORDS_OF_A_BATCH = 500  # about as many as in a producer's batch of 16 KiB
_MARKERS = 2  # control records at the end of a partition, which a group need not commit
_POLL_SECONDS = 0.05
_QUIET = {"log_level": 0}
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # comes without types


class Load:
    def __init__(self, bootstrap: str, seed: int = 1) -> None:
        self._bootstrap = bootstrap
        self._random = random.Random(seed)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, **_QUIET})
        self._admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
        self._time_ms = 1_700_000_000_000
        self.check: Callable[[], None] = lambda: None
        """Raises LoadError if the program has ended."""

    def lines(self, count: int, distinct_words: int) -> Iterator[tuple[str, str]]:
        """Lines of ten words, which are equally likely."""
        words = [f"word{number}" for number in range(distinct_words)]
        choose = self._random.choices
        for number in range(count):
            yield str(number), " ".join(choose(words, k=WORDS_OF_A_LINE))

    def random_events(self, count: int, distinct_keys: int) -> Iterator[tuple[str, str]]:
        for _ in range(count):
            yield f"key{self._random.randrange(distinct_keys)}", "event"

    def events(self, count: int, distinct_keys: int = KEYS) -> Iterator[tuple[str, str]]:
        """Events with this number of keys in turn."""
        keys = itertools.cycle([f"key{number}" for number in range(distinct_keys)])
        for _, key in zip(range(count), keys, strict=False):
            yield key, "event"

    def batches(self, topic: str, records: Iterator[tuple[str, str]]) -> Batches:
        """Batches of these records, with a millisecond of event time for ten, partitioned by Kafka's hash of keys."""
        filling: list[list[Record]] = [[] for _ in range(PARTITIONS)]
        built: Batches = []
        for number, (key, value) in enumerate(records):
            name = key.encode()
            partition = partition_of(name, PARTITIONS)
            filling[partition].append(Record(self._time_ms + number // 10, name, value.encode()))
            if len(filling[partition]) == _RECORDS_OF_A_BATCH:
                built.append((TopicPartition(topic, partition), build_batch(filling[partition])))
                filling[partition] = []
        built += [(TopicPartition(topic, number), build_batch(left)) for number, left in enumerate(filling) if left]
        self._time_ms += 1_000_000
        return built

    def send(self, batches: Batches) -> None:
        with Client(self._bootstrap) as client:
            producer_id = init_producer_id(client, None).producer
            with RawProducer(client, producer=producer_id) as producer:
                for topic in {where.topic for where, _ in batches}:
                    producer.partitions_of(topic)
                for where, batch in batches:
                    producer.send([(where, memoryview(batch))])
                producer.flush()

    def wait_until_processed(self, group: str, topics: set[str], timeout_s: float) -> None:
        """Wait until the group has committed the end of every partition that it reads, including those of `topics`."""
        deadline = time.monotonic() + timeout_s
        while not self._is_processed(group, topics):
            self.check()
            if time.monotonic() > deadline:
                raise LoadError(f"the program had not processed everything after {timeout_s:.0f} s")
            time.sleep(_POLL_SECONDS)

    def _is_processed(self, group: str, topics: set[str]) -> bool:
        asked = [ConsumerGroupTopicPartitions(group)]
        committed = self._admin.list_consumer_group_offsets(asked)[group].result().topic_partitions or []
        if not topics <= {each.topic for each in committed}:
            return False
        ends = self._admin.list_offsets(
            {Where(each.topic, each.partition): LATEST for each in committed},
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
        )
        latest = {(where.topic, where.partition): future.result().offset for where, future in ends.items()}
        return all(each.offset >= latest[each.topic, each.partition] - _MARKERS for each in committed)

    def latencies(self, rate: int, warm_up_s: float, seconds: float) -> float:
        """The median time, in milliseconds, from an event until a reader has its result."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "latency",
                "auto.offset.reset": "latest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 5,
                **_QUIET,
            }
        )
        consumer.assign([Where("results", partition) for partition in range(PARTITIONS)])
        measured: list[float] = []
        began = time.monotonic()
        next_event = began
        keys = itertools.cycle(range(10))
        while (now := time.monotonic()) < began + warm_up_s + seconds:
            if now >= next_event:
                next_event += 1 / rate
                self._producer.produce("lines", b"event", f"key{next(keys)}", timestamp=time.time_ns() // 1_000_000)
                self._producer.poll(0)
            message = consumer.poll(max(0.0, min(0.005, next_event - time.monotonic())))
            if message is not None and message.error() is None and now > began + warm_up_s:
                measured.append(time.time() * 1_000 - message.timestamp()[1])
        consumer.close()
        if len(measured) < seconds * rate / 2:
            raise LoadError(f"of {seconds * rate:.0f} events only {len(measured)} results were seen")
        return statistics.median(measured)
