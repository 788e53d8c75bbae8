"""The map side, in a task before the shuffle: converts source records to rows for the tasks of their keys.

If that requires no deserialization, Spark itself passes the columns on (`passed_on`), and no Python code runs in the
task. Otherwise the stateless steps run here, record by record.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from kaspar.spark.errors import without_traceback
from kaspar.spark.writing.arrow_columns import key_partitions
from kaspar.streams.errors import StreamsError
from kaspar.streams.running.rows import (
    COUNTS,
    OUTPUT,
    SCHEMA,
    OutputExtra,
    encode_extra,
    header_bytes,
    packed,
    read_headers,
)
from kaspar.streams.running.shipped import Program, ShippedProgram
from kaspar.streams.topology.context import Output
from kaspar.streams.topology.endpoints import Repartition
from kaspar.streams.topology.plan import SubTopology
from kaspar.streams.topology.task import MapSide, ShuffledOutput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ArrowFunction: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

SOURCE_COLUMNS = "key,value,topic,partition,offset,timestamp,headerBytes"
"""The columns that are read from topics. A row whose `topic` is null is only a tick of the clock."""

_CHUNK = 4_096
_IS_NEW = " was just created: the batch is retried."
_MAX_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class MapPlan:
    """The parameters of a batch's map side, pickled to the tasks."""

    program: ShippedProgram
    topics: tuple[str, ...]
    """All source topics, sorted by name."""
    partitions: int
    """The number of partitions of the sub-topology (N in topics.py)."""
    counts: dict[str, int]
    """The numbers of partitions of the topics that it writes to."""


def map_function(plan: MapPlan) -> ArrowFunction:
    """The function for mapInArrow."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with without_traceback():
            yield from RecordByRecord(plan.program.load(), plan).run(batches)

    return run


def passes_unread(plan: SubTopology) -> bool:
    """Whether every record of every source is sent to its port unchanged, and nowhere else."""
    return all(
        plan.port(source, source) is not None and all(child.name in plan.task_side for child in source.children)
        for source in plan.sources
    )


def passed_on(rows: "DataFrame", plan: SubTopology, application_id: str, topics: Sequence[str]) -> "DataFrame":
    """Convert source rows with the column `keyPartition` to SPARK_SCHEMA, for a plan that passes them unread."""
    return rows.where("topic IS NOT NULL").selectExpr(
        "keyPartition AS logical",
        f"{_place(plan, application_id, topics)} + partition AS place",
        "offset",
        "unix_millis(timestamp) AS time",
        "key",
        "value",
        "headerBytes AS extra",
    )


def _place(plan: SubTopology, application_id: str, topics: Sequence[str]) -> str:
    """The place of a topic's partition 0, in SQL. Names of topics need no quoting."""
    cases = []
    for number, topic in enumerate(topics):
        source = plan.source_of(topic, application_id)
        port = plan.port(source, source)
        assert port is not None, "its records pass unread"
        cases.append(f"WHEN '{topic}' THEN {packed(port.number, number, 0)}L")
    return f"CASE topic {' '.join(cases)} ELSE raise_error(concat('The topic ', topic, '{_IS_NEW}')) END"


