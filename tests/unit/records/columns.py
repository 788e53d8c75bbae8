"""Reads batches into columns and columns back into rows, so that a test can look at them."""

import struct
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from kaspar.base.ids import TopicPartition
from kaspar.records.column_reading import ColumnReader, Columns, OctetsColumn

ALL_COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")
PARTITION = TopicPartition("topic", 3)


class Row(NamedTuple):
    """What was not asked for is None."""

    key: bytes | None
    value: bytes | None
    offset: int | None
    timestamp_us: int | None
    timestamp_type: int | None
    headers: tuple[tuple[str, bytes | None], ...] | None


def rows_of(columns: Columns) -> list[Row]:
    count = columns.rows
    keys, values = _octets(columns.key), _octets(columns.value)
    header_offsets = struct.unpack(f"{len(columns.headers.offsets) // 4}i", columns.headers.offsets)
    header_keys, header_values = _octets(columns.headers.keys), _octets(columns.headers.values)
    rows = []
    for row in range(count):
        headers = None
        if header_offsets and columns.headers.validity[row >> 3] >> (row & 7) & 1:
            entries = range(header_offsets[row], header_offsets[row + 1])
            headers = tuple(
                ((header_keys[each] or b"").decode("utf-8", "surrogateescape"), header_values[each]) for each in entries
            )
        rows.append(
            Row(
                keys[row] if keys else None,
                values[row] if values else None,
                _number("q", columns.offset, row),
                _number("q", columns.timestamp, row),
                _number("i", columns.timestamp_type, row),
                headers,
            )
        )
    return rows


def _number(kind: Literal["q", "i"], column: memoryview, row: int) -> int | None:
    return column.cast(kind)[row] if column else None


def _octets(column: OctetsColumn) -> list[bytes | None]:
    offsets = struct.unpack(f"{len(column.offsets) // 4}i", column.offsets)
    found = [
        bytes(column.data[offsets[row] : offsets[row + 1]]) if column.validity[row >> 3] >> (row & 7) & 1 else None
        for row in range(column.rows)
    ]
    assert found.count(None) == column.nulls
    return found


def read_columns(
    responses: Sequence[bytes | bytearray],
    *,
    start: int = 0,
    until: int = 1 << 40,
    columns: Collection[str] = ALL_COLUMNS,
    aborted: Sequence[tuple[int, int]] = (),
    max_rows: int = 1000,
    max_bytes: int = 1 << 20,
) -> list[Columns]:
    reader = ColumnReader(PARTITION, columns, start, until, max_rows=max_rows, max_bytes=max_bytes)
    found = [full for response in responses for full in reader.take(memoryview(response), aborted)]
    rest = reader.finish()
    return found if rest is None else [*found, rest]


def offsets_of(
    *responses: bytes | bytearray, until: int = 1 << 40, aborted: Sequence[tuple[int, int]] = ()
) -> list[int]:
    found = read_columns(responses, until=until, columns=["offset"], aborted=aborted)
    return [row.offset for columns in found for row in rows_of(columns) if row.offset is not None]
