"""Runs batches of a sub-topology as Spark would, in this process: map side, shuffle, tasks, and logs with offsets."""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kaspar.base.ids import TopicPartition
from kaspar.records import Record
from kaspar.spark.kafka_settings import ConnectionSettings
from kaspar.spark.writing.arrow_columns import key_partitions
from kaspar.spark.writing.at_least_once import RowsWritten
from kaspar.streams.running import task_program
from kaspar.streams.running.map_side import MapPlan, map_function
from kaspar.streams.running.reports import TaskReport
from kaspar.streams.running.shipped import ShippedProgram
from kaspar.streams.running.task_program import BatchPlan, StatefulProgram
from kaspar.streams.running.versions import Versions
from kaspar.streams.topology.context import TaskSettings
from kaspar.streams.topology.topology import Topology

SOURCE = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("headerBytes", pa.binary()),
    ]
)
Written = tuple[bytes | None, bytes | None, int]
"""Key, value and timestamp of a record in a topic."""


def source_rows(
    topic: str, records: Sequence[tuple[bytes | None, bytes | None, int]], *, partition: int = 0, first: int = 0
) -> pa.RecordBatch:
    """Records as the data source reads them."""
    rows = [
        {
            "key": key,
            "value": value,
            "topic": topic,
            "partition": partition,
            "offset": first + number,
            "timestamp": time * 1000,
            "headerBytes": None,
        }
        for number, (key, value, time) in enumerate(records)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SOURCE)


class Cluster:
    """The topics that tasks write to. It numbers records as brokers do."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.logs: dict[TopicPartition, list[Record]] = defaultdict(list)

    def topic(self, name: str) -> list[Written]:
        """All records of a topic, partition by partition."""
        return [
            (record.key, record.value, record.timestamp)
            for where in sorted(where for where in self.logs if where.topic == name)
            for record in self.logs[where]
        ]

    def write(self, rows: pa.RecordBatch) -> Iterator[TopicPartition]:
        by_key = key_partitions(rows.column("key").fill_null(b""), self.partitions).to_pylist()
        for row, hashed in zip(rows.to_pylist(), by_key, strict=True):
            where = TopicPartition(row["topic"], hashed if row["partition"] is None else row["partition"])
            headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
            time = int(row["timestamp"].timestamp() * 1000)
            self.logs[where].append(
                Record(
                    offset=len(self.logs[where]), timestamp=time, key=row["key"], value=row["value"], headers=headers
                )
            )
            yield where

    def read(self, topic: str, partition: int, from_offset: int, to_offset: int) -> Iterator[Sequence[Record]]:
        yield self.logs[TopicPartition(topic, partition)][from_offset:to_offset]


class Runtime:
    """Runs one sub-topology of a program."""

    def __init__(
        self, topology: Topology, folder: Path, *, partitions: int = 4, tasks: int = 2, number: int = 0, **settings: Any
    ) -> None:
        self.cluster = Cluster(partitions)
        self.folder = folder
        self._plan = topology.sub_topologies[number]
        self._settings = TaskSettings("app", **settings)
        self._program = ShippedProgram.of(self._plan, self._settings)
        self._tasks = tasks
        self._changelogs = {spec.name: spec.changelog_topic("app") for spec in self._plan.stores}
        self._topics = tuple(sorted({topic for source in self._plan.sources for topic in source.topics}))
        self._batch_id = 0
        self.versions = Versions(self._changelogs, partitions)
        self.dropped: dict[str, int] = {}

    def run(
        self,
        *batches: pa.RecordBatch,
        rng: random.Random | None = None,
        publish: bool = True,
        wall_clock_ms: int = 0,
    ) -> None:
        """One batch. `rng` changes the order of what Spark does in any order. Without `publish` it is as if the driver
        had died before the decision."""
        rng = rng or random.Random(0)
        map_plan = MapPlan(self._program, self._topics, self.cluster.partitions, {})
        mapped = [rows for batch in batches for rows in map_function(map_plan)(iter([batch]))]
        rng.shuffle(mapped)
        reports = []
        for task in rng.sample(range(self._tasks), self._tasks):
            program = StatefulProgram(self._batch_plan(wall_clock_ms))
            ends: dict[TopicPartition, int] = {}
            for rows in program.process(iter(self._of_task(mapped, task))):
                for where in self.cluster.write(rows):
                    ends[where] = len(self.cluster.logs[where])
            reports.append(TaskReport.decode(program.finished(RowsWritten(0), ends)))
        self._batch_id += 1
        for report in reports:
            for reason, count in report.dropped.items():
                self.dropped[reason] = self.dropped.get(reason, 0) + count
        if publish:
            self.versions.advance(reports)

    def restart(self) -> None:
        """The driver is another one, and finds the ends of the changelogs."""
        partitions = range(self.cluster.partitions)
        self.versions = Versions(self._changelogs, self.cluster.partitions)
        self.versions.ends = {
            partition: {
                store: len(self.cluster.logs[TopicPartition(topic, partition)])
                for store, topic in self._changelogs.items()
            }
            for partition in partitions
        }

    def _of_task(self, mapped: Sequence[pa.RecordBatch], task: int) -> list[pa.RecordBatch]:
        shares = [[each % self._tasks == task for each in rows["logical"].to_pylist()] for rows in mapped]
        return [rows.filter(pa.array(share)) for rows, share in zip(mapped, shares, strict=True)]

    def _batch_plan(self, wall_clock_ms: int) -> BatchPlan:
        return BatchPlan(
            program=self._program,
            connection=ConnectionSettings("nowhere:1"),
            topics=self._topics,
            counts={},
            state_dir=str(self.folder),
            partitions=self.cluster.partitions,
            tasks=self._tasks,
            batch_id=self._batch_id,
            wall_clock_ms=wall_clock_ms,
            ticks=False,
            ends=self.versions.ends,
            meta=self.versions.meta,
            global_dir=str(self.folder / "global"),
            global_ends={},
        )


def read_from(cluster: Cluster, changelogs: Mapping[str, str]) -> type:
    """Takes the place of the reader that tasks connect to brokers with."""

    class Reader:
        def __init__(self, *args: object) -> None: ...

        def read(self, store: str, partition: int, from_offset: int, to_offset: int) -> Iterator[Sequence[Record]]:
            return cluster.read(changelogs[store], partition, from_offset, to_offset)

        def __enter__(self) -> "Reader":
            return self

        def __exit__(self, *exception: object) -> None: ...

    return Reader


READER = f"{task_program.__name__}.LazyReader"
