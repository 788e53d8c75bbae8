"""A task after the shuffle: processes the rows of its partitions, one after the other, and writes the results.

For each partition: bring the state to the version that the driver names; process the rows against an overlay of it;
write the outputs, and one changelog record for each key whose value has changed. When all of that is stored, the
changes are written as a delta file, named by the version that they lead to. A repeated task therefore does the same
again, on any machine, and a delta whose batch was not published is never applied.
"""

import gc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from kaspar.base.ids import NO_OFFSET, TopicPartition
from kaspar.spark.kafka_settings import ConnectionSettings
from kaspar.streams.running.changelog_clients import LazyReader
from kaspar.streams.running.global_tables import GlobalStores
from kaspar.streams.running.outputs import CollectedOutputs, from_map_side, partition_lookup, sink_rows
from kaspar.streams.running.reports import PartitionReport, TaskReport
from kaspar.streams.running.rows import PartitionRows, TaskRows
from kaspar.streams.running.shipped import Program, ShippedProgram
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.changelog import meta_header
from kaspar.streams.stores.disk.deltas import delta_of, write_delta
from kaspar.streams.stores.disk.ensure import ensure
from kaspar.streams.stores.disk.environment import folder
from kaspar.streams.topology.context import Clock, Output
from kaspar.streams.topology.open_stores import open_stores, resolved
from kaspar.streams.topology.task import Task

if TYPE_CHECKING:
    from pyspark.sql.datasource import WriterCommitMessage


_CHANGELOG_CHUNK = 16_384


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The parameters of a batch's tasks, pickled to them."""

    program: ShippedProgram
    connection: ConnectionSettings
    topics: tuple[str, ...]
    """All source topics, sorted by name."""
    counts: Mapping[str, int]
    """The numbers of partitions of the topics that the program names."""
    state_dir: str
    """The state directory of the sub-topology."""
    partitions: int
    tasks: int
    batch_id: int
    wall_clock_ms: int
    ticks: bool
    """Whether partitions without rows are processed too, for their wall-clock punctuators."""
    ends: Mapping[int, Mapping[str, int]]
    meta: Mapping[int, Mapping[str, int]]
    global_dir: str
    global_ends: Mapping[str, Sequence[int]]


@dataclass(slots=True)
class _Processed:
    """A partition that the task has processed, until its writes are stored."""

    directory: Path
    parent: dict[str, int]
    overlays: dict[str, OverlayStore]
    meta: dict[str, int]


