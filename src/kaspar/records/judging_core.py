"""The compiled core of compaction, second of three: reads the keys of a log's records for the table of keys, and judges
which records stay, by Kafka's rules:

what the map has not reached stays; of a key, what is not older than the map's offset stays, but a tombstone only until
the delete horizon of its batch; control records stay; a record without a key goes.

The same rules hold for its code as for records/compaction_core.py, which knows the last offsets of keys.

There is room for as many records as a batch says that it has, but never for more than fit into its bytes. A batch with
more records than it says is damaged before one of them could be written where there is no room.
"""

import cython

from kaspar.records.codec import Octets

IS_COMPILED: bool = cython.compiled

BATCH_FACTS = 4  # records that stay, the first and the largest of their timestamps, whether a tombstone is among them

_HEADER_SIZE = cython.declare(cython.int, 61)
_SMALLEST_RECORD = cython.declare(cython.int, 7)
_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)

_NOT_PLAIN = cython.declare(cython.int, 0x37)  # compressed, in a transaction, or control records
_LOG_APPEND_TIME = cython.declare(cython.int, 0x08)
_CONTROL = cython.declare(cython.int, 0x20)
_DELETE_HORIZON = cython.declare(cython.int, 0x40)


# --- Numbers ----------------------------------------------------------------------------------------------------------


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
@cython.locals(data="const unsigned char[::1]")
def _number(data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.longlong:
    """The bits of the int32 at `position`, three bits to the left, and in these how many bytes it takes; -1 if it is
    cut off or too long."""
    low_32_bits: cython.ulonglong = 0xFFFF_FFFF
    raw: cython.ulonglong = 0
    octet: cython.ulonglong
    size: cython.int = 0
    while position < end and size < 5:
        octet = data[position]
        raw |= (octet & 0x7F) << (7 * size)
        position += 1
        size += 1
        if octet < 0x80:
            return ((raw & low_32_bits) << 3) | size
    return -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _value(number: cython.longlong) -> cython.longlong:
    """The int32 in what `_number` returned."""
    return (number >> 4) ^ -((number >> 3) & 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _most_records(size: cython.longlong, said: cython.longlong) -> cython.longlong:
    """How many records can be read from so many bytes of a batch that says that it has, or still has, so many."""
    most: cython.longlong = size // _SMALLEST_RECORD if size > 0 else 0
    if said < most:
        most = said if said > 0 else 0
    return most


# --- Records ----------------------------------------------------------------------------------------------------------


@cython.final
@cython.cclass
class _Cursor:
    """The parts of one record that compaction looks at. Positions are those of the data that it was read from."""

    end: cython.Py_ssize_t
    timestamp_delta: cython.longlong
    behind_timestamp: cython.Py_ssize_t
    offset_delta: cython.longlong
    key: cython.Py_ssize_t
    key_size: cython.longlong  # -1: no key
    has_value: cython.bint

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _read(self, data: Octets, position: cython.Py_ssize_t, limit: cython.Py_ssize_t) -> cython.bint:
        """The record at `position`. False if there can be none, or if it does not end by `limit`."""
        mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
        sign: cython.ulonglong = 0x8000_0000_0000_0000
        number: cython.longlong = _number(data, position, limit)
        length: cython.longlong = _value(number)
        end: cython.Py_ssize_t
        raw: cython.ulonglong = 0
        octet: cython.ulonglong = 0x80
        shift: cython.int = 0
        size: cython.longlong
        if number < 0:
            return False
        position += number & 7
        if length < 6 or length > limit - position:
            return False
        end = position + length
        position += 1  # the attributes, which mean nothing yet
        while octet >= 0x80:
            if position >= end or shift >= 70:
                return False
            octet = data[position]
            raw |= (octet & 0x7F) << shift
            shift += 7
            position += 1
        raw &= mask
        raw = (raw >> 1) ^ ((0 - (raw & 1)) & mask)
        self.timestamp_delta = (raw ^ sign) - sign
        self.behind_timestamp = position
        number = _number(data, position, end)
        if number < 0:
            return False
        self.offset_delta = _value(number)
        position += number & 7
        number = _number(data, position, end)
        if number < 0:
            return False
        size = _value(number)
        position += number & 7
        if size > end - position:
            return False
        self.key = position
        self.key_size = size
        if size > 0:
            position += size
        number = _number(data, position, end)
        if number < 0 or _value(number) > end - position - (number & 7):
            return False
        self.has_value = _value(number) >= 0
        self.end = end
        return True


@cython.final
@cython.cclass
class _Run:
    """How much there is, at the most, in a run of whole plain batches."""

    batches: cython.Py_ssize_t
    records: cython.longlong

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _measure(self, data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.void:
        size: cython.Py_ssize_t
        self.batches = 0
        self.records = 0
        while end - position >= _HEADER_SIZE and not data[position + 22] & _NOT_PLAIN:
            size = _integer(data, position + 8, 4) + 12
            if size < _HEADER_SIZE or size > end - position:
                break
            self.batches += 1
            self.records += _most_records(size - _HEADER_SIZE, _integer(data, position + 57, 4))
            position += size


@cython.final
@cython.cclass
class KeyCollector:
    """Finds the keys of records: in `keys` is where each begins in the bytes that were read, and its size, in `offsets`
    the offset of its record, and in `count` how many there are, until the next ones are collected."""

    keys = cython.declare(memoryview, visibility="readonly")
    offsets = cython.declare(memoryview, visibility="readonly")
    count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    last_offset = cython.declare(cython.longlong, visibility="readonly")  # of the last batch that was read; -1: none
    records_read = cython.declare(cython.longlong, visibility="readonly")
    is_damaged = cython.declare(cython.bint, visibility="readonly")
    _keys = cython.declare("long long[::1]")
    _offsets = cython.declare("long long[::1]")
    _cursor: _Cursor
    _run: _Run

    def __init__(self) -> None:
        self.keys = self.offsets = memoryview(b"").cast("q")
        self.count = 0
        self.last_offset = -1
        self.records_read = 0
        self.is_damaged = False
        self._cursor = _Cursor()
        self._run = _Run()

    @cython.locals(data="const unsigned char[::1]")
    def collect_plain(
        self,
        buffer: Octets,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        first_offset: cython.longlong,
        end_offset: cython.longlong,
    ) -> int:
        """The keys from `first_offset` on of the whole batches in `buffer[start:end]`, until one is not plain, not
        below `end_offset`, or damaged: where that one begins."""
        data = buffer
        if start < 0 or end > len(buffer):
            raise ValueError(f"no such place in {len(buffer)} bytes: {start} to {end}")
        run: _Run = self._run
        record: _Cursor = self._cursor
        size: cython.Py_ssize_t
        base_offset: cython.longlong
        said: cython.longlong
        begin: cython.Py_ssize_t
        before: cython.Py_ssize_t
        with cython.nogil:
            run._measure(data, start, end)
        self._begin(run.records)
        with cython.nogil:
            while end - start >= _HEADER_SIZE and not data[start + 22] & _NOT_PLAIN:
                base_offset = _integer(data, start, 8)
                if base_offset >= end_offset:
                    break
                size = _integer(data, start + 8, 4) + 12
                before = self.count
                self.is_damaged = size < _HEADER_SIZE or size > end - start
                if not self.is_damaged:
                    said = _integer(data, start + 57, 4)
                    begin = start + _HEADER_SIZE
                    if self._collect(data, begin, start + size, base_offset, first_offset, said, record) != said:
                        self.is_damaged = True
                if self.is_damaged:
                    self.count = before
                    break
                self.last_offset = base_offset + _integer(data, start + 23, 4)
                start += size
        return start

    @cython.locals(data="const unsigned char[::1]")
    def collect(
        self, records: Octets, base_offset: cython.longlong, first_offset: cython.longlong, most: cython.longlong
    ) -> int:
        """The keys of whole records of one batch, which has `most` left: how many records there are."""
        data = records
        end: cython.Py_ssize_t = len(records)
        self._begin(_most_records(end, most))
        record: _Cursor = self._cursor
        found: cython.longlong
        if end < _GIL_RELEASE_BYTES:
            return self._collect(data, 0, end, base_offset, first_offset, most, record)
        with cython.nogil:
            found = self._collect(data, 0, end, base_offset, first_offset, most, record)
        return found

    def _begin(self, records: cython.Py_ssize_t) -> None:
        """With room for the keys of so many."""
        self.count = 0
        self.last_offset = -1
        self.is_damaged = False
        if records > len(self.offsets) or not len(self.offsets):
            self.keys = memoryview(bytearray(16 * (records + 1))).cast("q")
            self._keys = self.keys
            self.offsets = memoryview(bytearray(8 * (records + 1))).cast("q")
            self._offsets = self.offsets

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _collect(
        self,
        data: Octets,
        position: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        base_offset: cython.longlong,
        first_offset: cython.longlong,
        most: cython.longlong,
        record: _Cursor,
    ) -> cython.longlong:
        """How many there are. More than `most`, for which there is no room, are damage."""
        found: cython.longlong = 0
        count: cython.Py_ssize_t = self.count
        offset: cython.longlong
        while position < end:
            if found >= most or not record._read(data, position, end):
                self.is_damaged = True
                break
            offset = base_offset + record.offset_delta
            if record.key_size >= 0 and offset >= first_offset:
                self._keys[2 * count] = record.key
                self._keys[2 * count + 1] = record.key_size
                self._offsets[count] = offset
                count += 1
            found += 1
            position = record.end
        self.count = count
        self.records_read += found
        return found


@cython.final
@cython.cclass
class RecordJudge:
    """Judges in three steps: `collect` reads records, the caller has the map answer for the keys that are `asked`, and
    `settle` says what stays. That is a bit for each record in `stays`, and BATCH_FACTS numbers for each batch in
    `facts`, which hold until the next run of batches, or the next batch, is collected.
    """

    records_read = cython.declare(cython.longlong, visibility="readonly")
    records_kept = cython.declare(cython.longlong, visibility="readonly")
    records_without_key = cython.declare(cython.longlong, visibility="readonly")
    is_damaged = cython.declare(cython.bint, visibility="readonly")
    stays = cython.declare(bytearray, visibility="readonly")
    facts = cython.declare(memoryview, visibility="readonly")
    asked = cython.declare(memoryview, visibility="readonly")
    answers = cython.declare(memoryview, visibility="readonly")
    asked_count = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _stays = cython.declare("unsigned char[::1]")
    _facts = cython.declare("long long[::1]")
    _counts = cython.declare("long long[::1]")  # records of each batch that were collected and are not settled
    _asked = cython.declare("long long[::1]")
    _answers = cython.declare("long long[::1]")
    _latest_offset: cython.longlong
    _now_ms: cython.longlong
    _cursor: _Cursor
    _run: _Run
    # The records that were collected. What is known: 0 goes, 1 stays, 2 a tombstone that stays; 3 and 4: so if the map
    # agrees.
    _offsets = cython.declare("long long[::1]")
    _timestamps = cython.declare("long long[::1]")
    _known = cython.declare("unsigned char[::1]")
    _held: cython.Py_ssize_t
    _index: cython.longlong  # of the next record among all of which the verdict holds
    _batch: cython.Py_ssize_t
    # The batch that is being collected.
    _base_offset: cython.longlong
    _attributes: cython.int
    _base_timestamp: cython.longlong
    _max_timestamp: cython.longlong
    _left: cython.longlong

    def __init__(self, latest_offset: int, now_ms: int) -> None:
        """`latest_offset`: how far the map has come."""
        self._latest_offset = latest_offset
        self._now_ms = now_ms
        self._cursor = _Cursor()
        self._run = _Run()
        self.records_read = 0
        self.records_kept = 0
        self.records_without_key = 0
        self.is_damaged = False
        self.stays = bytearray()
        self.facts = self.asked = self.answers = memoryview(b"").cast("q")
        self._known = bytearray()
        self._begin_verdict(1, 1)
        self._make_room(1)

    @cython.locals(data="const unsigned char[::1]")
    def collect_plain(self, buffer: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> int:
        """The whole batches in `buffer[start:end]`, until one is not plain or is damaged: where it begins."""
        data = buffer
        if start < 0 or end > len(buffer):
            raise ValueError(f"no such place in {len(buffer)} bytes: {start} to {end}")
        run: _Run = self._run
        with cython.nogil:
            run._measure(data, start, end)
        self._begin_verdict(run.records + 1, run.batches + 1)
        self._make_room(run.records + 1)
        record: _Cursor = self._cursor
        with cython.nogil:
            while end - start >= _HEADER_SIZE and not data[start + 22] & _NOT_PLAIN:
                if not self._collect_batch(data, start, end, record):
                    break
                start += _integer(data, start + 8, 4) + 12
        return start

    @cython.locals(data="const unsigned char[::1]")
    def collect_batch(self, buffer: Octets, start: cython.Py_ssize_t, drops_records: cython.bint) -> None:
        """The one batch at `start`, which is not compressed or has none of its records stay."""
        data = buffer
        end: cython.Py_ssize_t = len(buffer)
        if start < 0 or end - start < _HEADER_SIZE:
            raise ValueError(f"no batch can be at position {start} of {len(buffer)} bytes")
        records: cython.Py_ssize_t = 0
        if not drops_records:
            records = _most_records(_integer(data, start + 8, 4) + 12 - _HEADER_SIZE, _integer(data, start + 57, 4))
        self._begin_verdict(records + 1, 1)
        self._make_room(records + 1)
        record: _Cursor = self._cursor
        if drops_records:
            self._begin(data, start)
            self.records_read += self._left
        elif _integer(data, start + 8, 4) < _GIL_RELEASE_BYTES:
            self._collect_batch(data, start, end, record)
        else:
            with cython.nogil:
                self._collect_batch(data, start, end, record)

    @cython.locals(data="const unsigned char[::1]")
    def begin(self, buffer: Octets, start: cython.Py_ssize_t) -> None:
        """The batch at `start` comes in pieces, inflated: `collect` and `settle` each of them, then `finish`."""
        data = buffer
        if start < 0 or len(buffer) - start < _HEADER_SIZE:
            raise ValueError(f"no batch can be at position {start} of {len(buffer)} bytes")
        self._begin_verdict(_integer(data, start + 57, 4) + 1, 1)
        self._begin(data, start)

    @cython.locals(data="const unsigned char[::1]")
    def collect(self, records: Octets) -> bool:
        """Whole records of the batch. False if it is damaged."""
        data = records
        end: cython.Py_ssize_t = len(records)
        self._make_room(_most_records(end, self._left) + 1)
        record: _Cursor = self._cursor
        if end < _GIL_RELEASE_BYTES:
            self._collect(data, 0, end, record)
        else:
            with cython.nogil:
                self._collect(data, 0, end, record)
        return not self.is_damaged

    def settle(self) -> None:
        """The map has answered."""
        if self._held * _SMALLEST_RECORD < _GIL_RELEASE_BYTES:
            self._settle()
        else:
            with cython.nogil:
                self._settle()

    def finish(self) -> bool:
        """No more pieces come. False if the batch is damaged."""
        if self._left:
            self.is_damaged = True
        return not self.is_damaged

    def _begin_verdict(self, records: cython.Py_ssize_t, batches: cython.Py_ssize_t) -> None:
        """On so many at most."""
        self._index = 0
        self._batch = 0
        self._held = 0
        self.asked_count = 0
        if records > 8 * len(self.stays):
            self.stays = bytearray(records // 8 + 1)
            self._stays = self.stays
        if BATCH_FACTS * batches > len(self.facts):
            self.facts = memoryview(bytearray(8 * BATCH_FACTS * batches)).cast("q")
            self._facts = self.facts
            self._counts = memoryview(bytearray(8 * batches)).cast("q")

    def _make_room(self, records: cython.Py_ssize_t) -> None:
        """For so many more records to be collected."""
        self._held = 0
        self.asked_count = 0
        if records > len(self.answers):
            self.asked = memoryview(bytearray(16 * records)).cast("q")
            self._asked = self.asked
            self.answers = memoryview(bytearray(8 * records)).cast("q")
            self._answers = self.answers
            self._offsets = memoryview(bytearray(8 * records)).cast("q")
            self._timestamps = memoryview(bytearray(8 * records)).cast("q")
            self._known = bytearray(records)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _begin(self, data: Octets, start: cython.Py_ssize_t) -> cython.void:
        fact: cython.Py_ssize_t = 4 * self._batch
        self._base_offset = _integer(data, start, 8)
        self._attributes = data[start + 22]
        self._base_timestamp = _integer(data, start + 27, 8)
        self._max_timestamp = _integer(data, start + 35, 8)
        self._left = _integer(data, start + 57, 4)
        self._counts[self._batch] = 0
        self._facts[fact] = 0
        self._facts[fact + 1] = -1
        self._facts[fact + 2] = -1
        self._facts[fact + 3] = 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _collect_batch(
        self, data: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t, record: _Cursor
    ) -> cython.bint:
        """False if it is damaged."""
        size: cython.Py_ssize_t = _integer(data, start + 8, 4) + 12
        if size < _HEADER_SIZE or size > end - start:
            self.is_damaged = True
            return False
        self._begin(data, start)
        self._collect(data, start + _HEADER_SIZE, start + size, record)
        if self._left:
            self.is_damaged = True
        self._batch += 1
        return not self.is_damaged

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _collect(
        self, data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t, record: _Cursor
    ) -> cython.void:
        keeps_tombstones: cython.bint = not self._attributes & _DELETE_HORIZON or self._now_ms < self._base_timestamp
        is_control: cython.bint = self._attributes & _CONTROL != 0
        is_log_append_time: cython.bint = self._attributes & _LOG_APPEND_TIME != 0
        held: cython.Py_ssize_t = self._held
        asked: cython.Py_ssize_t = self.asked_count
        known: cython.int
        offset: cython.longlong
        while position < end:
            if self._left <= 0 or not record._read(data, position, end):
                self.is_damaged = True
                return
            position = record.end
            offset = self._base_offset + record.offset_delta
            known = 1 if record.has_value else 2
            if offset <= self._latest_offset and not is_control:
                if record.key_size < 0:
                    self.records_without_key += 1
                    known = 0
                elif known == 2 and not keeps_tombstones:
                    known = 0
                else:
                    known += 2
                    self._asked[2 * asked] = record.key
                    self._asked[2 * asked + 1] = record.key_size
                    asked += 1
            self._known[held] = known
            self._offsets[held] = offset
            self._timestamps[held] = (
                self._max_timestamp if is_log_append_time else self._base_timestamp + record.timestamp_delta
            )
            held += 1
            self._left -= 1
        self._counts[self._batch] += held - self._held
        self._held = held
        self.asked_count = asked

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _settle(self) -> cython.void:
        batch: cython.Py_ssize_t
        fact: cython.Py_ssize_t
        place: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = 0
        answer: cython.Py_ssize_t = 0
        known: cython.int
        bit: cython.int
        for batch in range(self._batch if self._batch else 1):
            fact = 4 * batch
            end += self._counts[batch]
            self._counts[batch] = 0
            while place < end:
                known = self._known[place]
                if known > 2:
                    known = known - 2 if self._offsets[place] >= self._answers[answer] else 0
                    answer += 1
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
