"""The compiled core of compaction, third of three: makes new batches of the records that stay, tells which batches an
index names, and looks for whole batches in what was read.

The same rules hold for its code as for records/compaction_core.py. Batches that are made anew were judged by
records/judging_core.py, so their shape is known to be sound.

A batch that is rebuilt is written as Kafka writes it: the base timestamp is that of the first record that stays, or the
delete horizon if it has one, and every record's timestamp is counted from it anew.
"""

import cython
from crc32c import crc32c

from kaspar.records.codec import Octets

IS_COMPILED: bool = cython.compiled

_HEADER_SIZE = cython.declare(cython.int, 61)
_SMALLEST_RECORD = cython.declare(cython.int, 7)
_BATCH_FACTS = cython.declare(cython.int, 4)
_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)

# A rebuilt record may take more bytes: its length up to five instead of one, its timestamp ten instead of one.
_MOST_GROWTH = cython.declare(cython.int, 13)

_LOG_APPEND_TIME = cython.declare(cython.int, 0x08)
_DELETE_HORIZON = cython.declare(cython.int, 0x40)
_KEPT_WHEN_EMPTY = cython.declare(cython.int, 0x38)  # the kind of timestamps, transactional, control


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _integer(data: Octets, position: cython.Py_ssize_t, size: cython.int) -> cython.longlong:
    one: cython.ulonglong = 1
    sign: cython.ulonglong = one << (8 * size - 1)
    number: cython.ulonglong = 0
    index: cython.int
    for index in range(size):
        number = (number << 8) | data[position + index]
    return (number ^ sign) - sign


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="unsigned char[::1]")
def _put_integer(
    data: bytearray | memoryview, position: cython.Py_ssize_t, number: cython.longlong, size: cython.int
) -> cython.void:
    index: cython.int
    for index in range(size):
        data[position + index] = (number >> (8 * (size - 1 - index))) & 0xFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="unsigned char[::1]")
def _put_varint(
    data: bytearray | memoryview, position: cython.Py_ssize_t, number: cython.longlong
) -> cython.Py_ssize_t:
    """Where the bytes after it go."""
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    raw: cython.ulonglong = ((number << 1) ^ (number >> 63)) & mask
    while raw > 0x7F:
        data[position] = (raw & 0x7F) | 0x80
        raw >>= 7
        position += 1
    data[position] = raw
    return position + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_size(number: cython.longlong) -> cython.Py_ssize_t:
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    raw: cython.ulonglong = ((number << 1) ^ (number >> 63)) & mask
    size: cython.Py_ssize_t = 1
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _behind_varint(data: Octets, position: cython.Py_ssize_t) -> cython.Py_ssize_t:
    while data[position] >= 0x80:
        position += 1
    return position + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _varint(data: Octets, position: cython.Py_ssize_t) -> cython.longlong:
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    sign: cython.ulonglong = 0x8000_0000_0000_0000
    raw: cython.ulonglong = 0
    octet: cython.ulonglong = 0x80
    shift: cython.int = 0
    while octet >= 0x80:
        octet = data[position]
        raw |= (octet & 0x7F) << shift
        shift += 7
        position += 1
    raw &= mask
    raw = (raw >> 1) ^ ((0 - (raw & 1)) & mask)
    return (raw ^ sign) - sign


