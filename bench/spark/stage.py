"""The context of every case: one broker, one Spark session, topics that are filled once, and the amount of load."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import kaspar.spark
from bench import meters, programs
from bench.cases.throughput import Shape
from bench.sides import kaspar as our_broker
from bench.spark.noop import NoOpDataSource
from bench.topics import Topics
from kaspar.testing.services import Services
from tests.peers.process import BrokerProcess
from tests.peers.spark_connector import connector_settings

ROOT = Path(__file__).parents[2]
MASTER = "local[2]"
_ROWS = {100: 2_000_000, 1000: 500_000}  # of a topic that is read, by bytes of a record
_READY_ROWS = {100: 2_000_000, 1000: 1_000_000}  # of a frame that is written, and is in Spark's memory before that
HEAP = "4g"


@dataclass(slots=True)
class Stage:
    tools: programs.Programs
    folder: Path  # holds all data
    scale: float  # 1.0 is the full load
    broker: BrokerProcess
    spark: SparkSession
    topics: Topics
    others_shares: list[float] = field(default_factory=list)  # for each measurement, the share of others
    _filled: dict[Shape, str] = field(default_factory=dict)
    _ready: tuple[tuple[int, int], DataFrame] | None = None
    _services: Services | None = None

    @classmethod
    def set_up(cls, folder: Path, scale: float) -> "Stage":
        tools = programs.Programs.build()
        # A query that is stopped during a batch logs errors. Real failures raise exceptions here.
        settings = {"spark.driver.memory": HEAP, "spark.log.level": "OFF", **connector_settings()}
        side = our_broker()
        broker = side.make(folder / "broker")
        # Spark's connector keeps its producers, which request the metadata of topics after they were deleted.
        broker.overrides["auto.create.topics.enable"] = "false"
        broker.overrides["log.segment.delete.delay.ms"] = "0"  # measurements wait until the last one's files are gone
        broker.start()
        # Python workers have to find the no-op source and sink, too.
        os.environ["PYTHONPATH"] = str(ROOT)
        spark = kaspar.spark.session("bench", MASTER, settings)
        spark.dataSource.register(NoOpDataSource)
        return cls(tools, folder, scale, broker, spark, Topics(broker))

    def rows_of(self, record_bytes: int) -> int:
        return max(1, int(_ROWS[record_bytes] * self.scale))

    def ready_rows_of(self, record_bytes: int) -> int:
        return max(1, int(_READY_ROWS[record_bytes] * self.scale))

    def filled_topic(self, shape: Shape) -> str:
        """A topic with this load in it, which is filled on first use and shared by cases that read the same."""
        if shape not in self._filled:
            topic = self.topics.create(shape.partitions)
            where = (self.broker.bootstrap, topic, shape.partitions)
            load = (self.rows_of(shape.record_bytes), shape.record_bytes, "1", shape.codec)
            programs.run(self.tools.client, "produce", *where, *load)
            self._filled[shape] = topic
        return self._filled[shape]

    def ready_rows(self, rows: int, record_bytes: int) -> DataFrame:
        """Rows with a value of hexadecimal digits, in two partitions, kept in memory until other rows are requested."""
        if self._ready is None or self._ready[0] != (rows, record_bytes):
            if self._ready is not None:
                self._ready[1].unpersist(blocking=True)
            digits = (
                f"concat({', '.join(f'sha2(string(id + {part}), 512)' for part in range(record_bytes // 128 + 1))})"
            )
            value = f"cast(substring({digits}, 1, {record_bytes}) AS binary) AS value"
            frame = self.spark.range(0, rows, 1, 2).selectExpr(value).persist()
            frame.count()
            self._ready = (rows, record_bytes), frame
        return self._ready[1]

    def timed(self, work: Callable[[], object]) -> float:
        """Run the work. Returns its duration in seconds, and records the share of the machine that others used."""
        machine, before, began = meters.MachineUse.now(), meters.cpu_seconds(os.getpid()), time.monotonic()
        work()
        seconds = time.monotonic() - began
        after = meters.MachineUse.now()
        # The broker and Spark are child processes of this one. Those that have ended are counted as load programs.
        ended = after.load_programs - machine.load_programs
        own = meters.cpu_seconds(os.getpid()) - before - ended
        self.others_shares.append(after.others_share_since(machine, own))
        return seconds

    def registry_url(self) -> str:
        """The URL of a schema registry in this process, which is started on first use."""
        if self._services is None:
            self._services = Services(registry=True, rest=False)
            self._services.start(self.broker.bootstrap, {})
        return self._services.url("registry")

    def close(self) -> None:
        if self._services is not None:
            self._services.stop()
        self.broker.kill()
        self.spark.stop()
