"""The perf tools compared with Kafka's own and with librdkafka's rdkafka_performance.

The values that each program itself reports are compared: its rate while it sends or reads. Ours sends letters from a
pool that was filled before; Kafka's creates new ones for each record, and its rate includes connecting and a cold JVM.
After each run the topic must contain, or the program must have read, every record.
"""

import re
from collections.abc import Mapping, Sequence

from bench.programs import LoadError
from bench.rows import Better, Row
from bench.tools.case import KAFKAS, OURS, RDKAFKA, Program
from bench.tools.commands import command_line, output_of
from bench.topics import Topics
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.offsets import list_offsets
from tests.peers.process import BrokerProcess
from tests.peers.rdkafka_performance import rdkafka_performance

_RECORDS = 3_000_000
_RECORD_BYTES = 100
_LATENCY_RATE = 10_000
_LATENCY_SECONDS = 10
_LARGE_BATCHES = ("batch.size=1000000",)  # librdkafka's own default: a megabyte
_KAFKAS_BATCHES = 16_384
_PRODUCED = re.compile(r"^\d+ records sent, ([\d.]+) records/sec .* (\d+) ms 99th", re.MULTILINE)
_RDKAFKA_PRODUCED = re.compile(r"(\d+) delivered .* in \d+ms: (\d+) msgs/s")
_CONSUMED = re.compile(r"^\d{4}-.*, (\d+), [\d.]+, \d+, \d+, [\d.]+, ([\d.]+)$", re.MULTILINE)
_RDKAFKA_CONSUMED = re.compile(r"^% (\d+) messages .* consumed in \d+ms: (\d+) msgs/s", re.MULTILINE)


class Produce:
    """Records per second into a new topic of one partition, with acks=all."""

    def __init__(self, row: Row, other: Program, *properties: str, batch_size: int | None = None) -> None:
        """`batch_size` is that of rdkafka_performance; None for its default."""
        self.name = row.name
        self.rows: tuple[Row, ...] = (row,)
        self.sides: Sequence[Program] = (OURS, other)
        self._properties = properties
        self._batch_size = batch_size

    def measure(self, broker: BrokerProcess, side: Program, scale: float) -> Mapping[str, float]:
        count = int(_RECORDS * scale)
        with Topics(broker).temporary(1) as topic:
            output = output_of(self._command(broker, side, topic, count))
            _check_count(broker, topic, count)
        pattern = _RDKAFKA_PRODUCED if side is RDKAFKA else _PRODUCED
        found = list(pattern.finditer(output))
        if not found:
            raise LoadError(f"no rate in {output[-500:]}")
        return {self.name: float(found[-1][2] if side is RDKAFKA else found[-1][1])}

    def _command(self, broker: BrokerProcess, side: Program, topic: str, count: int) -> list[str]:
        if side is RDKAFKA:
            words = ["-P", "-b", broker.bootstrap, "-t", topic, "-s", str(_RECORD_BYTES), "-c", str(count), "-a", "-1"]
            if self._batch_size is not None:
                words += ["-X", f"batch.size={self._batch_size}"]
            return [str(rdkafka_performance()), *words]
        return _producer(broker, side, topic, count, *self._properties)


class ProduceLatency:
    """The 99th percentile of all latencies at a rate far below the maximum."""

    sides = (OURS, KAFKAS)

    def __init__(self, row: Row) -> None:
        self.name = row.name
        self.rows: tuple[Row, ...] = (row,)

    def measure(self, broker: BrokerProcess, side: Program, scale: float) -> Mapping[str, float]:
        count = int(_LATENCY_RATE * _LATENCY_SECONDS * scale)
        with Topics(broker).temporary(1) as topic:
            output = output_of(_producer(broker, side, topic, count, throughput=_LATENCY_RATE))
        found = list(_PRODUCED.finditer(output))
        return {self.name: float(found[-1][2])}


class Consume:
    """Records per second from a topic of one partition while they are fetched."""

    def __init__(self, row: Row, other: Program) -> None:
        self.name = row.name
        self.rows: tuple[Row, ...] = (row,)
        self.sides: Sequence[Program] = (OURS, other)

    def measure(self, broker: BrokerProcess, side: Program, scale: float) -> Mapping[str, float]:
        count = int(_RECORDS * scale)
        with Topics(broker).temporary(1) as topic:
            output_of(_producer(broker, OURS, topic, count, *_LARGE_BATCHES))
            output = output_of(self._command(broker, side, topic, count))
        found = list((_RDKAFKA_CONSUMED if side is RDKAFKA else _CONSUMED).finditer(output))
        if not found or int(found[-1][1]) != count:
            raise LoadError(f"not all of {count} records were read: {output[-500:]}")
        return {self.name: float(found[-1][2])}

    def _command(self, broker: BrokerProcess, side: Program, topic: str, count: int) -> list[str]:
        if side is RDKAFKA:
            words = ["-C", "-b", broker.bootstrap, "-t", topic, "-p", "0", "-o", "beginning", "-c", str(count)]
            return [str(rdkafka_performance()), *words]
        options = ("--bootstrap-server", broker.bootstrap, "--topic", topic, "--num-records", str(count))
        return command_line(side, "kafka-consumer-perf-test", *options)


def _producer(
    broker: BrokerProcess, side: Program, topic: str, count: int, *properties: str, throughput: int = -1
) -> list[str]:
    options = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--num-records", str(count)]
    options += ["--record-size", str(_RECORD_BYTES), "--throughput", str(throughput)]
    if properties:
        options += ["--command-property", *properties]
    return command_line(side, "kafka-producer-perf-test", *options)


def _check_count(broker: BrokerProcess, topic: str, count: int) -> None:
    partition = TopicPartition(topic, 0)
    with Client(broker.bootstrap) as client:
        found = list_offsets(client, {partition: LATEST_TIMESTAMP})[partition].offset
    if found != count:
        raise LoadError(f"{count} records were sent, and the topic has {found}")


def perf_tools() -> list[Produce | ProduceLatency | Consume]:
    def row(name: str, title: str, other: Program, goal: float | None = None) -> Row:
        section = f"Perf tools beside {other.title}, records of 100 bytes"
        return Row(name, title, section, "records/s", Better.MORE, goal)

    latency = Row("perf_latency", "produce at 10,000 records/s, p99", row("", "", KAFKAS).section, "ms", Better.LESS)
    return [
        Produce(row("perf_produce_rdkafka", "produce, batches of 1 MB", RDKAFKA, 0.8), RDKAFKA, *_LARGE_BATCHES),
        Produce(
            row("perf_produce_rdkafka_16k", "produce, batches of 16 KiB", RDKAFKA, 0.8),
            RDKAFKA,
            batch_size=_KAFKAS_BATCHES,
        ),
        Consume(row("perf_consume_rdkafka", "consume", RDKAFKA, 0.8), RDKAFKA),
        Produce(row("perf_produce", "produce", KAFKAS), KAFKAS),
        Consume(row("perf_consume", "consume", KAFKAS), KAFKAS),
        ProduceLatency(latency),
    ]
