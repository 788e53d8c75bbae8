"""The records of fetched batches as columns, in the layout of Arrow's arrays: no Python object for a record.

What a reader wants is said once: which columns, which offsets, and how large columns may become. Then it takes answer
after answer, and gives columns whenever they are full; what is left at the end `finish` gives. All that Kafka leaves to
a consumer happens here: batches are inflated, control batches and aborted transactions left out, CRCs checked.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaspar.base.compiled import load
from kaspar.base.errors import MalformedBytes
from kaspar.base.ids import TopicPartition

if TYPE_CHECKING:
    from kaspar.records import batch_selection_core, column_reading_core
else:
    batch_selection_core = load("kaspar.records.batch_selection_core")
    column_reading_core = load("kaspar.records.column_reading_core")

__all__ = ["MAX_COLUMN_BYTES", "ColumnReader", "Columns", "HeadersColumn", "OctetsColumn", "offset_behind"]

MAX_COLUMN_BYTES = 1 << 30
"""Offsets into a column's bytes have 32 bits, and behind so many bytes one more record of any size still fits."""

offset_behind = batch_selection_core.offset_behind


@dataclass(frozen=True, slots=True)
class OctetsColumn:
    """Bytes, or texts in UTF-8. Row n lies in `data` between the int32 offsets n and n + 1."""

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
    """Columns of so many rows; those that nobody wanted are empty."""

    rows: int
    key: OctetsColumn
    value: OctetsColumn
    offset: memoryview
    """int64."""
    timestamp: memoryview
    """int64, in microseconds."""
    timestamp_type: memoryview
    """int32: 0 for the producer's time, 1 for the log's."""
    headers: HeadersColumn


class ColumnReader:
    """Reads offsets from `start` on and below `until` of one partition. MalformedBytes names it and the batch."""

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
        others are not its affair. Columns end with `max_rows` and before `max_bytes` of keys, values and headers; a
        record larger than that is alone."""
        self._partition = partition
        self._until = until
        self._selector = batch_selection_core.BatchSelector()
        self._filler = column_reading_core.ColumnFiller(
            frozenset(columns), start, until, max_rows, min(max_bytes, MAX_COLUMN_BYTES)
        )

    def take(self, records: memoryview, aborted: Sequence[tuple[int, int]] = ()) -> Iterator[Columns]:
        """The records of an answer that follows the last, with the producer and first offset of each of its aborted
        transactions (read_committed; none otherwise). Gives the columns that are full with them."""
        selector, filler = self._selector, self._filler
        try:
            selector.give(records, aborted)
            while (header := selector.select(filler.next_offset, self._until)) is not None:
                filler.begin(records, selector.position, header)
                while filler.fill():
                    yield self._columns()
                    filler.start_anew()  # now, when the memory of the last columns may be free again
        except MalformedBytes as error:
            raise MalformedBytes(f"{self._partition}: {error}") from error

    def finish(self) -> Columns | None:
        """What was taken and not yet given. Nothing can be taken behind it."""
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


def _octets(column: column_reading_core.OctetsColumn) -> OctetsColumn:
    rows = column.rows
    return OctetsColumn(
        rows,
        column.nulls,
        memoryview(column.validity)[: (rows + 7) // 8],
        memoryview(column.offsets)[: 4 * (rows + 1)],
        memoryview(column.data)[: column.size],
    )
