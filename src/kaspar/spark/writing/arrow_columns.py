"""Arrow's columns in the form of the compiled core (records/core/column_writing.py), without a copy.

The types are those that schema.py accepts, as Spark passes them to tasks; a program in a task (in_tasks.py) may also
yield timestamps in milliseconds.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from kaspar.base.errors import KasparError
from kaspar.records.column_writing import OctetColumn, RecordColumns, TimestampColumn, partitions_of_keys

MAX_COLUMN_BYTES = (1 << 31) - 1  # the limit of 32-bit offsets


class UnwritableRow(KasparError):
    """A row that cannot be written. The text is for the author of the query."""


class PartitionColumn(NamedTuple):
    """The `partition` column, in the form of the compiled core."""

    partitions: memoryview | None = None
    valid: memoryview | None = None
    first: int = 0


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    names = batch.schema.names
    return batch.column(names.index(name)) if name in names else None


def is_too_wide(batch: pa.RecordBatch) -> bool:
    """Whether a column exceeds 32-bit offsets, as it can with Spark's large types."""
    if batch.nbytes <= MAX_COLUMN_BYTES:
        return False
    return any(column is not None and column.nbytes > MAX_COLUMN_BYTES for column in _written(batch))


def _written(batch: pa.RecordBatch) -> Iterator[pa.Array | None]:
    return (column_of(batch, name) for name in ("key", "value", "headers"))


def record_columns(batch: pa.RecordBatch) -> RecordColumns:
    """The columns of the rows. Raises UnwritableRow."""
    keys, values = (_octets(column_of(batch, name), batch.num_rows) for name in ("key", "value"))
    timestamps = _timestamps(column_of(batch, "timestamp"))
    headers = column_of(batch, "headers")
    if headers is None or headers.null_count == len(headers):
        return RecordColumns(keys, values, timestamps=timestamps)
    pairs = headers.values
    names, contents = pairs.field(0), pairs.field(1)
    if pairs.null_count or names.null_count:
        _refuse_null_headers(headers)
    offsets = int32(headers.buffers()[1], 0, headers.offset + len(headers) + 1)
    header_keys, header_values = _octets(names, len(names)), _octets(contents, len(contents))
    return RecordColumns(keys, values, offsets, headers.offset, header_keys, header_values, timestamps)


def _refuse_null_headers(headers: pa.Array) -> None:
    """Raises UnwritableRow for a header that is null. Nulls that no row refers to are ignored."""
    pairs = headers.flatten()
    if pairs.null_count or pairs.field(0).null_count:
        raise UnwritableRow("A header in the data is null or has no key: a header needs a key, its value may be null.")


def _octets(column: pa.Array | None, count: int) -> OctetColumn:
    if column is None or column.null_count == count:
        return OctetColumn(count)
    if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type):
        column = column.cast(pa.binary() if pa.types.is_large_binary(column.type) else pa.string())
    valid, offsets, data = column.buffers()
    return OctetColumn(
        count,
        int32(offsets, 0, column.offset + count + 1),
        b"" if data is None else memoryview(data).cast("B"),
        memoryview(valid).cast("B") if column.null_count else None,
        column.offset,
    )


def _timestamps(column: pa.Array | None) -> TimestampColumn | None:
    if column is None or column.null_count == len(column):
        return None
    unit = column.type.unit if pa.types.is_timestamp(column.type) else None
    if unit not in ("us", "ms"):
        raise UnwritableRow(f"The column timestamp has the unsupported type {column.type}.")
    valid, times = column.buffers()
    timestamps = TimestampColumn(
        len(column),
        memoryview(times).cast("B")[: 8 * (column.offset + len(column))].cast("q"),
        unit == "us",
        memoryview(valid).cast("B") if column.null_count else None,
        column.offset,
    )
    if timestamps.lowest_ms < 0:  # as in Kafka's ProducerRecord
        raise UnwritableRow(
            f"Invalid timestamp: {timestamps.lowest_ms}. Timestamp should always be non-negative or null."
        )
    return timestamps


def partition_column(batch: pa.RecordBatch) -> PartitionColumn:
    column = column_of(batch, "partition")
    if column is None or column.null_count == len(column):
        return PartitionColumn()
    valid, partitions = column.buffers()
    return PartitionColumn(
        int32(partitions, 0, column.offset + len(column)),
        memoryview(valid).cast("B") if column.null_count else None,
        column.offset,
    )


def int32(buffer: pa.Buffer, first: int, count: int) -> memoryview:
    return memoryview(buffer).cast("B")[4 * first : 4 * (first + count)].cast("i")


def key_partitions(keys: pa.Array, partition_count: int, for_null: pa.Array | None = None) -> pa.Array:
    """The partition (int32) to which Kafka's clients assign each key, of binary or string type. Null keys have the
    partition in `for_null` (int32, without nulls)."""
    if for_null is not None and for_null.null_count:
        raise ValueError("the partition for a null key is null")
    others = None if for_null is None else int32(for_null.buffers()[1], for_null.offset, len(for_null))
    partitions = partitions_of_keys(_octets(keys, len(keys)), partition_count, others)
    return pa.Array.from_buffers(pa.int32(), len(keys), [None, pa.py_buffer(partitions)])
