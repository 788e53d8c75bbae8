"""The cases: reads, writes and timings, for each of two sides that are compared."""

import itertools
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader

from bench import programs
from bench.cases.throughput import Shape
from bench.rows import Better, Comparison, Row
from bench.sides import Role
from bench.spark.stage import Stage
from bench.spark.streams import Feed, batch_milliseconds

_READ_GOALS = {(100, 1): 3.0, (100, 2): 2.5, (1000, 1): 1.2, (1000, 2): 1.2}  # by record bytes and number of tasks
_WRITE_GOAL = 1.5
_EXACTLY_ONCE_GOAL = 0.8
_MOST_MORE_MS = 40.0
_MILLION = 1_000_000
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Side:
    role: Role
    title: str
    format: str = "kaspar"
    options: tuple[tuple[str, str], ...] = ()


OURS = Side(Role.CANDIDATE, "kaspar")
THEIRS = Side(Role.REFERENCE, "Spark's connector", "kafka")
EXACTLY_ONCE = Side(Role.CANDIDATE, "exactly once", options=(("guarantee", "exactly-once"),))
AT_LEAST_ONCE = Side(Role.REFERENCE, "at least once")
TOPIC_TO_TOPIC = Side(Role.CANDIDATE, "topic to topic")
NO_OP = Side(Role.REFERENCE, "no-op to no-op", "noop_in_python")


class Case:
    """Measures its rows for one side at a time. Each side has an uncounted round before the others."""

    sides: tuple[Side, Side] = (OURS, THEIRS)

    def __init__(self, name: str, *rows: Row) -> None:
        self.name = name
        self.rows = rows

    def measure(self, stage: Stage, side: Side) -> Mapping[str, float]:
        """Return one value for each row, by the row's name."""
        raise NotImplementedError


def drop(frame: DataFrame) -> None:
    """Read every row and discard it."""
    frame.write.format("noop").mode("overwrite").save()


def reader(stage: Stage, side: Side, topic: str) -> DataFrameReader:
    options = {"kafka.bootstrap.servers": stage.broker.bootstrap, "subscribe": topic}
    return stage.spark.read.format(side.format).options(**options)


class Read(Case):
    def __init__(self, shape: Shape, tasks: int) -> None:
        name = f"read_{shape.name}_t{tasks}"
        title = f"{shape.title}, {'one task' if tasks == 1 else 'two tasks at once'}"
        goal = _READ_GOALS[shape.record_bytes, tasks]
        super().__init__(name, Row(name, title, "Read into Spark's no-op sink", "rows/s", Better.MORE, goal))
        self.shape = shape
        self.tasks = tasks

    def measure(self, stage: Stage, side: Side) -> Mapping[str, float]:
        source = reader(stage, side, stage.filled_topic(self.shape))
        if self.tasks > self.shape.partitions:
            source = source.option("minPartitions", str(self.tasks))
        frame = source.load()
        if self.tasks == 1:
            frame = frame.coalesce(1)
        seconds = stage.timed(lambda: drop(frame))
        return {self.name: stage.rows_of(self.shape.record_bytes) / seconds}


class Write(Case):
    """Rows that are ready in memory, in two tasks, without keys."""

    def __init__(self, shape: Shape) -> None:
        name = f"write_{shape.name}"
        super().__init__(name, Row(name, shape.title, "Write", "rows/s", Better.MORE, _WRITE_GOAL))
        self.shape = shape

    def measure(self, stage: Stage, side: Side) -> Mapping[str, float]:
        rows = stage.ready_rows_of(self.shape.record_bytes)
        return {self.name: write(stage, side, self.shape, rows)}


class PriceOfExactlyOnce(Case):
    """The same rows in one batch of a million, with and without a transaction."""

    sides = (EXACTLY_ONCE, AT_LEAST_ONCE)

    def __init__(self) -> None:
        row = Row(
            "exactly_once_million",
            "a batch of a million rows of 100 B, 8 partitions",
            "The price of exactly once",
            "rows/s",
            Better.MORE,
            _EXACTLY_ONCE_GOAL,
        )
        super().__init__("exactly_once_million", row)

    def measure(self, stage: Stage, side: Side) -> Mapping[str, float]:
        return {self.name: write(stage, side, Shape(100, 8, "none"), int(_MILLION * stage.scale))}


