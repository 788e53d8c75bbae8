"""The rows of Spark's shuffle between the map side and the tasks.

`place` packs the port, the topic and the partition of a record into one number, which is cheaper than three columns and
sorts by topic and partition. Topics are numbered in the order of their names, and the numbers are valid for one batch.
Two ports are special: OUTPUT marks records that the map side writes to a topic, COUNTS its numbers of dropped records.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from kaspar.streams.running.order import processing_order
from kaspar.streams.topology.context import Headers

OUTPUT: Final = 0x7FFF
COUNTS: Final = 0x7FFE
_PORT_SHIFT: Final = 48
_TOPIC_SHIFT: Final = 32
_SOURCE_MASK: Final = (1 << _PORT_SHIFT) - 1
_PARTITION_MASK: Final = (1 << _TOPIC_SHIFT) - 1
_TOPIC_MASK: Final = (1 << (_PORT_SHIFT - _TOPIC_SHIFT)) - 1

SPARK_SCHEMA: Final = "logical int, place long, offset long, time long, key binary, value binary, extra binary"
HEADERS: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)
SCHEMA: Final = pa.schema(
    [
        pa.field("logical", pa.int32()),
        pa.field("place", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("extra", pa.binary()),
    ]
)
"""`extra` contains the serialized headers of a record (the column `headerBytes` of the data source); for an OUTPUT row,
an OutputExtra, which also contains topic and partition."""

_FIRST_SPECIAL: Final = COUNTS << _PORT_SHIFT
_FIRST_OUTPUT: Final = OUTPUT << _PORT_SHIFT
_CHUNK: Final = 8_192
_MAX_COLUMN_BYTES: Final = (1 << 31) - 1


def packed(port: int, topic: int, partition: int) -> int:
    return port << _PORT_SHIFT | topic << _TOPIC_SHIFT | partition


def port_of(place: int) -> int:
    return place >> _PORT_SHIFT


class PartitionRows(NamedTuple):
    """The rows that a task has received for one partition, in processing order."""

    partition: int
    columns: pa.RecordBatch

    def chunks(self, topics: Sequence[str]) -> Iterator[Iterator[Any]]:
        """Rows for Task.process, in chunks of limited size."""
        for first in range(0, self.columns.num_rows, _CHUNK):
            yield _read(self.columns.slice(first, _CHUNK), topics)


def _read(columns: pa.RecordBatch, topics: Sequence[str]) -> Iterator[Any]:
    places = columns.column("place").to_numpy()
    keys, values = columns.column("key").to_pylist(), columns.column("value").to_pylist()
    times, offsets = columns.column("time").to_pylist(), columns.column("offset").to_pylist()
    headers = read_headers(columns.column("extra"))
    first = int(places[0])
    if (places == first).all():
        port, topic, partition = (
            itertools.repeat(each)
            for each in (port_of(first), topics[first >> _TOPIC_SHIFT & _TOPIC_MASK], first & _PARTITION_MASK)
        )
        return zip(port, keys, values, times, topic, partition, offsets, headers)  # noqa: B905 - some are endless
    names = [topics[number] for number in (places >> _TOPIC_SHIFT & _TOPIC_MASK).tolist()]
    ports, partitions = (places >> _PORT_SHIFT).tolist(), (places & _PARTITION_MASK).tolist()
    return zip(ports, keys, values, times, names, partitions, offsets, headers, strict=True)


class TaskRows(NamedTuple):
    """All rows that a task has received."""

    partitions: list[PartitionRows]
    outputs: pa.RecordBatch | None = None
    """The records that the map side writes to topics."""
    counts: tuple[bytes, ...] = ()

    def output_chunks(self) -> Iterator[pa.RecordBatch]:
        if self.outputs is not None:
            for first in range(0, self.outputs.num_rows, _CHUNK):
                yield self.outputs.slice(first, _CHUNK)

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch]) -> "TaskRows":
        table = pa.Table.from_batches(list(batches), SCHEMA)
        if not table.num_rows:
            return cls([])
        places = table.column("place").to_numpy()
        is_special = places >= _FIRST_SPECIAL
        if not is_special.any():
            return cls(_by_partition(table))
        outputs = table.filter(pa.array(places >= _FIRST_OUTPUT))
        counts = table.filter(pa.array(is_special & (places < _FIRST_OUTPUT)))
        rest = table.filter(pa.array(~is_special))
        return cls(
            _by_partition(rest) if rest.num_rows else [],
            _one_batch(outputs).sort_by([("place", "ascending"), ("offset", "ascending")])
            if outputs.num_rows
            else None,
            tuple(counts.column("value").to_pylist()),
        )


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """All rows of a non-empty table in one batch. Arrow splits a column with more bytes than 32-bit offsets can address
    into several chunks, so such a column gets larger offsets."""
    for number, field in enumerate(table.schema):
        column = table.column(number)
        if pa.types.is_binary(field.type) and column.nbytes > _MAX_COLUMN_BYTES:
            table = table.set_column(number, field.name, column.cast(pa.large_binary()))
    (batch,) = table.combine_chunks().to_batches()
    return batch


def _by_partition(table: pa.Table) -> list[PartitionRows]:
    logical, places, offsets, times = (table.column(name).to_numpy() for name in ("logical", "place", "offset", "time"))
    order, borders = processing_order(logical, places & _SOURCE_MASK, offsets, times)
    columns = _one_batch(table)
    if order is not None:
        columns, logical = columns.take(pa.array(order)), logical[order]
    return [
        PartitionRows(int(logical[first]), columns.slice(first, last - first))
        for first, last in itertools.pairwise(borders)
    ]


class OutputExtra(msgspec.Struct, frozen=True, array_like=True):
    """The column `extra` of an OUTPUT row."""

    topic: str
    partition: int | None
    headers: list[tuple[str, bytes | None]] | None


encode_extra: Final = msgspec.msgpack.encode
decode_extra: Final = msgspec.msgpack.Decoder(OutputExtra).decode
_decode_headers: Final = msgspec.msgpack.Decoder(list[tuple[str, bytes | None]]).decode


def read_headers(column: pa.Array) -> Iterable[Headers | None]:
    """Deserialize the headers of each record."""
    if column.null_count == len(column):
        return itertools.repeat(None, len(column))
    return [None if each is None else _decode_headers(each) for each in column.to_pylist()]


def header_bytes(headers: Sequence[Headers | None]) -> pa.Array:
    if not any(headers):
        return pa.nulls(len(headers), pa.binary())
    return pa.array([encode_extra(each) if each else None for each in headers], pa.binary())


def written_headers(headers: Sequence[Headers | None]) -> pa.Array:
    if not any(headers):
        return pa.nulls(len(headers), HEADERS)
    pairs = [None if each is None else [{"key": key, "value": value} for key, value in each] for each in headers]
    return pa.array(pairs, HEADERS)
