"""The records of fetched batches as columns, in the layout of Arrow's arrays, without a Python object for each record.

A reader is created for certain columns, a range of offsets, and a size of columns. It takes one fetch response after
the other and yields columns whenever they are full; `finish` returns the rest. It does everything that Kafka leaves to
a consumer: it inflates batches, skips control batches and aborted transactions, and checks CRCs.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kaspar.base.errors import MalformedBytes
from kaspar.base.ids import TopicPartition
from kaspar.records.core import batch_selection, column_filling
from kaspar.records.layout import CODEC_MASK
from kaspar.records.reader import record_pieces

__all__ = ["MAX_COLUMN_BYTES", "ColumnReader", "Columns", "HeadersColumn", "OctetsColumn", "offset_behind"]

MAX_COLUMN_BYTES = 1 << 30
"""Offsets into a column's bytes have 32 bits; after this many bytes one more record of any size still fits."""

offset_behind = batch_selection.offset_behind


@dataclass(frozen=True, slots=True)
class OctetsColumn:
    """Bytes, or strings in UTF-8. Row n is in `data` between the int32 offsets n and n + 1."""

    rows: int
    nulls: int
    validity: memoryview
    offsets: memoryview
    data: memoryview


@dataclass(frozen=True, slots=True)
class HeadersColumn:
    """Lists of keys and values. Row n has the entries between the int32 offsets n and n + 1; without any it is null."""

    nulls: int
    validity: memoryview
    offsets: memoryview
    keys: OctetsColumn
    values: OctetsColumn


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of `rows` rows. Columns that were not requested are empty."""

    rows: int
    key: OctetsColumn
    value: OctetsColumn
    offset: memoryview
    """int64."""
    timestamp: memoryview
    """int64, in microseconds."""
    timestamp_type: memoryview
    """int32: 0 for CreateTime, 1 for LogAppendTime."""
    headers: HeadersColumn


class ColumnReader:
    """Reads the records of one partition with offsets from `start` on and below `until`. A MalformedBytes error names
    the partition and the batch."""

    def __init__(
        self,
        partition: TopicPartition,
        columns: Collection[str],
        start: int,
        until: int,
        *,
        max_rows: int = 65_536,
        max_bytes: int = 16 * 1024 * 1024,
    ) -> None:
        """The columns have the names of Spark's own source: key, value, offset, timestamp, timestampType, headers;
        others are ignored. Columns end with `max_rows` rows and before `max_bytes` of keys, values and headers; a
        larger record gets columns of its own."""
        self._partition = partition
        self._until = until
        self._selector = batch_selection.BatchSelector()
        self._filler = column_filling.ColumnFiller(
            frozenset(columns), start, until, max_rows, min(max_bytes, MAX_COLUMN_BYTES)
        )

    def take(self, records: memoryview, aborted: Sequence[tuple[int, int]] = ()) -> Iterator[Columns]:
        """Read the next fetch response, with the producer and first offset of each of its aborted transactions
        (read_committed; none otherwise). Yields the columns that it fills."""
        selector, filler = self._selector, self._filler
        try:
            selector.give(records, aborted)
            while (header := selector.select(filler.next_offset, self._until)) is not None:
                is_compressed = header.attributes & CODEC_MASK
                pieces = record_pieces(records, selector.position, header) if is_compressed else None
                filler.begin(records, selector.position, header, pieces)
                while filler.fill():
                    yield self._columns()
                    filler.start_new_columns()  # only now, since the memory of the last columns may be free by now
        except MalformedBytes as error:
            raise MalformedBytes(f"{self._partition}: {error}") from error

    def take_rest(self) -> Columns | None:
        """Return the rows that did not fill columns. The reader can continue with new columns."""
        if not self._filler.rows:
            return None
        columns = self._columns()
        self._filler.start_new_columns()
        return columns

    def finish(self) -> Columns | None:
        """Return the remaining rows. The reader must not be used afterwards."""
        return self._columns() if self._filler.rows else None

    def _columns(self) -> Columns:
        filler = self._filler
        rows = filler.rows
        return Columns(
            rows=rows,
            key=_octets(filler.keys),
            value=_octets(filler.values),
            offset=memoryview(filler.offsets)[: 8 * rows],
            timestamp=memoryview(filler.timestamps)[: 8 * rows],
            timestamp_type=memoryview(filler.timestamp_types)[: 4 * rows],
            headers=HeadersColumn(
                filler.rows_without_headers,
                memoryview(filler.header_validity)[: (rows + 7) // 8],
                memoryview(filler.header_offsets)[: 4 * (rows + 1)],
                _octets(filler.header_keys),
                _octets(filler.header_values),
            ),
        )


def _octets(column: column_filling.OctetsColumn) -> OctetsColumn:
    rows = column.rows
    return OctetsColumn(
        rows,
        column.nulls,
        memoryview(column.validity)[: (rows + 7) // 8],
        memoryview(column.offsets)[: 4 * (rows + 1)],
        memoryview(column.data)[: column.size],
    )