def write(stage: Stage, side: Side, shape: Shape, rows: int) -> float:
    """Write the rows to a new topic. Returns rows per second."""
    frame = stage.ready_rows(rows, shape.record_bytes)
    with stage.topics.temporary(shape.partitions) as topic:
        options = {
            "kafka.bootstrap.servers": stage.broker.bootstrap,
            "kafka.compression.type": shape.codec,
            "topic": topic,
            **dict(side.options),
        }
        seconds = stage.timed(lambda: frame.write.format(side.format).options(**options).mode("append").save())
    return rows / seconds


class SmallBatches(Case):
    """Micro-batches from topic to topic at five rows per second: how long one takes."""

    def __init__(self, name: str, section: str, sides: tuple[Side, Side], *, goal: float | None) -> None:
        title = "p50 of the time of a micro-batch, five rows a second, topic to topic"
        comparison = Comparison.RATIO if goal is None else Comparison.DIFFERENCE
        super().__init__(name, Row(name, title, section, "ms", Better.LESS, goal, comparison))
        self.sides = sides

    def measure(self, stage: Stage, side: Side) -> Mapping[str, float]:
        batches = max(5, int(40 * stage.scale))
        checkpoint = stage.folder / f"checkpoint-{next(_numbers)}"
        if side is NO_OP:
            rows = stage.spark.readStream.format(side.format).load()
            writer = rows.writeStream.format(side.format)
            return {self.name: batch_milliseconds(stage, writer, checkpoint, batches)}
        # These topics are not deleted. Spark's connector keeps its producers. One whose query is stopped during a batch
        # would try to send that to the deleted topic for two minutes, and keep the next query waiting.
        source, target = stage.topics.create(1), stage.topics.create(1)
        with Feed(stage.broker, source):
            servers = {"kafka.bootstrap.servers": stage.broker.bootstrap}
            rows = stage.spark.readStream.format(side.format).options(**servers, subscribe=source).load()
            writer = rows.select("value").writeStream.format(side.format)
            writer = writer.options(**servers, topic=target, **dict(side.options))
            return {self.name: batch_milliseconds(stage, writer, checkpoint, batches)}


class StartUp(Case):
    """The time from the start of a new program until it has read its first row."""

    def __init__(self) -> None:
        title = "a program's start until it has read a first row"
        super().__init__("start_up", Row("start_up", title, "Start-up", "s", Better.LESS))

    def measure(self, stage: Stage, side: Side) -> Mapping[str, float]:
        topic = stage.filled_topic(Shape(100, 1, "none"))
        began, read_at = time.monotonic(), 0.0

        def run() -> None:
            nonlocal read_at
            arguments = ("-m", "bench.spark.first_row", side.format, stage.broker.bootstrap, topic)
            read_at = programs.run(Path(sys.executable), *arguments)["read_at"]

        stage.timed(run)
        return {self.name: read_at - began}


def all_cases() -> list[Case]:
    shapes = [
        Shape(size, partitions, codec) for size in (100, 1000) for partitions in (1, 8) for codec in ("none", "lz4")
    ]
    section = "Micro-batches at a low rate"
    return [
        *(Read(shape, tasks) for shape in shapes for tasks in (1, 2)),
        *(Write(shape) for shape in shapes),
        PriceOfExactlyOnce(),
        SmallBatches(
            "exactly_once_small", "Exactly once in small batches", (EXACTLY_ONCE, AT_LEAST_ONCE), goal=_MOST_MORE_MS
        ),
        SmallBatches("low_rate", f"{section}, above the floor", (TOPIC_TO_TOPIC, NO_OP), goal=_MOST_MORE_MS),
        SmallBatches("low_rate_connectors", section, (OURS, THEIRS), goal=None),
        StartUp(),
    ]
