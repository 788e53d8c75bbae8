"""A sub-topology without state, in a task: processes records where they are read, and writes the results."""

import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kaspar.streams.running.map_side import times_of, without_ticks
from kaspar.streams.running.outputs import CollectedOutputs, partition_lookup
from kaspar.streams.running.reports import TaskReport
from kaspar.streams.running.rows import read_headers
from kaspar.streams.running.shipped import ShippedProgram
from kaspar.streams.topology.task import MapSide, ShuffledOutput

if TYPE_CHECKING:
    from pyspark.sql.datasource import WriterCommitMessage

    from kaspar.base.ids import TopicPartition
    from kaspar.spark.kafka_settings import ConnectionSettings

_CHUNK = 4_096


@dataclass(slots=True)
class StatelessProgram:
    """A TaskProgram. Its fields are pickled to the tasks."""

    program: ShippedProgram
    connection: "ConnectionSettings"
    counts: Mapping[str, int]
    records: int = 0
    written: int = 0
    dropped: dict[str, int] | None = None

    def process(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        program = self.program.load()
        outputs = CollectedOutputs(self.counts, partition_lookup(self.connection))
        side = MapSide(program.plan, program.settings, outputs, _no_shuffle)
        receive = side.receive
        gc.disable()  # records form no reference cycles
        try:
            for batch in batches:
                rows = without_ticks(batch)
                self.records += rows.num_rows
                for first in range(0, rows.num_rows, _CHUNK):
                    for record in _records(rows.slice(first, _CHUNK)):
                        receive(*record)
                    yield from outputs.take()
        finally:
            gc.enable()
        self.written, self.dropped = outputs.records, dict(side.context.dropped)

    def finished(self, message: "WriterCommitMessage", end_offsets: "Mapping[TopicPartition, int]") -> bytes:
        return TaskReport({}, self.records, self.written, self.dropped or {}).encode()


def _records(rows: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    names = ("topic", "partition", "offset", "key", "value")
    columns = [rows.column(name).to_pylist() for name in names]
    return zip(*columns, times_of(rows).to_pylist(), read_headers(rows.column("headerBytes")), strict=True)


def _no_shuffle(output: ShuffledOutput) -> None:
    raise AssertionError("a sub-topology without state has no ports")
