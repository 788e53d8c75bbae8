"""Bulk produce and consume through librdkafka, and the broker's CPU for them."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.bench import Bench, Load
from bench.cases.case import Case
from bench.programs import LoadError
from bench.rows import Better, Row
from bench.sides import Side
from bench.topics import Topics, topic_bytes

_GIGABYTE = 1_000_000_000
_WARM_UP_SHARE = 0.3
_COMPRESSED_SHARE = 0.8
_PRODUCE_GOALS = {1000: 1.5, 100: 1.3}
_CONSUME_GOAL = 1.0
_CPU_IN_GOAL = 0.6
_CPU_OUT_GOAL = 1.1


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a load: the kind of records, and how they are distributed."""

    record_bytes: int
    partitions: int
    codec: str

    @property
    def name(self) -> str:
        size = "1k" if self.record_bytes == 1000 else f"{self.record_bytes}b"
        return f"{size}_p{self.partitions}" + ("" if self.codec == "none" else f"_{self.codec}")

    @property
    def title(self) -> str:
        size = "1 kB" if self.record_bytes == 1000 else f"{self.record_bytes} B"
        spread = "1 partition" if self.partitions == 1 else f"{self.partitions} partitions"
        return f"{size}, {spread}" + ("" if self.codec == "none" else f", {self.codec}")

    def records(self, bench: Bench) -> int:
        """The number of records: a gigabyte of 1 kB records, or half as much of small ones, which take as long."""
        return bench.scaled(1_000_000 if self.record_bytes == 1000 else 5_000_000)

    def bytes_of(self, records: int) -> int:
        return records * self.record_bytes


def _rows(name: str, title: str, section: str, goal: float, cpu_goal: float) -> tuple[Row, ...]:
    return (
        Row(name, title, f"{section} through librdkafka", "MB/s", Better.MORE, goal),
        Row(f"{name}_cpu", title, f"Broker CPU per gigabyte, {section.lower()}", "s/GB", Better.LESS, cpu_goal),
    )


def _values(name: str, load: Load) -> Mapping[str, float]:
    """The results of a load. Bytes are those of the record values before compression, as the application sees them."""
    return {
        name: load["bytes"] / load["seconds"] / 1e6,
        f"{name}_cpu": load.broker_cpu_seconds / (load["bytes"] / _GIGABYTE),
    }


class Produce(Case):
    def __init__(self, shape: Shape, acks: str) -> None:
        self.shape = shape
        self.acks = acks
        name = f"produce_{shape.name}_acks{acks}"
        title = f"produce {shape.title}, acks={acks}"
        goal = _PRODUCE_GOALS[shape.record_bytes]
        super().__init__(name, _rows(name, title, "Produce", goal, _CPU_IN_GOAL))

    def warm_up(self, bench: Bench, side: Side) -> None:
        self._produce(bench, side, int(self.shape.records(bench) * _WARM_UP_SHARE))

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        return _values(self.name, self._produce(bench, side, self.shape.records(bench)))

    def _produce(self, bench: Bench, side: Side, records: int) -> Load:
        broker = bench.warm_broker(side)
        with Topics(broker).temporary(self.shape.partitions) as topic:
            bench.touch_memory(self.shape.bytes_of(records))
            return produce(bench, side, topic, self.shape, self.acks, records)


class Consume(Case):
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._topics: dict[str, str] = {}
        name = f"consume_{shape.name}"
        title = f"consume {shape.title}"
        super().__init__(name, _rows(name, title, "Consume", _CONSUME_GOAL, _CPU_OUT_GOAL))

    def set_up(self, bench: Bench, side: Side) -> None:
        topic = Topics(bench.warm_broker(side)).create(self.shape.partitions)
        self._topics[side.name] = topic
        produce(bench, side, topic, self.shape, "1", self.shape.records(bench))

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        broker = bench.warm_broker(side)
        arguments = (broker.bootstrap, self._topics[side.name], self.shape.partitions, self.shape.records(bench))
        return _values(self.name, bench.run_load(broker, bench.tools.client, "consume", *arguments))

    def tear_down(self, bench: Bench, side: Side) -> None:
        topic = self._topics.pop(side.name, None)
        if topic is not None:
            Topics(bench.warm_broker(side)).delete(topic)


class FetchSizes(Case):
    """One partition, consumed with `fetch.message.max.bytes` from small to as large as `fetch.max.bytes` allows."""

    _SIZES = (
        ("64 KiB", 64 * 1024),
        ("256 KiB", 256 * 1024),
        ("1 MiB", 1 << 20),
        ("8 MB", 8_000_000),
        ("50 MB", 50 << 20),
    )

    def __init__(self, record_bytes: int) -> None:
        self.shape = Shape(record_bytes, 1, "none")
        self._topics: dict[str, str] = {}
        name = f"fetch_sizes_{self.shape.name}"
        section = "Consume through librdkafka, by fetch.message.max.bytes"
        self._rows = {
            Row(f"{name}_{size}", f"{self.shape.title}, {text}", section, "MB/s", Better.MORE, _CONSUME_GOAL): size
            for text, size in self._SIZES
        }
        super().__init__(name, tuple(self._rows))

    def set_up(self, bench: Bench, side: Side) -> None:
        topic = Topics(bench.warm_broker(side)).create(1)
        self._topics[side.name] = topic
        produce(bench, side, topic, self.shape, "1", self.shape.records(bench))

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        broker = bench.warm_broker(side)
        arguments = (broker.bootstrap, self._topics[side.name], 1, self.shape.records(bench))
        values = {}
        for row, size in self._rows.items():
            load = bench.run_load(broker, bench.tools.client, "consume", *arguments, size)
            values[row.name] = load["bytes"] / load["seconds"] / 1e6
        return values

    def tear_down(self, bench: Bench, side: Side) -> None:
        topic = self._topics.pop(side.name, None)
        if topic is not None:
            Topics(bench.warm_broker(side)).delete(topic)


def produce(bench: Bench, side: Side, topic: str, shape: Shape, acks: str, records: int) -> Load:
    broker = bench.warm_broker(side)
    arguments = (broker.bootstrap, topic, shape.partitions, records, shape.record_bytes, acks, shape.codec)
    load = bench.run_load(broker, bench.tools.client, "produce", *arguments)
    stored = topic_bytes(broker, topic)
    if (stored < _COMPRESSED_SHARE * load["bytes"]) != (shape.codec != "none"):
        # This load would not be what the row says: librdkafka uses lz4 only with a broker that announces
        # FindCoordinator.
        raise LoadError(f"sent with codec {shape.codec}, {load['bytes']:.0f} bytes of records take {stored} bytes")
    return load