class RecordByRecord:
    """Runs the steps before the shuffle."""

    def __init__(self, program: Program, plan: MapPlan) -> None:
        self._plan = plan
        self._numbers = {topic: number for number, topic in enumerate(plan.topics)}
        self._shuffled: list[ShuffledOutput] = []
        self._written: list[tuple[str, Output]] = []
        self._repartitions = {node.name for node in program.plan.nodes if isinstance(node, Repartition)}
        self._has_partitioners = any(
            isinstance(node, Repartition) and node.partitioner is not None for node in program.plan.nodes
        )
        self._side = MapSide(program.plan, program.settings, self, self._shuffled.append)

    # --- the Outputs of the map side ----------------------------------------------------------------------------------

    def to(self, topic: str) -> Callable[[Output], object]:
        append = self._written.append

        def write(output: Output) -> None:
            append((topic, output))

        return write

    def partition_count(self, topic: str) -> int:
        count = self._plan.partitions if topic in self._repartitions else self._plan.counts.get(topic)
        if count is None:
            raise StreamsError(
                f"The partitions of topic {topic} are not known when the program starts: use a partitioner only with "
                "to() of a fixed topic."
            )
        return count

    # --- records ------------------------------------------------------------------------------------------------------

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.disable()  # records form no reference cycles
        try:
            for batch in batches:
                rows = without_ticks(batch)
                for first in range(0, rows.num_rows, _CHUNK):
                    yield from self._process(rows.slice(first, _CHUNK))
        finally:
            gc.enable()
        if self._side.context.dropped:
            yield _counts(self._side.context.dropped)

    def _process(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        topics, partitions = rows.column("topic").to_pylist(), rows.column("partition").to_pylist()
        offsets = rows.column("offset").to_pylist()
        receive, shuffled, written = self._side.receive, self._shuffled, self._written
        shuffled_ends, written_ends = [], []
        for record in zip(
            topics,
            partitions,
            offsets,
            rows.column("key").to_pylist(),
            rows.column("value").to_pylist(),
            times_of(rows).to_pylist(),
            read_headers(rows.column("headerBytes")),
            strict=True,
        ):
            receive(*record)
            shuffled_ends.append(len(shuffled))
            written_ends.append(len(written))
        sources = _sources(self._numbers, rows)
        if shuffled:
            yield from self._shuffled_rows(*_repeated(shuffled_ends, sources, np.array(offsets, np.int64)))
            shuffled.clear()
        if written:
            yield self._written_rows(*_repeated(written_ends, sources, np.array(offsets, np.int64)))
            written.clear()

    def _shuffled_rows(self, sources: Any, offsets: Any) -> Iterator[pa.RecordBatch]:
        rows = self._shuffled
        places = sources + (np.array([row[0] for row in rows], np.int64) << 48)
        keys = pa.array([row[1] for row in rows], pa.binary())
        logical = logical_partitions(keys, sources & 0xFFFFFFFF, self._plan.partitions)
        if self._has_partitioners:
            logical = pa.array([row[5] for row in rows], pa.int32()).fill_null(logical)
        batch = pa.RecordBatch.from_arrays(
            [
                logical,
                pa.array(places),
                pa.array(offsets),
                pa.array([row[3] for row in rows], pa.int64()),
                keys,
                pa.array([row[2] for row in rows], pa.binary()),
                header_bytes([row[4] for row in rows]),
            ],
            schema=SCHEMA,
        )
        for first in range(0, len(rows), _MAX_ROWS):
            yield batch.slice(first, _MAX_ROWS)

    def _written_rows(self, sources: Any, offsets: Any) -> pa.RecordBatch:
        """The rows of output records. Those of one source partition go to the same task, to keep their order."""
        rows = self._written
        outputs = [output for _, output in rows]
        return pa.RecordBatch.from_arrays(
            [
                pa.array(((sources & 0xFFFFFFFF) % self._plan.partitions).astype(np.int32)),
                pa.array(sources + packed(OUTPUT, 0, 0)),
                pa.array(offsets),
                pa.array([output[2] for output in outputs], pa.int64()),
                pa.array([output[0] for output in outputs], pa.binary()),
                pa.array([output[1] for output in outputs], pa.binary()),
                pa.array([_extra(topic, output) for topic, output in rows], pa.binary()),
            ],
            schema=SCHEMA,
        )


def _extra(topic: str, output: Output) -> bytes:
    headers, partition = output[3], output[4]
    return encode_extra(OutputExtra(topic, partition, None if headers is None else list(headers)))


def without_ticks(rows: pa.RecordBatch) -> pa.RecordBatch:
    topics = rows.column("topic")
    return rows.filter(topics.is_valid()) if topics.null_count else rows


def times_of(rows: pa.RecordBatch) -> pa.Array:
    """The timestamps in milliseconds; Spark's are in microseconds."""
    return pa.array(rows.column("timestamp").view(pa.int64()).to_numpy() // 1000)


def logical_partitions(keys: pa.Array, source_partitions: Any, partitions: int) -> pa.Array:
    """The logical partition of each record. Records without a key are assigned by their source partition."""
    if not keys.null_count:
        return key_partitions(keys, partitions)
    return key_partitions(keys, partitions, pa.array((source_partitions % partitions).astype(np.int32)))


def _sources(numbers: Mapping[str, int], rows: pa.RecordBatch) -> Any:
    """The place of each record, without a port."""
    encoded = rows.column("topic").dictionary_encode()
    topics = [packed(0, _number(numbers, name), 0) for name in encoded.dictionary.to_pylist()]
    return np.array(topics, np.int64)[encoded.indices.to_numpy()] + rows.column("partition").to_numpy()


def _number(numbers: Mapping[str, int], topic: str) -> int:
    try:
        return numbers[topic]
    except KeyError:
        raise StreamsError(f"The topic {topic}{_IS_NEW}") from None


def _repeated(ends: list[int], *columns: Any) -> list[Any]:
    """Repeat each element once per row of its record. `ends` is the number of rows up to and including each record."""
    first = np.zeros(1, np.int64)
    times: Any = np.diff(np.array(ends, np.int64), prepend=first)
    return [np.repeat(column, times) for column in columns]


def _counts(dropped: Counter[str]) -> pa.RecordBatch:
    row = (0, packed(COUNTS, 0, 0), 0, 0, None, msgspec.msgpack.encode(dict(dropped)), None)
    arrays = [pa.array([value], field.type) for value, field in zip(row, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
