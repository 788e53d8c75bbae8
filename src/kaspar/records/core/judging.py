"""Decides which records stay in a compacted log, by Kafka's rules (Cleaner). Part of the compiled core; the rules of
key_table.py apply.

Records beyond the end of the key map stay. A record with a key stays if it is not older than the map's offset for the
key, but a tombstone only until the delete horizon of its batch. Control records stay. Other records without a key do
not.
"""

import cython

from kaspar.records.codec import Octets

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
    from cython.cimports.kaspar.records import layout
    from cython.cimports.kaspar.records.core import plain_runs, record_fields
else:
    from kaspar.base import primitives
    from kaspar.records import layout
    from kaspar.records.core import plain_runs, record_fields

IS_COMPILED: bool = cython.compiled

BATCH_FACTS = 4  # records that stay, the first and the largest of their timestamps, whether a tombstone is among them

_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)


@cython.final
@cython.cclass
class RecordJudge:
    """Decides in three steps: `collect` reads records, the caller looks up `lookup_keys` and writes their last offsets
    to `lookup_offsets`, and `settle` decides. The result is a bit for each record in `stays` and BATCH_FACTS numbers
    for each batch in `facts`. It is valid until the next run of batches, or the next batch, is collected.
    """

    records_read = cython.declare(cython.longlong, visibility="readonly")
    records_kept = cython.declare(cython.longlong, visibility="readonly")
    records_without_key = cython.declare(cython.longlong, visibility="readonly")
    is_damaged = cython.declare(cython.bint, visibility="readonly")
    stays = cython.declare(bytearray, visibility="readonly")
    facts = cython.declare(memoryview, visibility="readonly")
    lookup_keys = cython.declare(memoryview, visibility="readonly")
    lookup_offsets = cython.declare(memoryview, visibility="readonly")
    lookup_count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _stays = cython.declare("unsigned char[::1]")
    _facts = cython.declare("long long[::1]")
    _counts = cython.declare("long long[::1]")  # collected records of each batch that are not settled
    _lookup_keys = cython.declare("long long[::1]")
    _lookup_offsets = cython.declare("long long[::1]")
    _latest_offset: cython.longlong
    _now_ms: cython.longlong
    # The collected records. `_known`: 0 is removed, 1 stays, 2 is a tombstone that stays; 3 and 4 are like 1 and 2, if
    # the map confirms it.
    _offsets = cython.declare("long long[::1]")
    _timestamps = cython.declare("long long[::1]")
    _known = cython.declare("unsigned char[::1]")
    _held: cython.Py_ssize_t
    _index: cython.longlong  # index of the next record in the result
    _batch: cython.Py_ssize_t
    # The batch that is being collected.
    _base_offset: cython.longlong
    _attributes: cython.int
    _base_timestamp: cython.longlong
    _max_timestamp: cython.longlong
    _left: cython.longlong

    def __init__(self, latest_offset: int, now_ms: int) -> None:
        """`latest_offset`: the last offset that the map covers."""
        self._latest_offset = latest_offset
        self._now_ms = now_ms
        self.records_read = 0
        self.records_kept = 0
        self.records_without_key = 0
        self.is_damaged = False
        self.stays = bytearray()
        self.facts = self.lookup_keys = self.lookup_offsets = memoryview(b"").cast("q")
        self._known = bytearray()
        self._begin_verdict(1, 1)
        self._make_room(1)

    @cython.locals(data="const unsigned char[::1]")
    def collect_plain(self, buffer: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> int:
        """Collect the whole batches in `buffer[start:end]`, up to one that is not plain or damaged, and return its
        position.
        """
        data = buffer
        if start < 0 or end > len(buffer):
            raise ValueError(f"{start} to {end} is outside a buffer of {len(buffer)} bytes")
        run: plain_runs.RunSize
        with cython.nogil:
            run = plain_runs.measure_run(data, start, end)
        self._begin_verdict(run.records + 1, run.batches + 1)
        self._make_room(run.records + 1)
        with cython.nogil:
            while plain_runs.is_plain(data, start, end):
                if not self._collect_batch(data, start, end):
                    break
                start += layout.batch_size(data, start)
        return start

    @cython.locals(data="const unsigned char[::1]")
    def collect_batch(self, buffer: Octets, start: cython.Py_ssize_t, drops_records: cython.bint) -> None:
        """Collect the one batch at `start`, which is not compressed or of which no record stays."""
        data = buffer
        end: cython.Py_ssize_t = len(buffer)
        if start < 0 or end - start < layout.HEADER_SIZE:
            raise ValueError(f"no batch can be at position {start} of {len(buffer)} bytes")
        records: cython.Py_ssize_t = 0
        if not drops_records:
            records = plain_runs.most_records(
                layout.batch_size(data, start) - layout.HEADER_SIZE,
                primitives.read_int32(data, start + layout.COUNT_AT),
            )
        self._begin_verdict(records + 1, 1)
        self._make_room(records + 1)
        if drops_records:
            self._begin(data, start)
            self.records_read += self._left
        elif primitives.read_int32(data, start + layout.LENGTH_AT) < _GIL_RELEASE_BYTES:
            self._collect_batch(data, start, end)
        else:
            with cython.nogil:
                self._collect_batch(data, start, end)

    @cython.locals(data="const unsigned char[::1]")
    def begin(self, buffer: Octets, start: cython.Py_ssize_t) -> None:
        """Begin the compressed batch at `start`: call `collect` and `settle` for each inflated piece, then `finish`."""
        data = buffer
        if start < 0 or len(buffer) - start < layout.HEADER_SIZE:
            raise ValueError(f"no batch can be at position {start} of {len(buffer)} bytes")
        self._begin_verdict(primitives.read_int32(data, start + layout.COUNT_AT) + 1, 1)
        self._begin(data, start)

    @cython.locals(data="const unsigned char[::1]")
    def collect(self, records: Octets) -> bool:
        """Collect whole records of the batch. Returns False if it is damaged."""
        data = records
        end: cython.Py_ssize_t = len(records)
        self._make_room(plain_runs.most_records(end, self._left) + 1)
        if end < _GIL_RELEASE_BYTES:
            self._collect(data, 0, end)
        else:
            with cython.nogil:
                self._collect(data, 0, end)
        return not self.is_damaged

    def settle(self) -> None:
        """Decide about the collected records, after `lookup_offsets` has been filled."""
        if self._held * layout.SMALLEST_RECORD_SIZE < _GIL_RELEASE_BYTES:
            self._settle()
        else:
            with cython.nogil:
                self._settle()

    def finish(self) -> bool:
        """End the batch after the last piece. Returns False if it is damaged."""
        if self._left:
            self.is_damaged = True
        return not self.is_damaged

    def _begin_verdict(self, records: cython.Py_ssize_t, batches: cython.Py_ssize_t) -> None:
        """Make room for the result of this many records and batches."""
        self._index = 0
        self._batch = 0
        self._held = 0
        self.lookup_count = 0
        if records > 8 * len(self.stays):
            self.stays = bytearray(records // 8 + 1)
            self._stays = self.stays
        if BATCH_FACTS * batches > len(self.facts):
            self.facts = memoryview(bytearray(8 * BATCH_FACTS * batches)).cast("q")
            self._facts = self.facts
            self._counts = memoryview(bytearray(8 * batches)).cast("q")

    def _make_room(self, records: cython.Py_ssize_t) -> None:
        """Make room to collect this many records."""
        self._held = 0
        self.lookup_count = 0
        if records > len(self.lookup_offsets):
            self.lookup_keys = memoryview(bytearray(16 * records)).cast("q")
            self._lookup_keys = self.lookup_keys
            self.lookup_offsets = memoryview(bytearray(8 * records)).cast("q")
            self._lookup_offsets = self.lookup_offsets
            self._offsets = memoryview(bytearray(8 * records)).cast("q")
            self._timestamps = memoryview(bytearray(8 * records)).cast("q")
            self._known = bytearray(records)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _begin(self, data: Octets, start: cython.Py_ssize_t) -> cython.void:
        fact: cython.Py_ssize_t = 4 * self._batch
        self._base_offset = primitives.read_int64(data, start)
        self._attributes = data[start + layout.LOW_ATTRIBUTES_AT]
        self._base_timestamp = primitives.read_int64(data, start + layout.BASE_TIMESTAMP_AT)
        self._max_timestamp = primitives.read_int64(data, start + layout.MAX_TIMESTAMP_AT)
        self._left = primitives.read_int32(data, start + layout.COUNT_AT)
        self._counts[self._batch] = 0
        self._facts[fact] = 0
        self._facts[fact + 1] = -1
        self._facts[fact + 2] = -1
        self._facts[fact + 3] = 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _collect_batch(self, data: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Collect one batch. Returns False if it is damaged."""
        size: cython.Py_ssize_t = layout.batch_size(data, start)
        if size < layout.HEADER_SIZE or size > end - start:
            self.is_damaged = True
            return False
        self._begin(data, start)
        self._collect(data, start + layout.HEADER_SIZE, start + size)
        if self._left:
            self.is_damaged = True
        self._batch += 1
        return not self.is_damaged

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _collect(self, data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.void:
        keeps_tombstones: cython.bint = (
            not self._attributes & layout.DELETE_HORIZON_FLAG or self._now_ms < self._base_timestamp
        )
        is_control: cython.bint = self._attributes & layout.CONTROL_FLAG != 0
        is_log_append_time: cython.bint = self._attributes & layout.LOG_APPEND_TIME_FLAG != 0
        held: cython.Py_ssize_t = self._held
        asked: cython.Py_ssize_t = self.lookup_count
        known: cython.int
        offset: cython.longlong
        record: record_fields.RecordFields
        while position < end:
            record = record_fields.read_record(data, position, end)
            if self._left <= 0 or record.problem:
                self.is_damaged = True
                return
            position = record.end
            offset = self._base_offset + record.offset_delta
            known = 1 if record.value_size >= 0 else 2
            if offset <= self._latest_offset and not is_control:
                if record.key_size < 0:
                    self.records_without_key += 1
                    known = 0
                elif known == 2 and not keeps_tombstones:
                    known = 0
                else:
                    known += 2
                    self._lookup_keys[2 * asked] = record.key_at
                    self._lookup_keys[2 * asked + 1] = record.key_size
                    asked += 1
            self._known[held] = known
            self._offsets[held] = offset
            self._timestamps[held] = (
                self._max_timestamp
                if is_log_append_time
                else self._base_timestamp + primitives.read_varlong(data, record.timestamp_at, record.timestamp_size)
            )
            held += 1
            self._left -= 1
        self._counts[self._batch] += held - self._held
        self._held = held
        self.lookup_count = asked

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _settle(self) -> cython.void:
        batch: cython.Py_ssize_t
        fact: cython.Py_ssize_t
        place: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = 0
        lookup: cython.Py_ssize_t = 0
        known: cython.int
        bit: cython.int
        for batch in range(self._batch if self._batch else 1):
            fact = 4 * batch
            end += self._counts[batch]
            self._counts[batch] = 0
            while place < end:
                known = self._known[place]
                if known > 2:
                    known = known - 2 if self._offsets[place] >= self._lookup_offsets[lookup] else 0
                    lookup += 1
                bit = 1 << (self._index & 7)
                if known:
                    self._stays[self._index >> 3] |= bit
                    if self._facts[fact] == 0:
                        self._facts[fact + 1] = self._timestamps[place]
                    if self._timestamps[place] > self._facts[fact + 2]:
                        self._facts[fact + 2] = self._timestamps[place]
                    if known == 2:
                        self._facts[fact + 3] = 1
                    self._facts[fact] += 1
                    self.records_kept += 1
                else:
                    self._stays[self._index >> 3] &= 0xFF ^ bit
                self._index += 1
                place += 1
        self.records_read += place
