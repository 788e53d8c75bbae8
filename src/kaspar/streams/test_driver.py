"""Runs a topology on test records, without a broker and without Spark (Kafka's TopologyTestDriver).

    with TopologyTestDriver(builder.build()) as driver:
        lines = driver.create_input_topic("lines")
        counts = driver.create_output_topic("word-counts", value_serde=serdes.long())
        lines.pipe_input("key", "hello world")
        assert counts.read_key_values_to_map() == {"hello": 1, "world": 1}

All topics have one partition. Each record and all records that result from it are processed at once. The output is that
of a program in which each record is its own micro-batch: every update is emitted.
"""

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from kaspar.streams.errors import StreamsError
from kaspar.streams.operators.processors import Record
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.topology.context import Clock, Headers, Output, TaskSettings
from kaspar.streams.topology.open_stores import open_stores
from kaspar.streams.topology.plan import SubTopology, source_topics
from kaspar.streams.topology.task import MapSide, Row, ShuffledOutput, Task
from kaspar.streams.topology.topology import Topology
from kaspar.streams.windows import Duration, milliseconds

_DEFAULTS = {"application.id": "test", "bootstrap.servers": "test:0"}


class TopologyTestDriver:
    def __init__(self, topology: Topology, config: Mapping[str, Any] | None = None, *, wall_clock_ms: int = 0) -> None:
        """`config`: the settings of KafkaStreams that matter here; `wall_clock_ms`: the initial wall-clock time."""
        self.settings: TaskSettings = StreamsConfig.of({**_DEFAULTS, **(config or {})}).task_settings
        self.wall_clock_ms = wall_clock_ms
        self._written: dict[str, deque[Output]] = {}
        self._sequence: list[tuple[str, Output]] = []
        self._offsets: Counter[str] = Counter()
        self._waiting: dict[str, deque[tuple[int, Output]]] = {}
        """The records that are not processed yet, by topic, each with its arrival number."""
        self._arrivals = itertools.count()
        self._global_tables = {topic: table for table in topology.global_tables for topic in table.source.topics}
        self._global_stores = open_stores(
            (table.store for table in topology.global_tables), self.settings, {}, lambda spec: OverlayStore(None)
        )
        self._parts = [_Part(self, plan, self._global_stores) for plan in topology.sub_topologies]
        self._by_topic: dict[str, _Part] = {}
        for part in self._parts:
            for source in part.plan.sources:
                for topic in source_topics(source, self.settings.application_id):
                    self._by_topic[topic] = part

    # --- topics -------------------------------------------------------------------------------------------------------

    def create_input_topic(
        self,
        topic: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        start_timestamp: int = 0,
        auto_advance: Duration = 0,
    ) -> "TestInputTopic":
        """`auto_advance`: the time by which the timestamp advances with each record that is piped without one."""
        return TestInputTopic(
            self, topic, key_serde, value_serde, start_timestamp, milliseconds(auto_advance, "auto_advance")
        )

    def create_output_topic(
        self, topic: str, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> "TestOutputTopic":
        return TestOutputTopic(self, topic, key_serde, value_serde)

    def pipe(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> None:
        """Process a serialized record, and all records that result from it."""
        self._enqueue(topic, (key, value, timestamp, headers, None))
        self._drain()

    @property
    def produced(self) -> list[tuple[str, Output]]:
        """All records that the topology has written, in order, including those of internal topics."""
        return self._sequence

    # --- time and stores ----------------------------------------------------------------------------------------------

    def advance_wall_clock_time(self, duration: Duration) -> None:
        """Advance the wall-clock time, and call the punctuators that are due."""
        self.wall_clock_ms += milliseconds(duration, "The duration")
        for part in self._parts:
            part.task.context.wall_clock_ms = self.wall_clock_ms
            part.task.punctuate()
        self._drain()

    def store(self, name: str) -> Any:
        """A store of the topology, for reading and writing."""
        for stores in (self._global_stores, *(part.stores for part in self._parts)):
            if name in stores:
                return stores[name]
        raise StreamsError(f"The topology has no store {name}.")

    @property
    def dropped(self) -> Counter[str]:
        """The number of dropped records, by reason."""
        total: Counter[str] = Counter()
        for part in self._parts:
            total += part.task.context.dropped + part.map_side.context.dropped
        return total

    # --- inside -------------------------------------------------------------------------------------------------------

    def to(self, topic: str) -> Callable[[Output], object]:
        """The function that writes records to a topic: the driver is the topology's Outputs."""

        def write(output: Output) -> None:
            self._sequence.append((topic, output))
            self._written.setdefault(topic, deque()).append(output)
            if topic in self._by_topic or topic in self._global_tables:
                self._enqueue(topic, output)

        return write

    def partition_count(self, topic: str) -> int:
        return 1

    def _enqueue(self, topic: str, output: Output) -> None:
        self._waiting.setdefault(topic, deque()).append((next(self._arrivals), output))

    def _next(self) -> tuple[str, Output]:
        """The next record: the earliest of the first records of all topics, as in Kafka's PartitionGroup."""

        def time_and_arrival(topic: str) -> tuple[int, int]:
            arrival, (_, _, timestamp, _, _) = self._waiting[topic][0]
            return timestamp, arrival

        topic = min(self._waiting, key=time_and_arrival)
        _, output = self._waiting[topic].popleft()
        if not self._waiting[topic]:
            del self._waiting[topic]
        return topic, output

    def _drain(self) -> None:
        while self._waiting:
            topic, (key, value, timestamp, headers, _) = self._next()
            offset = self._offsets[topic]
            self._offsets[topic] += 1
            if topic in self._global_tables:
                self._put_global(topic, key, value, timestamp)
            else:
                self._part_of(topic).receive(topic, offset, key, value, timestamp, headers)

    def _part_of(self, topic: str) -> "_Part":
        if topic not in self._by_topic:
            for part in self._parts:
                if any(source.matches(topic) for source in part.plan.sources):
                    self._by_topic[topic] = part
                    break
            else:
                raise StreamsError(f"The topology does not read the topic {topic}.")
        return self._by_topic[topic]

    def _put_global(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int) -> None:
        table = self._global_tables[topic]
        table.put(self._global_stores[table.store.name], self.settings, topic, key, value, timestamp)

    def taken(self, topic: str) -> "deque[Output]":
        """The records that were written to a topic and are not read yet."""
        return self._written.setdefault(topic, deque())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for part in self._parts:
            part.task.close()


class _Part:
    """A sub-topology of the driver: its map side and its only task."""

    def __init__(self, driver: TopologyTestDriver, plan: SubTopology, global_stores: Mapping[str, Any]) -> None:
        self.plan = plan
        clocks: dict[str, Clock] = {}
        self.stores = open_stores(plan.stores, driver.settings, clocks, lambda spec: OverlayStore(None))
        self._rows: list[ShuffledOutput] = []
        self.map_side = MapSide(plan, driver.settings, driver, self._rows.append)
        self.task = Task(
            plan,
            driver.settings,
            0,
            {**global_stores, **self.stores},
            driver,
            clocks,
            wall_clock_ms=driver.wall_clock_ms,
        )

    def receive(
        self,
        topic: str,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers | None,
    ) -> None:
        self.map_side.receive(topic, 0, offset, key, value, timestamp, headers)
        rows, self._rows[:] = list(self._rows), []
        self.task.process(
            Row(port, key, value, time, topic, 0, offset, headers) for port, key, value, time, headers, _ in rows
        )


class TestInputTopic:
    __test__ = False

    def __init__(
        self,
        driver: TopologyTestDriver,
        topic: str,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        start_timestamp: int,
        auto_advance_ms: int,
    ) -> None:
        self._driver = driver
        self._topic = topic
        self._key_serde = driver.settings.key_serde(key_serde)
        self._value_serde = driver.settings.value_serde(value_serde)
        self._next_timestamp = start_timestamp
        self._auto_advance_ms = auto_advance_ms

    def pipe_input(self, key: Any, value: Any, timestamp: int | None = None, headers: Headers | None = None) -> None:
        if timestamp is None:
            timestamp = self._next_timestamp
            self._next_timestamp += self._auto_advance_ms
        self._driver.pipe(
            self._topic,
            self._key_serde.serialize(self._topic, key),
            self._value_serde.serialize(self._topic, value),
            timestamp,
            headers,
        )

    def pipe_key_values(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        for key, value in pairs:
            self.pipe_input(key, value)

    def advance_time(self, duration: Duration) -> None:
        self._next_timestamp += milliseconds(duration, "The duration")


class TestOutputTopic:
    __test__ = False

    def __init__(
        self,
        driver: TopologyTestDriver,
        topic: str,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
    ) -> None:
        self._topic = topic
        self._key_serde = driver.settings.key_serde(key_serde)
        self._value_serde = driver.settings.value_serde(value_serde)
        self._records = driver.taken(topic)

    def is_empty(self) -> bool:
        return not self._records

    def read_record(self) -> Record:
        if not self._records:
            raise StreamsError(f"There is no further record in topic {self._topic}.")
        key, value, timestamp, headers, _ = self._records.popleft()
        return Record(
            self._key_serde.deserialize(self._topic, key),
            self._value_serde.deserialize(self._topic, value),
            timestamp,
            tuple(headers or ()),
        )

    def read_key_value(self) -> tuple[Any, Any]:
        record = self.read_record()
        return record.key, record.value

    def read_value(self) -> Any:
        return self.read_record().value

    def read_records_to_list(self) -> list[Record]:
        return [self.read_record() for _ in range(len(self._records))]

    def read_key_values_to_list(self) -> list[tuple[Any, Any]]:
        return [(record.key, record.value) for record in self.read_records_to_list()]

    def read_values_to_list(self) -> list[Any]:
        return [record.value for record in self.read_records_to_list()]

    def read_key_values_to_map(self) -> dict[Any, Any]:
        """The last value of each key; a deleted key has the value None."""
        return dict(self.read_key_values_to_list())
