"""Fills columns in Arrow's layout with the records of fetched batches. Part of the compiled core; the rules of
checking.py apply. No Python object is created for a record, and no length is trusted.
"""

from collections.abc import Iterator

import cython

from kaspar.base.errors import MalformedBytes
from kaspar.records.codec import Octets
from kaspar.records.core import checking
from kaspar.records.core.record_fields import PROBLEMS

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
    from cython.cimports.kaspar.records import layout
    from cython.cimports.kaspar.records.core import record_fields
else:
    from kaspar.base import primitives
    from kaspar.records import layout
    from kaspar.records.core import record_fields

IS_COMPILED: bool = cython.compiled

_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)
_FIRST_DATA_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)
_FIRST_HEADERS = cython.declare(cython.Py_ssize_t, 1024)

# Why a walk ended, if not because of a problem of a record (see record_fields.py).
_FINISHED = cython.declare(cython.int, 0)
_UNTIL_REACHED = cython.declare(cython.int, -1)
_FULL = cython.declare(cython.int, -2)
_ROOM_WANTED = cython.declare(cython.int, -3)


@cython.final
@cython.cclass
class OctetsColumn:
    """A column of bytes or strings: an offset for each row, the bytes, and a bit for each row that is not null."""

    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")
    nulls = cython.declare(cython.Py_ssize_t, visibility="readonly")
    size = cython.declare(cython.Py_ssize_t, visibility="readonly")
    data = cython.declare(bytearray, visibility="readonly")
    offsets = cython.declare(bytearray, visibility="readonly")
    validity = cython.declare(bytearray, visibility="readonly")
    _data = cython.declare("unsigned char[::1]")
    _offsets = cython.declare("int[::1]")
    _validity = cython.declare("unsigned char[::1]")
    _most_rows: cython.Py_ssize_t

    def __init__(self, rows: cython.Py_ssize_t, size: cython.Py_ssize_t) -> None:
        self._begin(rows, size)

    @cython.cfunc
    def _begin(self, rows: cython.Py_ssize_t, size: cython.Py_ssize_t) -> object:
        self.rows = self.nulls = self.size = 0
        self._most_rows = rows
        self.data = bytearray(size)
        self.offsets = bytearray(4 * (rows + 1))
        self.validity = bytearray((rows + 7) // 8)
        self._see()
        return None

    @cython.cfunc
    def _see(self) -> object:
        self._data = self.data
        self._offsets = memoryview(self.offsets).cast("i")
        self._validity = self.validity
        return None

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _has_room(self, rows: cython.longlong, size: cython.longlong) -> cython.bint:
        return rows <= self._most_rows - self.rows and size <= len(self._data) - self.size

    @cython.cfunc
    def _make_room(self, rows: cython.Py_ssize_t, size: cython.Py_ssize_t, usual: cython.Py_ssize_t) -> object:
        """Double the room, so that little is copied in total; above the usual size add only as much as is needed."""
        self._data = self._offsets = self._validity = None  # a bytearray cannot grow while it has a view
        if rows > self._most_rows - self.rows:
            self._most_rows = max(self.rows + rows, 2 * self._most_rows)
            self.offsets += bytes(4 * (self._most_rows + 1) - len(self.offsets))
            self.validity += bytes((self._most_rows + 7) // 8 - len(self.validity))
        if size > len(self.data) - self.size:
            self.data += bytes(max(self.size + size, min(2 * len(self.data), usual)) - len(self.data))
        self._see()
        return None

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _append(self, data: Octets, start: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.void:
        """Append one value. A length below zero is null."""
        row: cython.Py_ssize_t = self.rows
        size: cython.Py_ssize_t = self.size
        if length < 0:
            self.nulls += 1
        else:
            self._validity[row >> 3] |= 1 << (row & 7)
            primitives.copy_bytes(self._data, size, data, start, length)
            size += length
            self.size = size
        self._offsets[row + 1] = size
        self.rows = row + 1


@cython.final
@cython.cclass
class ColumnFiller:
    """Reads one batch after the other, and fills columns until they are full.

    `begin` takes a batch, `fill` returns whether the columns are full before its end, and `start_new_columns` creates
    new ones. Only records with offsets from `start` on and below `until` are taken, each offset once.
    """

    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")
    next_offset = cython.declare(cython.longlong, visibility="readonly")  # offset after the last record that was taken
    keys = cython.declare(OctetsColumn, visibility="readonly")
    values = cython.declare(OctetsColumn, visibility="readonly")
    header_keys = cython.declare(OctetsColumn, visibility="readonly")
    header_values = cython.declare(OctetsColumn, visibility="readonly")
    rows_without_headers = cython.declare(cython.Py_ssize_t, visibility="readonly")
    header_offsets = cython.declare(bytearray, visibility="readonly")
    header_validity = cython.declare(bytearray, visibility="readonly")
    offsets = cython.declare(bytearray, visibility="readonly")
    timestamps = cython.declare(bytearray, visibility="readonly")
    timestamp_types = cython.declare(bytearray, visibility="readonly")
    _header_offsets = cython.declare("int[::1]")
    _header_validity = cython.declare("unsigned char[::1]")
    _offsets = cython.declare("long long[::1]")
    _timestamps = cython.declare("long long[::1]")
    _timestamp_types = cython.declare("int[::1]")
    # The columns that are read.
    _wants_keys: cython.bint
    _wants_values: cython.bint
    _wants_headers: cython.bint
    _wants_offsets: cython.bint
    _wants_timestamps: cython.bint
    _wants_timestamp_types: cython.bint
    _most_rows: cython.Py_ssize_t
    _most_bytes: cython.longlong
    _bytes: cython.longlong
    _until: cython.longlong
    # The batch.
    _pieces: Iterator[Octets] | None
    _piece = cython.declare("const unsigned char[::1]")
    _position: cython.Py_ssize_t
    _piece_end: cython.Py_ssize_t
    _records_left: cython.longlong
    _base_offset: cython.longlong
    _last_offset_delta: cython.longlong
    _base_timestamp: cython.longlong
    _timestamp_type: cython.int
    _wanted_bytes: cython.longlong  # bytes of the next record
    _wanted_headers: cython.longlong

    def __init__(
        self,
        columns: frozenset[str],
        start: cython.longlong,
        until: cython.longlong,
        most_rows: cython.Py_ssize_t,
        most_bytes: cython.longlong,
    ) -> None:
        self._wants_keys = "key" in columns
        self._wants_values = "value" in columns
        self._wants_headers = "headers" in columns
        self._wants_offsets = "offset" in columns
        self._wants_timestamps = "timestamp" in columns
        self._wants_timestamp_types = "timestampType" in columns
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self.next_offset = start
        self._until = until
        self._records_left = 0
        self._pieces = None
        first_bytes: cython.Py_ssize_t = min(_FIRST_DATA_BYTES, most_bytes)
        self.keys = OctetsColumn(most_rows if self._wants_keys else 0, first_bytes if self._wants_keys else 0)
        self.values = OctetsColumn(most_rows if self._wants_values else 0, first_bytes if self._wants_values else 0)
        headers: cython.Py_ssize_t = _FIRST_HEADERS if self._wants_headers else 0
        self.header_keys = OctetsColumn(headers, 16 * headers)
        self.header_values = OctetsColumn(headers, 16 * headers)
        self._allocate()

    def start_new_columns(self) -> None:
        """Create new columns; the caller keeps the old ones. They have as much room as those, up to the usual size."""
        for column in (self.keys, self.values, self.header_keys, self.header_values):
            column._begin(column._most_rows, min(len(column.data), self._most_bytes))
        self._allocate()

    @cython.cfunc
    def _allocate(self) -> object:
        rows: cython.Py_ssize_t = self._most_rows
        self.rows = self.rows_without_headers = 0
        self._bytes = 0
        self.header_offsets = bytearray(4 * (rows + 1) if self._wants_headers else 0)
        self.header_validity = bytearray((rows + 7) // 8 if self._wants_headers else 0)
        self.offsets = bytearray(8 * rows if self._wants_offsets else 0)
        self.timestamps = bytearray(8 * rows if self._wants_timestamps else 0)
        self.timestamp_types = bytearray(4 * rows if self._wants_timestamp_types else 0)
        self._header_offsets = memoryview(self.header_offsets).cast("i")
        self._header_validity = self.header_validity
        self._offsets = memoryview(self.offsets).cast("q")
        self._timestamps = memoryview(self.timestamps).cast("q")
        self._timestamp_types = memoryview(self.timestamp_types).cast("i")
        return None

    def begin(
        self,
        buffer: memoryview,
        position: cython.Py_ssize_t,
        header: checking.BatchHeader,
        pieces: Iterator[Octets] | None,
    ) -> None:
        """Begin the batch at `position`, whose header and CRC were checked. `pieces` are the inflated records of a
        compressed batch, in pieces of whole records."""
        assert self._records_left == 0, "the last batch is not read to its end"
        codec: cython.int = header.attributes & layout.CODEC_MASK
        self._base_offset = header.base_offset
        if header.count < 0 or codec > 4:
            raise self._damaged(f"its header says {header.count} records and compression codec {codec}")
        self._last_offset_delta = header.last_offset_delta
        self._timestamp_type = header.is_log_append_time
        self._base_timestamp = header.max_timestamp if self._timestamp_type else header.base_timestamp
        self._records_left = header.count  # may be 0: compaction keeps such a batch for its producer's last sequence
        self._position = self._piece_end = 0
        self._pieces = pieces
        if pieces is None:
            self._piece = buffer
            self._position = position + layout.HEADER_SIZE
            self._piece_end = position + header.size

    def fill(self) -> bool:
        """Take the records of the batch. Returns True if the columns are full before its end: then call it again."""
        reason: cython.int
        while True:
            if self._piece_end - self._position < _GIL_RELEASE_BYTES:
                reason = self._walk(self._piece)
            else:
                with cython.nogil:
                    reason = self._walk(self._piece)
            if reason == _FULL:
                return True
            if reason == _ROOM_WANTED:
                self._make_room()
            elif reason == _UNTIL_REACHED:
                self._records_left = 0
                self._pieces = None
                return False
            elif reason != _FINISHED:
                raise self._damaged(PROBLEMS[reason])
            elif not self._next_piece():
                if self._records_left:
                    raise self._damaged(f"the last {self._records_left} of its records are missing")
                return False

    @cython.cfunc
    def _next_piece(self) -> cython.bint:
        """Continue with the next piece of a compressed batch. Returns False at its end."""
        if self._pieces is None:
            return False
        try:
            piece = next(self._pieces, None)
        except MalformedBytes as error:
            raise self._damaged(str(error)) from error
        if piece is None:
            self._pieces = None
            return False
        self._piece = piece
        self._position = 0
        self._piece_end = len(piece)
        return True

    @cython.cfunc
    def _make_room(self) -> object:
        if self._wants_keys:
            self.keys._make_room(1, self._wanted_bytes, self._most_bytes)
        if self._wants_values:
            self.values._make_room(1, self._wanted_bytes, self._most_bytes)
        if self._wants_headers:
            self.header_keys._make_room(self._wanted_headers, self._wanted_bytes, self._most_bytes)
            self.header_values._make_room(self._wanted_headers, self._wanted_bytes, self._most_bytes)
        return None

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _walk(self, data: Octets) -> cython.int:
        """Take the records of the piece, and return why the walk ended. The position is then that of the next
        record."""
        position: cython.Py_ssize_t = self._position
        end: cython.Py_ssize_t = self._piece_end
        left: cython.longlong = self._records_left
        reason: cython.int = _FINISHED
        fields: record_fields.RecordFields
        while position < end:
            if left == 0:
                reason = record_fields.TOO_MANY_RECORDS
                break
            fields = record_fields.read_record(data, position, end)
            reason = fields.problem
            if reason == _FINISHED:
                reason = self._take(data, position, fields)
            if reason != _FINISHED:
                break
            position = fields.end
            left -= 1
        self._position = position
        self._records_left = left
        return reason

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _take(self, data: Octets, start: cython.Py_ssize_t, fields: record_fields.RecordFields) -> cython.int:
        """Take the record at `start`, if its offset is wanted; anything but _FINISHED ends the walk before it."""
        offset: cython.longlong = fields.offset_delta
        if offset < 0 or offset > self._last_offset_delta:
            return record_fields.OFFSET_OUTSIDE_BATCH
        offset += self._base_offset
        position: cython.Py_ssize_t = fields.headers_at
        varint: cython.longlong = primitives.read_varint(data, position, fields.end)
        if varint < 0:
            return record_fields.BAD_NUMBER
        position += primitives.varint_size(varint)
        headers: cython.longlong = primitives.varint_value(varint)
        reason: cython.int = record_fields.check_headers(data, position, fields.end, headers)
        if reason != _FINISHED:
            return reason

        if offset < self.next_offset:
            return _FINISHED
        if offset >= self._until:
            return _UNTIL_REACHED
        reason = self._room_for(fields.end - start, headers)
        if reason != _FINISHED:
            return reason
        row: cython.Py_ssize_t = self.rows
        if self._wants_timestamps and not self._put_timestamp(row, data, fields.timestamp_at, fields.timestamp_size):
            return record_fields.TIMESTAMP_OVERFLOW
        if self._wants_timestamp_types:
            self._timestamp_types[row] = self._timestamp_type
        if self._wants_offsets:
            self._offsets[row] = offset
        if self._wants_keys:
            self.keys._append(data, fields.key_at, fields.key_size)
        if self._wants_values:
            self.values._append(data, fields.value_at, fields.value_size)
        if self._wants_headers:
            self._put_headers(row, data, position, headers)
        self.next_offset = offset + 1
        self.rows = row + 1
        return _FINISHED

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _room_for(self, size: cython.longlong, headers: cython.longlong) -> cython.int:
        """Check whether a record fits. One that is larger than the limit of all columns gets columns of its own."""
        wants_bytes: cython.bint = self._wants_keys or self._wants_values or self._wants_headers
        if self.rows == self._most_rows or (wants_bytes and self.rows > 0 and size > self._most_bytes - self._bytes):
            return _FULL
        if (
            (self._wants_keys and not self.keys._has_room(1, size))
            or (self._wants_values and not self.values._has_room(1, size))
            or (
                self._wants_headers
                and not (self.header_keys._has_room(headers, size) and self.header_values._has_room(headers, size))
            )
        ):
            self._wanted_bytes = size
            self._wanted_headers = headers
            return _ROOM_WANTED
        self._bytes += size
        return _FINISHED

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _put_timestamp(
        self, row: cython.Py_ssize_t, data: Octets, position: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.bint:
        most: cython.longlong = 9_223_372_036_854_775
        timestamp: cython.longlong = self._base_timestamp
        base: cython.ulonglong
        if self._timestamp_type == 0:
            base = timestamp
            timestamp = primitives.wrap_int64(base + primitives.read_varlong(data, position, size))
        if timestamp > most or timestamp < -most:
            return False
        self._timestamps[row] = timestamp * 1000
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _put_headers(
        self, row: cython.Py_ssize_t, data: Octets, position: cython.Py_ssize_t, headers: cython.longlong
    ) -> cython.void:
        """Append the headers of a record, which were checked. A record without any has null, as in Spark's source."""
        varint: cython.longlong
        size: cython.longlong
        field: cython.longlong
        if headers == 0:
            self.rows_without_headers += 1
        else:
            self._header_validity[row >> 3] |= 1 << (row & 7)
        for field in range(2 * headers):
            varint = primitives.read_varint(data, position, self._piece_end)
            position += primitives.varint_size(varint)
            size = primitives.varint_value(varint)
            if field & 1 == 0:
                self.header_keys._append(data, position, size)
            else:
                self.header_values._append(data, position, size)
            if size > 0:
                position += size
        self._header_offsets[row + 1] = self.header_keys.rows

    @cython.cfunc
    def _damaged(self, what: str) -> MalformedBytes:
        return MalformedBytes(f"the batch at offset {self._base_offset} is damaged: {what}")
