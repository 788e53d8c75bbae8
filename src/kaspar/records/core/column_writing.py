"""Writes rows in Arrow's layout as the records of batches, and assigns partitions by key. Part of the compiled core;
the rules of checking.py apply. Offsets are checked when a column is created, so loops over its rows need not check
them.
"""

import cython

from kaspar.records.codec import Octets

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
    from cython.cimports.kaspar.records import layout
else:
    from kaspar.base import primitives
    from kaspar.records import layout

IS_COMPILED: bool = cython.compiled

_FIRST_ROOM = cython.declare(cython.Py_ssize_t, 16 * 1024)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _murmur2(data: Octets, start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.ulonglong:
    """The hash by which Kafka's clients assign a key to a partition (Utils.murmur2), without its sign."""
    mask: cython.ulonglong = 0xFFFF_FFFF
    factor: cython.ulonglong = 0x5BD1_E995
    seed: cython.ulonglong = 0x9747_B28C
    length: cython.ulonglong = size
    one: cython.ulonglong
    position: cython.Py_ssize_t = start
    end: cython.Py_ssize_t = start + (size & ~3)
    tail: cython.Py_ssize_t = size & 3
    hashed: cython.ulonglong = seed ^ (length & mask)
    while position < end:
        one = data[position + 3]
        one = (one << 8) | data[position + 2]
        one = (one << 8) | data[position + 1]
        one = (one << 8) | data[position]
        one = (one * factor) & mask
        one ^= one >> 24
        one = (one * factor) & mask
        hashed = ((hashed * factor) & mask) ^ one
        position += 4
    if tail:
        one = 0
        if tail == 3:
            one = data[position + 2]
        if tail >= 2:
            one = (one << 8) | data[position + 1]
        hashed ^= (one << 8) | data[position]
        hashed = (hashed * factor) & mask
    hashed ^= hashed >> 13
    hashed = (hashed * factor) & mask
    hashed ^= hashed >> 15
    return hashed & 0x7FFF_FFFF


@cython.locals(data="const unsigned char[::1]")
def murmur2(key: Octets) -> int:
    """The hash of one key, not negative (Utils.toPositive)."""
    data = key
    return _murmur2(data, 0, len(key))


@cython.locals(data="const unsigned char[::1]")
def partition_of(key: Octets, partition_count: cython.longlong) -> int:
    """The partition of one key, as BuiltInPartitioner.partitionForKey chooses it."""
    if partition_count <= 0:
        raise ValueError("there are no partitions")
    data = key
    return _murmur2(data, 0, len(key)) % partition_count


@cython.final
@cython.cclass
class OctetColumn:
    """Bytes or strings of rows, some of them null. `first` is the index of the first row in `offsets` and `valid`."""

    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _first: cython.Py_ssize_t
    _is_there: cython.bint
    _has_nulls: cython.bint
    _offsets = cython.declare("const int[::1]")
    _data = cython.declare("const unsigned char[::1]")
    _valid = cython.declare("const unsigned char[::1]")

    def __init__(
        self,
        count: cython.Py_ssize_t,
        offsets: memoryview | None = None,
        data: Octets = b"",
        valid: Octets | None = None,
        first: cython.Py_ssize_t = 0,
    ) -> None:
        """`offsets` are int32. Without them every row is null."""
        self.count = count
        self._first = first
        self._is_there = offsets is not None
        self._has_nulls = valid is not None
        if offsets is None:
            return
        self._offsets = offsets
        self._data = data
        if valid is not None:
            self._valid = valid
            if first < 0 or len(valid) * 8 < first + count:
                raise ValueError(f"{len(valid)} bytes of validity are too few for {count} rows from {first} on")
        if count < 0 or first < 0 or len(offsets) < first + count + 1:
            raise ValueError(f"{len(offsets)} offsets are too few for {count} rows from {first} on")
        if not self._is_sound(len(data)):
            raise ValueError("the offsets of a column decrease or exceed its bytes")

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_sound(self, size: cython.Py_ssize_t) -> cython.bint:
        row: cython.Py_ssize_t
        falls: cython.bint = False
        with cython.nogil:
            for row in range(self._first, self._first + self.count):
                if self._offsets[row] > self._offsets[row + 1]:
                    falls = True
        return not falls and self._offsets[self._first] >= 0 and self._offsets[self._first + self.count] <= size

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _size(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The size of the value in a row; -1 for null."""
        if not self._is_there:
            return -1
        row += self._first
        if self._has_nulls and not (self._valid[row >> 3] >> (row & 7)) & 1:
            return -1
        size: cython.Py_ssize_t = self._offsets[row + 1] - self._offsets[row]
        return size

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _start(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        start: cython.Py_ssize_t = self._offsets[row + self._first]
        return start


@cython.final
@cython.cclass
class TimestampColumn:
    """The timestamps of rows, some of them null. `first` is the index of the first row in `times` and `valid`."""

    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    lowest_ms = cython.declare(cython.longlong, visibility="readonly")  # 0 if none is negative
    _first: cython.Py_ssize_t
    _in_us: cython.bint
    _has_nulls: cython.bint
    _times = cython.declare("const long long[::1]")
    _valid = cython.declare("const unsigned char[::1]")

    def __init__(
        self,
        count: cython.Py_ssize_t,
        times: memoryview,
        in_us: cython.bint,
        valid: Octets | None = None,
        first: cython.Py_ssize_t = 0,
    ) -> None:
        """`times` are int64: microseconds, or milliseconds."""
        self.count = count
        self._first = first
        self._in_us = in_us
        self._has_nulls = valid is not None
        self._times = times
        if valid is not None:
            self._valid = valid
            if first < 0 or len(valid) * 8 < first + count:
                raise ValueError(f"{len(valid)} bytes of validity are too few for {count} rows from {first} on")
        if count < 0 or first < 0 or len(times) < first + count:
            raise ValueError(f"{len(times)} timestamps are too few for {count} rows from {first} on")
        self.lowest_ms = self._find_lowest_ms()

    @cython.cfunc
    @cython.exceptval(check=False)
    def _find_lowest_ms(self) -> cython.longlong:
        row: cython.Py_ssize_t
        lowest: cython.longlong = 0
        with cython.nogil:
            for row in range(self._first, self._first + self.count):
                if self._times[row] < lowest and (not self._has_nulls or (self._valid[row >> 3] >> (row & 7)) & 1):
                    lowest = self._times[row]
        if self._in_us and lowest < 0:
            return -(-(lowest + 1) // 1000) - 1  # rounded down, in C too
        return lowest

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _at_ms(self, row: cython.Py_ssize_t, if_null: cython.longlong) -> cython.longlong:
        """The timestamp of a row in milliseconds. Only valid if none is negative."""
        row += self._first
        if self._has_nulls and not (self._valid[row >> 3] >> (row & 7)) & 1:
            return if_null
        time: cython.longlong = self._times[row]
        return time // 1000 if self._in_us else time


@cython.final
@cython.cclass
class RecordColumns:
    """The keys, values, headers and timestamps of the same rows, to be written as records.

    `header_offsets` (int32) delimit the `header_keys` and `header_values` of each row.
    """

    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _keys: OctetColumn
    _values: OctetColumn
    _has_headers: cython.bint
    _header_first: cython.Py_ssize_t
    _header_offsets = cython.declare("const int[::1]")
    _header_keys: OctetColumn
    _header_values: OctetColumn
    _has_timestamps: cython.bint
    _timestamps: TimestampColumn

    def __init__(
        self,
        keys: OctetColumn,
        values: OctetColumn,
        header_offsets: memoryview | None = None,
        header_first: cython.Py_ssize_t = 0,
        header_keys: OctetColumn | None = None,
        header_values: OctetColumn | None = None,
        timestamps: TimestampColumn | None = None,
    ) -> None:
        """Records without a timestamp get the time at which they are written."""
        self.count = values.count
        self._keys = keys
        self._values = values
        self._has_headers = header_offsets is not None
        self._header_first = header_first
        self._header_keys = keys if header_keys is None else header_keys
        self._header_values = values if header_values is None else header_values
        self._has_timestamps = timestamps is not None
        if keys.count != self.count:
            raise ValueError(f"{keys.count} keys and {self.count} values")
        if timestamps is not None:
            self._timestamps = timestamps
            if timestamps.count != self.count:
                raise ValueError(f"{timestamps.count} timestamps and {self.count} values")
            if timestamps.lowest_ms < 0:
                raise ValueError(f"the timestamp {timestamps.lowest_ms} is negative")
        if header_offsets is not None:
            self._header_offsets = header_offsets
            if header_first < 0 or len(header_offsets) < header_first + self.count + 1:
                raise ValueError(f"{len(header_offsets)} offsets of headers are too few for {self.count} rows")
            if header_keys is None or header_values is None or not self._is_sound():
                raise ValueError("the offsets of the headers decrease or exceed their number")

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_sound(self) -> cython.bint:
        row: cython.Py_ssize_t
        end: cython.Py_ssize_t = self._header_first + self.count
        for row in range(self._header_first, end):
            if self._header_offsets[row] > self._header_offsets[row + 1]:
                return False
        last: cython.Py_ssize_t = self._header_offsets[end]
        return (
            self._header_offsets[self._header_first] >= 0
            and last <= self._header_keys.count
            and last <= self._header_values.count
        )


@cython.final
@cython.cclass
class BatchBuilder:
    """Collects the records of one batch, after room for its header, until `limit` bytes are reached.

    A larger record gets a batch of its own. If even that would be larger than `most`, the record is not taken, and
    `too_large` is the size of that batch.
    """

    limit = cython.declare(cython.Py_ssize_t, visibility="readonly")
    most = cython.declare(cython.Py_ssize_t, visibility="readonly")
    size = cython.declare(cython.Py_ssize_t, visibility="readonly")
    count = cython.declare(cython.longlong, visibility="readonly")
    base_timestamp = cython.declare(cython.longlong, visibility="readonly")
    max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    too_large = cython.declare(cython.longlong, visibility="readonly")
    room = cython.declare(cython.Py_ssize_t, visibility="readonly")  # the bytes that it occupies
    _next_room: cython.Py_ssize_t  # the size of the last batch, and probably of the next
    _wanted: cython.Py_ssize_t  # size of the next record, if there was no room for it
    _buffer: object
    _out = cython.declare("unsigned char[::1]")

    def __init__(self, limit: cython.Py_ssize_t, most: cython.Py_ssize_t) -> None:
        self.limit = limit
        self.most = most
        self._next_room = _FIRST_ROOM
        self._begin(bytearray())

    def _begin(self, buffer: bytearray) -> None:
        self._occupy(buffer)
        self.size = layout.HEADER_SIZE
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.too_large = 0
        self._wanted = 0

    def view(self) -> memoryview:
        """The batch so far: room for its header, and its records."""
        return memoryview(self._buffer)[: self.size]  # type: ignore[arg-type]

    def clear(self, *, reuse: bool) -> None:
        """Begin the next batch. It reuses the memory of the last one only if `reuse`."""
        self._next_room = self.size
        self._begin(self._buffer if reuse else bytearray())  # type: ignore[arg-type]

    @cython.locals(row_of="const int[::1]")
    def append(
        self,
        columns: RecordColumns,
        rows: memoryview,
        first: cython.Py_ssize_t,
        last: cython.Py_ssize_t,
        now_ms: cython.longlong,
    ) -> int:
        """Append the rows in `rows[first:last]` (int32). Returns the position in `rows` of the first that was not
        taken: `last`, unless the batch is full or a record too large. `now_ms` is for rows without a timestamp."""
        row_of = rows
        if first < 0 or last > len(rows):
            raise ValueError(f"{first} to {last} is outside {len(rows)} rows")
        while True:
            with cython.nogil:
                first = self._append(columns, row_of, first, last, now_ms)
            if not self._wanted:
                return first
            self._make_room()

    def _make_room(self) -> None:
        room: cython.Py_ssize_t = 4 * self.room if self.room else max(_FIRST_ROOM, self._next_room)
        if room > self.limit:
            room = self.limit
        if room < self.size + self._wanted:
            room = self.size + self._wanted
        grown = bytearray(room)
        if self.count:
            grown[: self.size] = self.view()
        self._occupy(grown)

    def _occupy(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self._out = buffer
        self.room = len(buffer)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(row_of="const int[::1]")
    def _append(
        self,
        columns: RecordColumns,
        row_of: Octets,
        index: cython.Py_ssize_t,
        last: cython.Py_ssize_t,
        now_ms: cython.longlong,
    ) -> cython.Py_ssize_t:
        position: cython.Py_ssize_t = self.size
        count: cython.longlong = self.count
        room: cython.Py_ssize_t = self.room
        row: cython.Py_ssize_t
        key_size: cython.Py_ssize_t
        value_size: cython.Py_ssize_t
        body_size: cython.Py_ssize_t
        whole_size: cython.Py_ssize_t
        timestamp: cython.longlong = now_ms
        base_timestamp: cython.longlong = self.base_timestamp if count else now_ms
        max_timestamp: cython.longlong = self.max_timestamp
        timestamp_delta: cython.longlong = now_ms - base_timestamp
        timestamp_size: cython.Py_ssize_t = primitives.size_of_varlong(timestamp_delta)
        self._wanted = 0
        while index < last:
            row = row_of[index]
            if row < 0 or row >= columns.count:
                break
            if columns._has_timestamps:
                timestamp = columns._timestamps._at_ms(row, now_ms)
                if not count:
                    base_timestamp = timestamp
                timestamp_delta = timestamp - base_timestamp
                timestamp_size = primitives.size_of_varlong(timestamp_delta)
            key_size = columns._keys._size(row)
            value_size = columns._values._size(row)
            body_size = (
                1
                + timestamp_size
                + primitives.size_of_varlong(count)
                + primitives.size_of_varlong(key_size)
                + primitives.size_of_varlong(value_size)
            )
            if key_size > 0:
                body_size += key_size
            if value_size > 0:
                body_size += value_size
            body_size += self._headers_size(columns, row) if columns._has_headers else 1
            whole_size = primitives.size_of_varlong(body_size) + body_size
            if position + whole_size > room:
                if count and position + whole_size > self.limit:
                    break
                if layout.HEADER_SIZE + whole_size > self.most:
                    self.too_large = layout.HEADER_SIZE + whole_size
                else:
                    self._wanted = whole_size
                break
            position = primitives.write_varlong(self._out, position, body_size)
            self._out[position] = 0  # attributes
            position = primitives.write_varlong(self._out, position + 1, timestamp_delta)
            position = primitives.write_varlong(self._out, position, count)
            position = self._put_octets(columns._keys, row, key_size, position)
            position = self._put_octets(columns._values, row, value_size, position)
            if columns._has_headers:
                position = self._put_headers(columns, row, position)
            else:
                self._out[position] = 0
                position += 1
            if timestamp > max_timestamp:
                max_timestamp = timestamp
            count += 1
            index += 1
        self.size = position
        self.count = count
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        return index

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _put_octets(
        self, column: OctetColumn, row: cython.Py_ssize_t, size: cython.Py_ssize_t, position: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        position = primitives.write_varlong(self._out, position, size)
        if size <= 0:
            return position
        primitives.copy_bytes(self._out, position, column._data, column._start(row), size)
        return position + size

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _headers_size(self, columns: RecordColumns, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        first: cython.Py_ssize_t = columns._header_offsets[columns._header_first + row]
        last: cython.Py_ssize_t = columns._header_offsets[columns._header_first + row + 1]
        size: cython.Py_ssize_t = primitives.size_of_varlong(last - first)
        one: cython.Py_ssize_t
        index: cython.Py_ssize_t
        for index in range(first, last):
            one = columns._header_keys._size(index)
            size += primitives.size_of_varlong(one) + (one if one > 0 else 0)
            one = columns._header_values._size(index)
            size += primitives.size_of_varlong(one) + (one if one > 0 else 0)
        return size

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _put_headers(
        self, columns: RecordColumns, row: cython.Py_ssize_t, position: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        first: cython.Py_ssize_t = columns._header_offsets[columns._header_first + row]
        last: cython.Py_ssize_t = columns._header_offsets[columns._header_first + row + 1]
        index: cython.Py_ssize_t
        position = primitives.write_varlong(self._out, position, last - first)
        for index in range(first, last):
            position = self._put_octets(columns._header_keys, index, columns._header_keys._size(index), position)
            position = self._put_octets(columns._header_values, index, columns._header_values._size(index), position)
        return position


@cython.final
@cython.cclass
class Partitioner:
    """Assigns the rows of one topic to partitions: the one that a row requests, else that of its key, else the sticky
    one, which changes after every `switch_bytes`, in the order of `sticky` (int32)."""

    partition_count = cython.declare(cython.longlong, visibility="readonly")
    out_of_range = cython.declare(cython.bint, visibility="readonly")
    stranger = cython.declare(cython.longlong, visibility="readonly")
    _sticky = cython.declare("const int[::1]")
    _sticky_at: cython.Py_ssize_t
    _sticky_bytes: cython.longlong
    _switch_bytes: cython.longlong

    def __init__(self, partition_count: cython.longlong, sticky: memoryview, switch_bytes: cython.longlong) -> None:
        if not len(sticky):
            raise ValueError("there are no partitions")
        self.partition_count = partition_count
        self.out_of_range = False
        self.stranger = 0
        self._sticky = sticky
        self._sticky_at = 0
        self._sticky_bytes = 0
        self._switch_bytes = switch_bytes

    @cython.locals(
        row_of="const int[::1]", asked="const int[::1]", asked_valid="const unsigned char[::1]", out="int[::1]"
    )
    def assign(
        self,
        columns: RecordColumns,
        rows: memoryview,
        first: cython.Py_ssize_t,
        last: cython.Py_ssize_t,
        asked_for: memoryview | None = None,
        asked_for_valid: Octets | None = None,
        asked_first: cython.Py_ssize_t = 0,
        ignore_keys: cython.bint = False,
    ) -> memoryview:
        """Return the partitions (int32) of the rows in `rows[first:last]`. `asked_for` is the column of requested
        partitions. If it has one that the topic does not have, `out_of_range` is set, and `stranger` is that
        partition."""
        row_of = rows
        has_asked: cython.bint = asked_for is not None
        has_valid: cython.bint = asked_for_valid is not None
        asked = rows if asked_for is None else asked_for
        asked_valid = b"" if asked_for_valid is None else asked_for_valid
        if first < 0 or last > len(rows):
            raise ValueError(f"{first} to {last} is outside {len(rows)} rows")
        if asked_for is not None and len(asked_for) < asked_first + columns.count:
            raise ValueError("there are fewer partitions than rows")
        if asked_for_valid is not None and len(asked_for_valid) * 8 < asked_first + columns.count:
            raise ValueError("there are fewer validity bits than rows")
        partitions = memoryview(bytearray(4 * (last - first))).cast("i")
        out = partitions
        keys: OctetColumn = columns._keys
        values: OctetColumn = columns._values
        index: cython.Py_ssize_t
        row: cython.Py_ssize_t
        at: cython.Py_ssize_t
        key_size: cython.Py_ssize_t
        with cython.nogil:
            for index in range(first, last):
                row = row_of[index]
                at = asked_first + row
                key_size = keys._size(row)
                if has_asked and (not has_valid or (asked_valid[at >> 3] >> (at & 7)) & 1):
                    out[index - first] = asked[at]
                    if asked[at] < 0 or asked[at] >= self.partition_count:
                        self.out_of_range = True
                        self.stranger = asked[at]
                elif key_size >= 0 and not ignore_keys:
                    out[index - first] = _murmur2(keys._data, keys._start(row), key_size) % self.partition_count
                else:
                    out[index - first] = self._sticky[self._sticky_at]
                    self._stick(key_size, values._size(row))
        return partitions

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _stick(self, key_size: cython.Py_ssize_t, value_size: cython.Py_ssize_t) -> cython.void:
        self._sticky_bytes += 8
        if key_size > 0:
            self._sticky_bytes += key_size
        if value_size > 0:
            self._sticky_bytes += value_size
        if self._sticky_bytes >= self._switch_bytes:
            self._sticky_bytes = 0
            self._sticky_at += 1
            if self._sticky_at == self._sticky.shape[0]:
                self._sticky_at = 0


@cython.locals(others="const int[::1]", out="int[::1]")
def partitions_of_keys(
    keys: OctetColumn, partition_count: cython.longlong, for_null: memoryview | None = None
) -> memoryview:
    """The partition (int32) of each key; of a null key the one in `for_null` (int32)."""
    if partition_count <= 0:
        raise ValueError("there are no partitions")
    if for_null is not None and len(for_null) != keys.count:
        raise ValueError(f"{len(for_null)} partitions for {keys.count} keys")
    has_others: cython.bint = for_null is not None
    partitions = memoryview(bytearray(4 * keys.count)).cast("i")
    others = partitions if for_null is None else for_null
    out = partitions
    row: cython.Py_ssize_t
    size: cython.Py_ssize_t
    is_missing: cython.bint = False
    with cython.nogil:
        for row in range(keys.count):
            size = keys._size(row)
            if size >= 0:
                out[row] = _murmur2(keys._data, keys._start(row), size) % partition_count
            elif has_others:
                out[row] = others[row]
            else:
                is_missing = True
    if is_missing:
        raise ValueError("a key is null, and there is no partition for null keys")
    return partitions
