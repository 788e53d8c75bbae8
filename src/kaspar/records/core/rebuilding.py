"""Writes new batches from the records that stay in a compacted log. Part of the compiled core; the rules of
key_table.py apply. The batches were read by judging.py before, so their structure is known to be valid.

A batch is rebuilt as Kafka does it (MemoryRecords.filterTo): the base timestamp is that of the first record that stays,
or the delete horizon if there is one, and every record's timestamp delta is relative to it.
"""

import cython
from crc32c import crc32c

from kaspar.records.codec import Octets

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
    from cython.cimports.kaspar.records import layout
else:
    from kaspar.base import primitives
    from kaspar.records import layout

IS_COMPILED: bool = cython.compiled

_BATCH_FACTS = cython.declare(cython.int, 4)
_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)

# A rebuilt record may grow: its length from one byte to five, its timestamp from one to ten.
_MOST_GROWTH = cython.declare(cython.int, 13)

_KEPT_WHEN_EMPTY = cython.declare(cython.int, 0x38)  # timestamp type, transactional, control


@cython.final
@cython.cclass
class BatchRebuilder:
    """Collects the batches that stay in `out`, one after the other, until `take`. They are passed in offset order, each
    with the result of RecordJudge for it."""

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
    _index: cython.longlong  # index of the next record in `stays`

    def __init__(self, last_data_offsets: memoryview, end_offset: int, delete_horizon_ms: int) -> None:
        """`last_data_offsets`: int64, sorted: the last offset of each active producer's last batch.
        `delete_horizon_ms`: set in batches that need a delete horizon and have none."""
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
        """Add the batches in `buffer[start:end]`, uncompressed, with their results."""
        data = buffer
        stay = stays
        fact = facts
        batch: cython.Py_ssize_t = 0
        if start < 0 or end > len(buffer):
            raise ValueError(f"{start} to {end} is outside a buffer of {len(buffer)} bytes")
        room: cython.Py_ssize_t = end - start
        position: cython.Py_ssize_t = start
        with cython.nogil:
            while position < end:
                room += _MOST_GROWTH * fact[_BATCH_FACTS * batch]
                position += layout.batch_size(data, position)
                batch += 1
        self._make_room(room)
        self._index = 0
        batch = 0
        with cython.nogil:
            while start < end:
                self._add(data, start, stay, fact, batch, False, False)
                start += layout.batch_size(data, start)
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
        """Add the one batch at `start`, which is uncompressed or of which no record stays."""
        data = buffer
        stay = stays
        fact = facts
        self._make_room(layout.batch_size(data, start) + _MOST_GROWTH * fact[0])
        self._index = 0
        if primitives.read_int32(data, start + layout.LENGTH_AT) < _GIL_RELEASE_BYTES:
            self._add(data, start, stay, fact, 0, ends_nothing, keeps_empty)
        else:
            with cython.nogil:
                self._add(data, start, stay, fact, 0, ends_nothing, keeps_empty)

    @cython.locals(data="const unsigned char[::1]", fact="const long long[::1]")
    def begin(self, buffer: Octets, start: cython.Py_ssize_t, facts: Octets) -> bool:
        """Begin the compressed batch at `start`. Returns True if it has to be rebuilt: the caller then passes its
        records through `copy`, in pieces, compresses them and calls `put_rebuilt`."""
        data = buffer
        fact = facts
        self._make_room(layout.batch_size(data, start))
        self._index = 0
        return not self._settle(data, start, fact, 0, False, False)

    @cython.locals(data="const unsigned char[::1]", stay="const unsigned char[::1]", out="unsigned char[::1]")
    def copy(self, records: Octets, stays: Octets) -> memoryview:
        """Copy the records that stay, in the form that they have in the new batch."""
        data = records
        stay = stays
        end: cython.Py_ssize_t = len(records)
        most: cython.Py_ssize_t = end // layout.SMALLEST_RECORD_SIZE
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
        """Add the batch at `start`, with these compressed records instead of its own."""
        data = buffer
        size: cython.Py_ssize_t = layout.HEADER_SIZE + len(records)
        self._make_room(size)
        memoryview(self.out)[self.size + layout.HEADER_SIZE : self.size + size] = records
        self._put_header(data, start, size)

    def take(self) -> memoryview:
        """Return the batches that stay, with CRCs computed for the new ones. They are valid until the next batches are
        added, which overwrite them."""
        view = memoryview(self.out)
        position: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t
        crc: cython.longlong
        while position < self.size:
            size = layout.batch_size(self._out, position)
            if primitives.read_int32(self._out, position + layout.CRC_AT) == 0:
                crc = crc32c(view[position + layout.CRC_COVERS_FROM : position + size], 0, size >= _GIL_RELEASE_BYTES)
                primitives.write_int32(self._out, position + layout.CRC_AT, crc)
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
            end = start + layout.batch_size(data, start)
            end = self._copy(data, start + layout.HEADER_SIZE, end, stay, self._out, self.size + layout.HEADER_SIZE)
            self._put_header(data, start, end - self.size)
        self._index = first + primitives.read_int32(data, start + layout.COUNT_AT)

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
        """Drop, empty or keep the batch unchanged. Returns False if it has to be rebuilt from some of its records."""
        size: cython.Py_ssize_t = layout.batch_size(data, start)
        last_offset: cython.longlong = layout.last_offset(data, start)
        attributes: cython.int = data[start + layout.LOW_ATTRIBUTES_AT]
        has_horizon: cython.bint = attributes & layout.DELETE_HORIZON_FLAG != 0
        sets_horizon: cython.bint = not has_horizon and (fact[_BATCH_FACTS * batch + 3] != 0 or ends_nothing)
        self._count = fact[_BATCH_FACTS * batch]
        self._old_base_timestamp = primitives.read_int64(data, start + layout.BASE_TIMESTAMP_AT)
        self._log_append_time = primitives.read_int64(data, start + layout.MAX_TIMESTAMP_AT)
        self._is_log_append_time = attributes & layout.LOG_APPEND_TIME_FLAG != 0
        if self._count == 0:
            # An empty batch keeps its producer's last sequence, or the offset where the cleaning ended.
            if keeps_empty or last_offset + 1 == self._end_offset or self._is_last_of_a_producer(data, start):
                self._attributes = attributes & _KEPT_WHEN_EMPTY
                self._base_timestamp = -1
                self._max_timestamp = self._log_append_time
                self._put_header(data, start, layout.HEADER_SIZE)
            return True
        if self._count == primitives.read_int32(data, start + layout.COUNT_AT) and not sets_horizon:
            primitives.copy_bytes(self._out, self.size, data, start, size)
            self.size += size
            return True
        self._attributes = attributes
        self._max_timestamp = fact[_BATCH_FACTS * batch + 2]
        if sets_horizon:
            self._attributes = attributes | layout.DELETE_HORIZON_FLAG
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
        last_offset: cython.longlong = layout.last_offset(data, start)
        count: cython.Py_ssize_t = self._last_data_offsets.shape[0]
        here: cython.Py_ssize_t = self._next_last_data_offset
        while here < count and self._last_data_offsets[here] < last_offset:
            here += 1
        self._next_last_data_offset = here
        return (
            here < count
            and self._last_data_offsets[here] == last_offset
            and primitives.read_int64(data, start + layout.PRODUCER_ID_AT) >= 0
        )

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
        """Copy the records that stay, with timestamps relative to the new base. Returns the position after them."""
        varint: cython.longlong
        rest: cython.Py_ssize_t
        timestamp_size: cython.Py_ssize_t
        behind_length: cython.Py_ssize_t
        behind_timestamp: cython.Py_ssize_t
        record_end: cython.Py_ssize_t
        delta: cython.longlong
        while position < end:
            varint = primitives.read_varint(data, position, end)
            behind_length = position + primitives.varint_size(varint)
            record_end = behind_length + primitives.varint_value(varint)
            if stay[self._index >> 3] >> (self._index & 7) & 1:
                timestamp_size = primitives.varlong_size(data, behind_length + 1, record_end)
                behind_timestamp = behind_length + 1 + timestamp_size
                if self._is_log_append_time:
                    delta = self._log_append_time - self._base_timestamp
                else:
                    delta = primitives.read_varlong(data, behind_length + 1, timestamp_size)
                    delta += self._old_base_timestamp - self._base_timestamp
                rest = record_end - behind_timestamp
                to = primitives.write_varlong(out, to, 1 + primitives.size_of_varlong(delta) + rest)
                out[to] = 0  # the attributes
                to = primitives.write_varlong(out, to + 1, delta)
                primitives.copy_bytes(out, to, data, behind_timestamp, rest)
                to += rest
            self._index += 1
            position = record_end
        return to

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _put_header(self, data: Octets, start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.void:
        """Write the header of a new batch of `size` bytes, from that of the batch at `start`. Only the CRC is missing
        then. Offsets, leader epoch, producer and sequence stay."""
        primitives.copy_bytes(self._out, self.size, data, start, layout.HEADER_SIZE)
        primitives.write_int32(self._out, self.size + layout.LENGTH_AT, size - layout.LENGTH_OVERHEAD)
        primitives.write_int32(self._out, self.size + layout.CRC_AT, 0)
        primitives.write_int16(self._out, self.size + layout.ATTRIBUTES_AT, self._attributes)
        primitives.write_int64(self._out, self.size + layout.BASE_TIMESTAMP_AT, self._base_timestamp)
        primitives.write_int64(self._out, self.size + layout.MAX_TIMESTAMP_AT, self._max_timestamp)
        primitives.write_int32(self._out, self.size + layout.COUNT_AT, self._count)
        self.size += size