class StatefulProgram:
    """A TaskProgram. It is pickled to each attempt of a task, before it runs."""

    def __init__(self, plan: BatchPlan) -> None:
        self.plan = plan
        self._processed: dict[int, _Processed] = {}
        self._dropped: Counter[str] = Counter()
        self._records = self._written = 0

    def process(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        program = self.plan.program.load()
        gc.disable()  # records form no reference cycles
        try:
            received = TaskRows.of(batches)
            for counts in received.counts:
                self._dropped.update(msgspec.msgpack.decode(counts))
            for outputs in received.output_chunks():
                self._written += outputs.num_rows
                yield from_map_side(outputs)
            tables = GlobalStores(
                program.plan.global_tables,
                program.settings,
                Path(self.plan.global_dir),
                self.plan.global_ends,
                self.plan.connection,
            )
            with LazyReader(_changelogs(program), self.plan.connection) as reader, tables as global_stores:
                for partition, rows in self._partitions(received):
                    yield from _PartitionTask(self, program, partition, reader, global_stores).run(rows)
        finally:
            gc.enable()

    def _partitions(self, received: TaskRows) -> Iterator[tuple[int, PartitionRows | None]]:
        rows = {each.partition: each for each in received.partitions}
        numbers = sorted(rows)
        if self.plan.ticks:
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None, "every Spark task has a context"
            numbers = list(range(context.partitionId(), self.plan.partitions, self.plan.tasks))
        for number in numbers:
            yield number, rows.get(number)

    def finished(self, message: "WriterCommitMessage", end_offsets: Mapping[TopicPartition, int]) -> bytes:
        program = self.plan.program.load()
        reports = {
            partition: self._report(program, partition, processed, end_offsets)
            for partition, processed in self._processed.items()
        }
        return TaskReport(reports, self._records, self._written, dict(self._dropped)).encode()

    def _report(
        self,
        program: Program,
        partition: int,
        processed: _Processed,
        end_offsets: Mapping[TopicPartition, int],
    ) -> PartitionReport:
        ends: dict[str, int] = {}
        for spec in program.plan.stores:
            overlay = processed.overlays[spec.name]
            if not spec.is_logged and (overlay.changes or overlay.deleted_ranges):
                ends[spec.name] = self.plan.batch_id + 1  # a version that no earlier batch has had
            elif overlay.changes:
                topic = spec.changelog_topic(program.settings.application_id)
                ends[spec.name] = end_offsets.get(TopicPartition(topic, partition), NO_OFFSET)
        if ends and NO_OFFSET not in ends.values():
            delta = delta_of(processed.parent, processed.parent | ends, processed.meta, processed.overlays)
            write_delta(processed.directory, delta)
        return PartitionReport(ends, processed.meta, _bytes_on_disk(processed.directory))


class _PartitionTask:
    """Processes one partition of the task."""

    def __init__(
        self,
        task: StatefulProgram,
        program: Program,
        partition: int,
        reader: LazyReader,
        global_stores: Mapping[str, Any],
    ) -> None:
        self._task = task
        self._plan = task.plan
        self._program = program
        self._partition = partition
        self._reader = reader
        self._global_stores = global_stores
        self._specs = [resolved(spec, program.settings) for spec in program.plan.stores]

    def run(self, rows: PartitionRows | None) -> Iterator[pa.RecordBatch]:
        plan, partition = self._plan, self._partition
        directory = Path(plan.state_dir, str(partition))
        with ensure(directory, partition, self._specs, plan.ends.get(partition, {}), self._reader) as state:
            clocks = {name: Clock(number) for name, number in state.meta.items()}
            for name, number in plan.meta.get(partition, {}).items():
                clocks[name] = Clock(max(number, clocks[name].now if name in clocks else number))
            overlays = {spec.name: OverlayStore(state.snapshot(spec.name)) for spec in self._specs}
            yield from self._process(rows, overlays, clocks)
            meta = {name: clock.now for name, clock in clocks.items()}
            parent = {spec.name: state.ends.get(spec.name, 0) for spec in self._specs}
            yield from self._changelogs(overlays, meta)
        self._task._processed[partition] = _Processed(directory, parent, overlays, meta)

    def _process(
        self, rows: PartitionRows | None, overlays: Mapping[str, OverlayStore], clocks: dict[str, Clock]
    ) -> Iterator[pa.RecordBatch]:
        plan, program, totals = self._plan, self._program, self._task
        stores = open_stores(self._specs, program.settings, clocks, lambda spec: overlays[spec.name])
        outputs = CollectedOutputs(plan.counts, partition_lookup(plan.connection))
        task = Task(
            program.plan,
            program.settings,
            self._partition,
            {**self._global_stores, **stores},
            outputs,
            clocks,
            wall_clock_ms=plan.wall_clock_ms,
        )
        if rows is not None:
            totals._records += rows.columns.num_rows
            for chunk in rows.chunks(plan.topics):
                task.process(chunk)
                yield from outputs.take()
        task.punctuate()
        task.close()
        yield from outputs.take()
        totals._written += outputs.records
        totals._dropped.update(task.context.dropped)

    def _changelogs(self, overlays: Mapping[str, OverlayStore], meta: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
        """One changelog record for each key that has changed. The last record of a store has `meta` as a header."""
        stream_time = max(0, meta.get("task", 0))
        for spec in self._specs:
            changes = overlays[spec.name].changes
            if not spec.is_logged or not changes:
                continue
            topic = spec.changelog_topic(self._program.settings.application_id)
            records: list[Output] = []
            for key, value in changes.items():
                record = spec.to_changelog(key, value)
                time = stream_time if record.timestamp is None else record.timestamp
                records.append((record.key, record.value, time, None, self._partition))
            last = records[-1]
            records[-1] = (last[0], last[1], last[2], [meta_header(meta)], last[4])
            for first in range(0, len(records), _CHANGELOG_CHUNK):
                yield sink_rows(topic, records[first : first + _CHANGELOG_CHUNK])


def _bytes_on_disk(directory: Path) -> int:
    try:
        return (folder(directory) / "data.mdb").stat().st_size
    except FileNotFoundError:
        return 0


def _changelogs(program: Program) -> dict[str, str]:
    return {spec.name: spec.changelog_topic(program.settings.application_id) for spec in program.plan.stores}