@cython.locals(data="const unsigned char[::1]")
def whole_batches(buffer: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> tuple[int, str | None]:
    """Where the last whole batch ends, and what is wrong with what stands there, if anything is."""
    data = buffer
    view = memoryview(buffer)
    size: cython.longlong
    crc: cython.longlong
    low_32_bits: cython.longlong = 0xFFFF_FFFF
    if start < 0 or end > len(buffer):
        raise ValueError(f"no such place in {len(buffer)} bytes: {start} to {end}")
    while end - start >= _HEADER_SIZE:
        size = _integer(data, start + 8, 4) + 12
        if data[start + 16] != 2 or size < _HEADER_SIZE:
            return start, "what stands there is no record batch"
        if size > end - start:
            break
        crc = crc32c(view[start + 21 : start + size], 0, size >= _GIL_RELEASE_BYTES)
        if crc != _integer(data, start + 17, 4) & low_32_bits:
            return start, "the checksum is wrong"
        start += size
    return start, None


@cython.final
@cython.cclass
class BatchRebuilder:
    """Collects the batches that stay in `out`, one after the other, until `take`. They come in the order of their
    offsets, each with its verdict: see RecordJudge."""

    out = cython.declare(bytearray, visibility="readonly")
    size = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _out = cython.declare("unsigned char[::1]")
    _last_data_offsets = cython.declare("const long long[::1]")
    _next_last_data_offset: cython.Py_ssize_t
    _end_offset: cython.longlong
    _new_delete_horizon_ms: cython.longlong
    # The batch that is being rebuilt.
    _old_base_timestamp: cython.longlong
    _log_append_time: cython.longlong
    _is_log_append_time: cython.bint
    _attributes: cython.int
    _base_timestamp: cython.longlong
    _max_timestamp: cython.longlong
    _count: cython.longlong
    _index: cython.longlong  # of the next record among the verdicts

    def __init__(self, last_data_offsets: memoryview, end_offset: int, delete_horizon_ms: int) -> None:
        """`last_data_offsets`: int64, sorted: the last offset of each active producer's last batch.
        `delete_horizon_ms`: the one that batches get which have none and need one."""
        self._last_data_offsets = last_data_offsets
        self._next_last_data_offset = 0
        self._end_offset = end_offset
        self._new_delete_horizon_ms = delete_horizon_ms
        self.size = 0
        self.out = bytearray()
        self._out = self.out
        self._index = 0

    @cython.locals(data="const unsigned char[::1]", stay="const unsigned char[::1]", fact="const long long[::1]")
    def add_plain(
        self, buffer: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t, stays: Octets, facts: Octets
    ) -> None:
        """The batches in `buffer[start:end]`, uncompressed, with their verdicts."""
        data = buffer
        stay = stays
        fact = facts
        batch: cython.Py_ssize_t = 0
        if start < 0 or end > len(buffer):
            raise ValueError(f"no such place in {len(buffer)} bytes: {start} to {end}")
        room: cython.Py_ssize_t = end - start
        position: cython.Py_ssize_t = start
        with cython.nogil:
            while position < end:
                room += _MOST_GROWTH * fact[_BATCH_FACTS * batch]
                position += _integer(data, position + 8, 4) + 12
                batch += 1
        self._make_room(room)
        self._index = 0
        batch = 0
        with cython.nogil:
            while start < end:
                self._add(data, start, stay, fact, batch, False, False)
                start += _integer(data, start + 8, 4) + 12
                batch += 1

    @cython.locals(data="const unsigned char[::1]", stay="const unsigned char[::1]", fact="const long long[::1]")
    def add_batch(
        self,
        buffer: Octets,
        start: cython.Py_ssize_t,
        stays: Octets,
        facts: Octets,
        ends_nothing: cython.bint,
        keeps_empty: cython.bint,
    ) -> None:
        """The one batch at `start`, uncompressed or with no record that stays."""
        data = buffer
        stay = stays
        fact = facts
        self._make_room(_integer(data, start + 8, 4) + 12 + _MOST_GROWTH * fact[0])
        self._index = 0
        if _integer(data, start + 8, 4) < _GIL_RELEASE_BYTES:
            self._add(data, start, stay, fact, 0, ends_nothing, keeps_empty)
        else:
            with cython.nogil:
                self._add(data, start, stay, fact, 0, ends_nothing, keeps_empty)

    @cython.locals(data="const unsigned char[::1]", fact="const long long[::1]")
    def begin(self, buffer: Octets, start: cython.Py_ssize_t, facts: Octets) -> bool:
        """The compressed batch at `start`. True if it has to be rebuilt, from what `copy` returns for all of its
        records, in pieces, by `put_rebuilt`: otherwise it is done with."""
        data = buffer
        fact = facts
        self._make_room(_integer(data, start + 8, 4) + 12)
        self._index = 0
        return not self._settle(data, start, fact, 0, False, False)

    @cython.locals(data="const unsigned char[::1]", stay="const unsigned char[::1]", out="unsigned char[::1]")
    def copy(self, records: Octets, stays: Octets) -> memoryview:
        """Those of the records that stay, as they are written in the new batch."""
        data = records
        stay = stays
        end: cython.Py_ssize_t = len(records)
        most: cython.Py_ssize_t = end // _SMALLEST_RECORD
        if self._count < most:
            most = self._count
        copied = bytearray(end + _MOST_GROWTH * most)
        out = copied
        if end < _GIL_RELEASE_BYTES:
            end = self._copy(data, 0, end, stay, out, 0)
        else:
            with cython.nogil:
                end = self._copy(data, 0, end, stay, out, 0)
        return memoryview(copied)[:end]

    @cython.locals(data="const unsigned char[::1]")
    def put_rebuilt(self, buffer: Octets, start: cython.Py_ssize_t, records: Octets) -> None:
        """The batch at `start` again, with these compressed records."""
        data = buffer
        size: cython.Py_ssize_t = _HEADER_SIZE + len(records)
        self._make_room(size)
        memoryview(self.out)[self.size + _HEADER_SIZE : self.size + size] = records
        self._put_header(data, start, size)

    def take(self) -> memoryview:
        """The batches that stay, with the checksums of those that are new. To be used before the next ones come, which
        take their place."""
        view = memoryview(self.out)
        position: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t
        crc: cython.longlong
        while position < self.size:
            size = _integer(self._out, position + 8, 4) + 12
            if _integer(self._out, position + 17, 4) == 0:
                crc = crc32c(view[position + 21 : position + size], 0, size >= _GIL_RELEASE_BYTES)
                _put_integer(self._out, position + 17, crc, 4)
            position += size
        self.size = 0
        return view[:position]

    def _make_room(self, size: cython.Py_ssize_t) -> None:
        if self.size + size > len(self.out):
            grown = bytearray(self.size + size)
            grown[: self.size] = memoryview(self.out)[: self.size]
            self.out = grown
            self._out = grown

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]", stay="const unsigned char[::1]", fact="const long long[::1]")
    def _add(
        self,
        data: Octets,
        start: cython.Py_ssize_t,
        stay: Octets,
        fact: Octets,
        batch: cython.Py_ssize_t,
        ends_nothing: cython.bint,
        keeps_empty: cython.bint,
    ) -> cython.void:
        first: cython.longlong = self._index
        end: cython.Py_ssize_t
        if not self._settle(data, start, fact, batch, ends_nothing, keeps_empty):
            end = start + _integer(data, start + 8, 4) + 12
            end = self._copy(data, start + _HEADER_SIZE, end, stay, self._out, self.size + _HEADER_SIZE)
            self._put_header(data, start, end - self.size)
        self._index = first + _integer(data, start + 57, 4)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]", fact="const long long[::1]")
    def _settle(
        self,
        data: Octets,
        start: cython.Py_ssize_t,
        fact: Octets,
        batch: cython.Py_ssize_t,
        ends_nothing: cython.bint,
        keeps_empty: cython.bint,
    ) -> cython.bint:
        """Drop, empty or keep the batch as it is. False if it has to be rebuilt from some of its records."""
        size: cython.Py_ssize_t = _integer(data, start + 8, 4) + 12
        last_offset: cython.longlong = _integer(data, start, 8) + _integer(data, start + 23, 4)
        attributes: cython.int = data[start + 22]
        has_horizon: cython.bint = attributes & _DELETE_HORIZON != 0
        sets_horizon: cython.bint = not has_horizon and (fact[_BATCH_FACTS * batch + 3] != 0 or ends_nothing)
        index: cython.Py_ssize_t
        self._count = fact[_BATCH_FACTS * batch]
        self._old_base_timestamp = _integer(data, start + 27, 8)
        self._log_append_time = _integer(data, start + 35, 8)
        self._is_log_append_time = attributes & _LOG_APPEND_TIME != 0
        if self._count == 0:
            # An empty batch remembers its producer's last sequence, or where a pass over the log ended.
            if keeps_empty or last_offset + 1 == self._end_offset or self._is_last_of_a_producer(data, start):
                self._attributes = attributes & _KEPT_WHEN_EMPTY
                self._base_timestamp = -1
                self._max_timestamp = self._log_append_time
                self._put_header(data, start, _HEADER_SIZE)
            return True
        if self._count == _integer(data, start + 57, 4) and not sets_horizon:
            for index in range(size):
                self._out[self.size + index] = data[start + index]
            self.size += size
            return True
        self._attributes = attributes
        self._max_timestamp = fact[_BATCH_FACTS * batch + 2]
        if sets_horizon:
            self._attributes = attributes | _DELETE_HORIZON
            self._base_timestamp = self._new_delete_horizon_ms
        else:
            self._base_timestamp = self._old_base_timestamp if has_horizon else fact[_BATCH_FACTS * batch + 1]
        return False

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _is_last_of_a_producer(self, data: Octets, start: cython.Py_ssize_t) -> cython.bint:
        last_offset: cython.longlong = _integer(data, start, 8) + _integer(data, start + 23, 4)
        count: cython.Py_ssize_t = self._last_data_offsets.shape[0]
        here: cython.Py_ssize_t = self._next_last_data_offset
        while here < count and self._last_data_offsets[here] < last_offset:
            here += 1
        self._next_last_data_offset = here
        return here < count and self._last_data_offsets[here] == last_offset and _integer(data, start + 43, 8) >= 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]", stay="const unsigned char[::1]", out="unsigned char[::1]")
    def _copy(
        self,
        data: Octets,
        position: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        stay: Octets,
        out: bytearray | memoryview,
        to: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Copy the records that stay, their timestamps counted from the new base. Where the bytes after them go."""
        index: cython.Py_ssize_t
        behind_length: cython.Py_ssize_t
        behind_timestamp: cython.Py_ssize_t
        record_end: cython.Py_ssize_t
        delta: cython.longlong
        while position < end:
            behind_length = _behind_varint(data, position)
            record_end = behind_length + _varint(data, position)
            if stay[self._index >> 3] >> (self._index & 7) & 1:
                behind_timestamp = _behind_varint(data, behind_length + 1)
                if self._is_log_append_time:
                    delta = self._log_append_time - self._base_timestamp
                else:
                    delta = self._old_base_timestamp + _varint(data, behind_length + 1) - self._base_timestamp
                to = _put_varint(out, to, 1 + _varint_size(delta) + record_end - behind_timestamp)
                out[to] = 0  # the attributes
                to = _put_varint(out, to + 1, delta)
                for index in range(record_end - behind_timestamp):
                    out[to + index] = data[behind_timestamp + index]
                to += record_end - behind_timestamp
            self._index += 1
            position = record_end
        return to

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _put_header(self, data: Octets, start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.void:
        """The header of the batch at `start` for a new one of `size` bytes, which is complete with it but for its
        checksum. Offsets, leader epoch, producer and sequence stay as they were."""
        index: cython.int
        for index in range(_HEADER_SIZE):
            self._out[self.size + index] = data[start + index]
        _put_integer(self._out, self.size + 8, size - 12, 4)
        _put_integer(self._out, self.size + 17, 0, 4)
        _put_integer(self._out, self.size + 21, self._attributes, 2)
        _put_integer(self._out, self.size + 27, self._base_timestamp, 8)
        _put_integer(self._out, self.size + 35, self._max_timestamp, 8)
        _put_integer(self._out, self.size + 57, self._count, 4)
        self.size += size


@cython.final
@cython.cclass
class IndexPoints:
    """Which batches of a new segment its sparse indexes name, and the largest timestamp on the way."""

    max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    offset_of_max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    last_offset = cython.declare(cython.longlong, visibility="readonly")
    _interval_bytes: cython.longlong
    _bytes_since: cython.longlong

    def __init__(self, interval_bytes: int) -> None:
        self.max_timestamp = -1
        self.offset_of_max_timestamp = -1
        self.last_offset = -1
        self._interval_bytes = interval_bytes
        self._bytes_since = 0

    @cython.locals(data="const unsigned char[::1]")
    def add(self, batches: Octets, position: cython.longlong) -> list[tuple[int, int, int, int]]:
        """Batches that go to `position` of the file and behind. For each that is named: its last offset and position,
        and the largest timestamp up to it with the offset where it was seen."""
        data = batches
        points: list[tuple[int, int, int, int]] = []
        here: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = len(batches)
        size: cython.Py_ssize_t
        timestamp: cython.longlong
        while here < end:
            size = _integer(data, here + 8, 4) + 12
            self.last_offset = _integer(data, here, 8) + _integer(data, here + 23, 4)
            timestamp = _integer(data, here + 35, 8)
            if timestamp > self.max_timestamp:
                self.max_timestamp = timestamp
                self.offset_of_max_timestamp = self.last_offset
            if self._bytes_since > self._interval_bytes:
                points.append((self.last_offset, position + here, self.max_timestamp, self.offset_of_max_timestamp))
                self._bytes_since = 0
            self._bytes_since += size
            here += size
        return points
