"""The compiled core of the records package: fills columns in Arrow's layout with the records of fetched batches.

The rules of records/core.py hold here too: index loops over typed memoryviews, bounds checked here, one source for the
compiled and the interpreted form. No Python object is made for a record, and every length is looked at as if a stranger
had sent it. Nothing imports this module by name: records/column_reading.py loads one form of it.
"""

from collections.abc import Iterator

import cython

from kaspar.base.errors import MalformedBytes
from kaspar.records.batch import BatchHeader
from kaspar.records.codec import Octets
from kaspar.records.reader import record_pieces

IS_COMPILED: bool = cython.compiled

_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)
_FIRST_DATA_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)
_FIRST_HEADERS = cython.declare(cython.Py_ssize_t, 1024)

# Why a walk ended. All others are problems.
_FINE = cython.declare(cython.int, 0)
_UNTIL_REACHED = cython.declare(cython.int, 1)
_FULL = cython.declare(cython.int, 2)
_ROOM_WANTED = cython.declare(cython.int, 3)
_BAD_NUMBER = cython.declare(cython.int, 4)
_TOO_SHORT = cython.declare(cython.int, 5)
_FOREIGN_OFFSET = cython.declare(cython.int, 6)
_TOO_LONG = cython.declare(cython.int, 7)
_BAD_HEADER_COUNT = cython.declare(cython.int, 8)
_HEADER_WITHOUT_KEY = cython.declare(cython.int, 9)
_WRONG_LENGTH = cython.declare(cython.int, 10)
_UNTELLABLE_TIME = cython.declare(cython.int, 11)
_TOO_MANY = cython.declare(cython.int, 12)

