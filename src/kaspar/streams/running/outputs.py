"""The output of a task: records are collected by topic, and passed to the writer as Arrow columns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kaspar.streams.errors import StreamsError
from kaspar.streams.running.rows import HEADERS, decode_extra, written_headers
from kaspar.streams.topology.context import Output

if TYPE_CHECKING:
    from kaspar.spark.kafka_settings import ConnectionSettings

TIMESTAMP: Final = pa.timestamp("ms", tz="UTC")
_SCHEMA: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("headers", HEADERS),
        pa.field("partition", pa.int32()),
    ]
)
"""The columns of the sink (kaspar.spark.writing.schema)."""


class CollectedOutputs:
    """The Outputs of a task. `take` is called between records, often enough to limit the memory."""

    def __init__(self, counts: Mapping[str, int], look_up: Callable[[str], int]) -> None:
        """`counts` are the known numbers of partitions, by topic; `look_up` requests an unknown one from a broker."""
        self.records = 0
        self._counts = dict(counts)
        self._look_up = look_up
        self._rows: dict[str, list[Output]] = {}

    def to(self, topic: str) -> Callable[[Output], object]:
        return self._rows.setdefault(topic, []).append

    def partition_count(self, topic: str) -> int:
        if topic not in self._counts:
            self._counts[topic] = self._look_up(topic)
        return self._counts[topic]

    def take(self) -> Iterator[pa.RecordBatch]:
        """The records that were written since the last call."""
        for topic, rows in self._rows.items():
            if rows:
                self.records += len(rows)
                yield sink_rows(topic, rows)
                rows.clear()


def sink_rows(topic: str, rows: Sequence[Output]) -> pa.RecordBatch:
    """Convert records of one topic. They keep their order within a partition."""
    times = pa.array([row[2] for row in rows], pa.int64())
    partitions = [row[4] for row in rows]
    columns = [
        pa.repeat(pa.scalar(topic), len(rows)),
        pa.array([row[0] for row in rows], pa.binary()),
        pa.array([row[1] for row in rows], pa.binary()),
        times.view(TIMESTAMP),
        written_headers([row[3] for row in rows]),
        pa.array(partitions, pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def from_map_side(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert the OUTPUT rows of the map side."""
    extras = [decode_extra(each) for each in rows.column("extra").to_pylist()]
    columns = [
        pa.array([each.topic for each in extras], pa.string()),
        rows.column("key").cast(pa.binary()),
        rows.column("value").cast(pa.binary()),
        rows.column("time").view(TIMESTAMP),
        written_headers([each.headers for each in extras]),
        pa.array([each.partition for each in extras], pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def partition_lookup(connection: "ConnectionSettings") -> Callable[[str], int]:
    """A function that requests the number of a topic's partitions from a broker."""

    def look_up(topic: str) -> int:
        with connection.client() as client:
            for found in client.refresh_metadata([topic]).topics:
                if found.name == topic and found.partitions:
                    return len(found.partitions)
        raise StreamsError(f"The topic {topic}, to which the program writes with a partitioner, does not exist.")

    return look_up