_PROBLEMS = {
    _BAD_NUMBER: "a number in a record is cut off or longer than its type",
    _TOO_SHORT: "a record is too short to be one",
    _FOREIGN_OFFSET: "a record has an offset outside of its batch",
    _TOO_LONG: "a record, key, value or header ends behind what it is in",
    _BAD_HEADER_COUNT: "a record has an impossible number of headers",
    _HEADER_WITHOUT_KEY: "a record has a header without a key",
    _WRONG_LENGTH: "a record does not end where its length says",
    _UNTELLABLE_TIME: "a record has a time that microseconds cannot tell",
    _TOO_MANY: "it has more records than it says",
}


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _varint(data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.ulonglong:
    """The 32 bits of a varint, and above them how many bytes it takes: none, if it does not end in time."""
    low_32_bits: cython.ulonglong = 0xFFFF_FFFF
    raw: cython.ulonglong = 0
    octet: cython.ulonglong
    size: cython.ulonglong = 0
    if end - position > 5:
        end = position + 5
    while position < end:
        octet = data[position]
        raw |= (octet & 0x7F) << (7 * size)
        size += 1
        position += 1
        if octet < 0x80:
            return (raw & low_32_bits) | (size << 32)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _number(varint: cython.ulonglong) -> cython.longlong:
    """What the 32 bits of a varint stand for."""
    low_32_bits: cython.ulonglong = 0xFFFF_FFFF
    half: cython.longlong = (varint & low_32_bits) >> 1
    return -half - 1 if varint & 1 else half


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _varlong_size(data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """How many bytes the varlong takes: none, if it does not end in time."""
    size: cython.Py_ssize_t = 0
    while size < 10 and position + size < end:
        size += 1
        if data[position + size - 1] < 0x80:
            return size
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _varlong(data: Octets, position: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.longlong:
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    sign: cython.ulonglong = 0x8000_0000_0000_0000
    raw: cython.ulonglong = 0
    octet: cython.ulonglong
    index: cython.Py_ssize_t
    for index in range(size):
        octet = data[position + index]
        raw |= (octet & 0x7F) << (7 * index)
    raw &= mask
    raw = (raw >> 1) ^ ((0 - (raw & 1)) & mask)
    return (raw ^ sign) - sign


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(target="unsigned char[::1]", data="const unsigned char[::1]")
def _copy(
    target: bytearray | memoryview,
    at: cython.Py_ssize_t,
    data: Octets,
    start: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
) -> cython.void:
    """Apart, since the C compiler then knows that the target's address does not change with every byte."""
    index: cython.Py_ssize_t
    for index in range(length):
        target[at + index] = data[start + index]


@cython.final
@cython.cclass
class OctetsColumn:
    """A column of bytes or texts: an offset for each row, the bytes, and a bit for each row that is not null."""

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
        """Twice as much, so that little is copied however much comes; above the usual size only what is wanted."""
        self._data = self._offsets = self._validity = None  # what is looked at cannot grow
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
        """A length below zero is null."""
        row: cython.Py_ssize_t = self.rows
        size: cython.Py_ssize_t = self.size
        if length < 0:
            self.nulls += 1
        else:
            self._validity[row >> 3] |= 1 << (row & 7)
            _copy(self._data, size, data, start, length)
            size += length
            self.size = size
        self._offsets[row + 1] = size
        self.rows = row + 1


@cython.final
@cython.cclass
class ColumnFiller:
    """Reads one batch after the other, and fills columns until they are full.

    `begin` takes a batch, `fill` says whether the columns are full before its end, and `start_anew` makes new ones.
    Only records with offsets from `start` on and below `until` are taken, each offset once.
    """

    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")
    next_offset = cython.declare(cython.longlong, visibility="readonly")  # behind the last record that was taken
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
    # What is wanted.
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
    _wanted_bytes: cython.longlong  # of the next record
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

    def start_anew(self) -> None:
        """New columns, with as much room as the last took unless that was unusual: whoever has those keeps them."""
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

    def begin(self, buffer: memoryview, position: cython.Py_ssize_t, header: BatchHeader) -> None:
        """The batch at `position`, whose header and CRC were checked."""
        assert self._records_left == 0, "the last batch is not read to its end"
        codec: cython.int = header.attributes & 0x07
        self._base_offset = header.base_offset
        if header.count < 0 or codec > 4:
            raise self._damaged(f"it has {header.count} records and the codec {codec}")
        self._last_offset_delta = header.last_offset_delta
        self._timestamp_type = header.is_log_append_time
        self._base_timestamp = header.max_timestamp if self._timestamp_type else header.base_timestamp
        self._records_left = header.count  # 0: compaction leaves such a batch to remember its producer's last sequence
        self._position = self._piece_end = 0
        self._pieces = None
        if codec:
            self._pieces = record_pieces(buffer, position, header)
        else:
            self._piece = buffer
            self._position = position + 61
            self._piece_end = position + header.size

    def fill(self) -> bool:
        """Take the records of the batch. True if the columns are full before its end: then once more."""
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
            elif reason != _FINE:
                raise self._damaged(_PROBLEMS[reason])
            elif not self._next_piece():
                if self._records_left:
                    raise self._damaged(f"it lacks the last {self._records_left} of its records")
                return False

    @cython.cfunc
    def _next_piece(self) -> cython.bint:
        """Go on with what the next bytes of a compressed batch inflate to. False at its end."""
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
        """Take the records of the piece, and say what ended it; then its place is that of the next record."""
        position: cython.Py_ssize_t = self._position
        end: cython.Py_ssize_t = self._piece_end
        left: cython.longlong = self._records_left
        reason: cython.int = _FINE
        varint: cython.ulonglong
        length: cython.longlong
        start: cython.Py_ssize_t
        while position < end:
            if left == 0:
                reason = _TOO_MANY
                break
            varint = _varint(data, position, end)
            if varint == 0:
                reason = _BAD_NUMBER
                break
            length = _number(varint)
            start = position + (varint >> 32)
            if length < 6:
                reason = _TOO_SHORT
                break
            if length > end - start:
                reason = _TOO_LONG
                break
            reason = self._take(data, start, start + length)
            if reason != _FINE:
                break
            position = start + length
            left -= 1
        self._position = position
        self._records_left = left
        return reason

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _take(self, data: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """Take the record whose length is known, if it is wanted; anything but _FINE ends the walk before it."""
        timestamp_at: cython.Py_ssize_t = start + 1  # behind the attributes, which mean nothing yet
        timestamp_size: cython.Py_ssize_t = _varlong_size(data, timestamp_at, end)
        position: cython.Py_ssize_t = timestamp_at + timestamp_size
        varint: cython.ulonglong = _varint(data, position, end)
        if timestamp_size == 0 or varint == 0:
            return _BAD_NUMBER
        position += varint >> 32
        offset: cython.longlong = _number(varint)
        if offset < 0 or offset > self._last_offset_delta:
            return _FOREIGN_OFFSET
        offset += self._base_offset

        varint = _varint(data, position, end)
        if varint == 0:
            return _BAD_NUMBER
        position += varint >> 32
        key_at: cython.Py_ssize_t = position
        key_size: cython.longlong = _number(varint)
        if key_size > end - position:
            return _TOO_LONG
        if key_size > 0:
            position += key_size

        varint = _varint(data, position, end)
        if varint == 0:
            return _BAD_NUMBER
        position += varint >> 32
        value_at: cython.Py_ssize_t = position
        value_size: cython.longlong = _number(varint)
        if value_size > end - position:
            return _TOO_LONG
        if value_size > 0:
            position += value_size

        varint = _varint(data, position, end)
        if varint == 0:
            return _BAD_NUMBER
        position += varint >> 32
        headers: cython.longlong = _number(varint)
        reason: cython.int = self._check_headers(data, position, end, headers)
        if reason != _FINE:
            return reason

        if offset < self.next_offset:
            return _FINE
        if offset >= self._until:
            return _UNTIL_REACHED
        reason = self._room_for(end - start, headers)
        if reason != _FINE:
            return reason
        row: cython.Py_ssize_t = self.rows
        if self._wants_timestamps and not self._put_timestamp(row, data, timestamp_at, timestamp_size):
            return _UNTELLABLE_TIME
        if self._wants_timestamp_types:
            self._timestamp_types[row] = self._timestamp_type
        if self._wants_offsets:
            self._offsets[row] = offset
        if self._wants_keys:
            self.keys._append(data, key_at, key_size)
        if self._wants_values:
            self.values._append(data, value_at, value_size)
        if self._wants_headers:
            self._put_headers(row, data, position, headers)
        self.next_offset = offset + 1
        self.rows = row + 1
        return _FINE

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _check_headers(
        self, data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t, headers: cython.longlong
    ) -> cython.int:
        """Whether there are as many headers as the record says, up to its end."""
        varint: cython.ulonglong
        field: cython.longlong
        size: cython.longlong
        if headers < 0 or headers > (end - position) // 2:
            return _BAD_HEADER_COUNT
        for field in range(2 * headers):
            varint = _varint(data, position, end)
            if varint == 0:
                return _BAD_NUMBER
            position += varint >> 32
            size = _number(varint)
            if size < 0 and field & 1 == 0:
                return _HEADER_WITHOUT_KEY
            if size > end - position:
                return _TOO_LONG
            if size > 0:
                position += size
        return _FINE if position == end else _WRONG_LENGTH

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _room_for(self, size: cython.longlong, headers: cython.longlong) -> cython.int:
        """A record that alone is larger than all columns may be gets columns of its own."""
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
        return _FINE

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _put_timestamp(
        self, row: cython.Py_ssize_t, data: Octets, position: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.bint:
        mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
        sign: cython.ulonglong = 0x8000_0000_0000_0000
        most: cython.longlong = 9_223_372_036_854_775
        timestamp: cython.longlong = self._base_timestamp
        raw: cython.ulonglong
        if self._timestamp_type == 0:
            raw = timestamp
            raw = (raw + _varlong(data, position, size)) & mask
            timestamp = (raw ^ sign) - sign
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
        """The headers were checked. A record without any has null, as with Spark's own source."""
        varint: cython.ulonglong
        size: cython.longlong
        field: cython.longlong
        if headers == 0:
            self.rows_without_headers += 1
        else:
            self._header_validity[row >> 3] |= 1 << (row & 7)
        for field in range(2 * headers):
            varint = _varint(data, position, self._piece_end)
            position += varint >> 32
            size = _number(varint)
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
