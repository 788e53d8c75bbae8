"""The compiled core of compaction: the loops that look at every key of a log, once to map it and once to filter by it.

Written in Cython's pure Python mode, by the rules of records/core.py: index loops over typed memoryviews, no pointers,
bounds checked here, and every number that wraps around in C is masked. The loops make no Python object for a record
and run without the GIL, so that a thread can clean beside an event loop. Nothing imports this module by name:
records/compaction.py loads one form of it.

What comes here was checked when it was appended, and its checksum again when it was read. So the loops look at no more
than they need; what they could not stand on stops them, and the caller asks `is_damaged`.
"""

import cython
from crc32c import crc32c

from kaspar.records.codec import Octets

IS_COMPILED: bool = cython.compiled

HEADER_SIZE = cython.declare(cython.int, 61)
SLOT_WORDS = 3  # two of the key's hash, and its offset plus one, so that memory full of zeros is an empty table

# The records of these have to be inflated, or somebody has to say whether they are dropped: compressed batches,
# transactions, control batches.
_NOT_PLAIN = cython.declare(cython.int, 0x37)
_LOG_APPEND_TIME = cython.declare(cython.int, 0x08)
_CONTROL = cython.declare(cython.int, 0x20)
_DELETE_HORIZON = cython.declare(cython.int, 0x40)

# A rebuilt record may take more bytes: its length up to five instead of one, its timestamp ten instead of one. A record
# has at least seven, so three times the room is always enough.
_MOST_GROWTH = cython.declare(cython.int, 3)
_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 256 * 1024)
_SMALLEST_RECORD = cython.declare(cython.int, 7)


# --- Numbers ----------------------------------------------------------------------------------------------------------


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _int64(data: Octets, position: cython.Py_ssize_t) -> cython.longlong:
    sign: cython.ulonglong = 0x8000_0000_0000_0000
    number: cython.ulonglong = 0
    index: cython.int
    for index in range(8):
        number = (number << 8) | data[position + index]
    return (number ^ sign) - sign


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.locals(data="const unsigned char[::1]")
def _int32(data: Octets, position: cython.Py_ssize_t) -> cython.longlong:
    sign: cython.longlong = 0x8000_0000
    number: cython.longlong = 0
    index: cython.int
    for index in range(4):
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


# --- Records and batches ----------------------------------------------------------------------------------------------


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


@cython.locals(data="const unsigned char[::1]")
def whole_records(buffer: Octets) -> tuple[int, int]:
    """Where the last whole record of `buffer` ends, and how many bytes from there on the next one takes, or 0 where
    that cannot be told yet. -1 if there can be no record."""
    data = buffer
    position: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(buffer)
    number: cython.longlong
    size: cython.longlong
    while position < end:
        number = _number(data, position, end)
        if number < 0:
            return -1 if end - position >= 5 else position, 0
        size = _value(number) + (number & 7)
        if size < _SMALLEST_RECORD:
            return -1, 0
        if size > end - position:
            return position, size
        position += size
    return position, 0


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
    while end - start >= HEADER_SIZE:
        size = _int32(data, start + 8) + 12
        if data[start + 16] != 2 or size < HEADER_SIZE:
            return start, "what stands there is no record batch"
        if size > end - start:
            break
        crc = crc32c(view[start + 21 : start + size], 0, size >= _GIL_RELEASE_BYTES)
        if crc != _int32(data, start + 17) & low_32_bits:
            return start, "the checksum is wrong"
        start += size
    return start, None


# --- The map ----------------------------------------------------------------------------------------------------------


@cython.final
@cython.cclass
class KeyTable:
    """The last offset of each key. A key is its hash: SipHash-2-4 of 128 bits under a secret seed, so that nobody can
    choose keys that are taken for one another, or that crowd together in the table."""

    slot_count = cython.declare(cython.longlong, visibility="readonly")
    capacity = cython.declare(cython.longlong, visibility="readonly")
    count = cython.declare(cython.longlong, visibility="readonly")
    latest_offset = cython.declare(cython.longlong, visibility="public")
    records_read = cython.declare(cython.longlong, visibility="public")
    is_full = cython.declare(cython.bint, visibility="readonly")
    is_damaged = cython.declare(cython.bint, visibility="readonly")
    _slots = cython.declare("unsigned long long[::1]")
    _seed_0: cython.ulonglong
    _seed_1: cython.ulonglong
    _hash_0: cython.ulonglong
    _hash_1: cython.ulonglong
    _cursor: _Cursor

    def __init__(self, slots: memoryview, capacity: int, seed: tuple[int, int]) -> None:
        """`slots`: words of 64 bits, all zero, of which SLOT_WORDS make a slot; `capacity`: how many may be filled."""
        self._slots = slots
        self.slot_count = len(slots) // SLOT_WORDS
        self.capacity = capacity
        self._seed_0, self._seed_1 = seed
        self.count = 0
        self.latest_offset = -1
        self.records_read = 0
        self.is_full = False
        self.is_damaged = False
        self._hash_0 = 0
        self._hash_1 = 0
        self._cursor = _Cursor()

    @cython.locals(data="const unsigned char[::1]")
    def hash_of(self, key: Octets) -> tuple[int, int]:
        data = key
        self._hash(data, 0, len(key))
        return self._hash_0, self._hash_1

    @cython.locals(data="const unsigned char[::1]")
    def put(self, key: Octets, offset: cython.longlong) -> bool:
        """False if the key is new and no more fit."""
        data = key
        return self._put(data, 0, len(key), offset)

    @cython.locals(data="const unsigned char[::1]")
    def get(self, key: Octets) -> int:
        """The last offset that was put for the key, or -1."""
        data = key
        return self._get(data, 0, len(key))

    @cython.locals(data="const unsigned char[::1]")
    def map_plain(
        self,
        buffer: Octets,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        first_offset: cython.longlong,
        end_offset: cython.longlong,
    ) -> int:
        """Map the whole batches in `buffer[start:end]`, until one is not plain, not below `end_offset`, does not fit,
        or is damaged: where that one begins."""
        data = buffer
        if start < 0 or end > len(buffer):
            raise ValueError(f"no such place in {len(buffer)} bytes: {start} to {end}")
        record: _Cursor = self._cursor
        position: cython.Py_ssize_t
        with cython.nogil:
            position = self._map_plain(data, start, end, first_offset, end_offset, record)
        return position

    @cython.locals(data="const unsigned char[::1]")
    def map_records(
        self, buffer: Octets, start: cython.Py_ssize_t, base_offset: cython.longlong, first_offset: cython.longlong
    ) -> int:
        """Map the whole records in `buffer[start:]`, those from `first_offset` on. How many there are; fewer if the
        map is full."""
        data = buffer
        count: cython.longlong
        end: cython.Py_ssize_t = len(buffer)
        if start < 0:
            raise ValueError(f"no such place in {len(buffer)} bytes: {start}")
        record: _Cursor = self._cursor
        with cython.nogil:
            count = self._map_records(data, start, end, base_offset, first_offset, record)
        return count

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _map_plain(
        self,
        data: Octets,
        position: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        first_offset: cython.longlong,
        end_offset: cython.longlong,
        record: _Cursor,
    ) -> cython.Py_ssize_t:
        size: cython.Py_ssize_t
        base_offset: cython.longlong
        last_offset: cython.longlong
        count: cython.longlong
        while end - position >= HEADER_SIZE and not data[position + 22] & _NOT_PLAIN:
            size = _int32(data, position + 8) + 12
            if size < HEADER_SIZE or size > end - position:
                self.is_damaged = True
                break
            base_offset = _int64(data, position)
            if base_offset >= end_offset:
                break
            last_offset = base_offset + _int32(data, position + 23)
            count = self._map_records(data, position + HEADER_SIZE, position + size, base_offset, first_offset, record)
            if not self.is_full and count != _int32(data, position + 57):
                self.is_damaged = True
            if self.is_full or self.is_damaged:
                break
            if last_offset >= first_offset:
                self.latest_offset = last_offset
            position += size
        return position

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _map_records(
        self,
        data: Octets,
        position: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        base_offset: cython.longlong,
        first_offset: cython.longlong,
        record: _Cursor,
    ) -> cython.longlong:
        count: cython.longlong = 0
        offset: cython.longlong
        while position < end:
            if not record._read(data, position, end):
                self.is_damaged = True
                break
            offset = base_offset + record.offset_delta
            if record.key_size >= 0 and offset >= first_offset:
                if not self._put(data, record.key, record.key_size, offset):
                    self.is_full = True
                    break
                self.latest_offset = offset
            count += 1
            position = record.end
        self.records_read += count
        return count

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _put(
        self, data: Octets, position: cython.Py_ssize_t, size: cython.Py_ssize_t, offset: cython.longlong
    ) -> cython.bint:
        slot: cython.Py_ssize_t
        self._hash(data, position, size)
        slot = self._slot()
        if slot < 0:
            return False
        if self._slots[slot + 2] == 0:
            if self.count >= self.capacity:
                return False
            self.count += 1
            self._slots[slot] = self._hash_0
            self._slots[slot + 1] = self._hash_1
        self._slots[slot + 2] = offset + 1
        return True

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _get(self, data: Octets, position: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.longlong:
        slot: cython.Py_ssize_t
        self._hash(data, position, size)
        slot = self._slot()
        return -1 if slot < 0 else self._slots[slot + 2] - 1

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _slot(self) -> cython.Py_ssize_t:
        """Where the hashed key is, or the empty slot where it would go; -1 if every slot has another key."""
        slot_count: cython.ulonglong = self.slot_count
        # Upper bits choose the slot in proportion, which takes no division.
        home: cython.ulonglong = ((self._hash_0 >> 32) * slot_count) >> 32
        slot: cython.Py_ssize_t = 3 * home
        end: cython.Py_ssize_t = 3 * slot_count
        tried: cython.ulonglong = 0
        while tried < slot_count:
            if self._slots[slot + 2] == 0 or (
                self._slots[slot] == self._hash_0 and self._slots[slot + 1] == self._hash_1
            ):
                return slot
            slot += 3
            if slot == end:
                slot = 0
            tried += 1
        return -1

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _hash(self, data: Octets, position: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.void:
        mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
        v0: cython.ulonglong = 0x736F_6D65_7073_6575
        v1: cython.ulonglong = 0x646F_7261_6E64_6F6D
        v2: cython.ulonglong = 0x6C79_6765_6E65_7261
        v3: cython.ulonglong = 0x7465_6462_7974_6573
        octet: cython.ulonglong
        word: cython.ulonglong = 0
        left: cython.int
        rounds: cython.int
        index: cython.int
        word_count: cython.Py_ssize_t = size // 8
        step: cython.Py_ssize_t
        v0 ^= self._seed_0
        v1 ^= self._seed_1 ^ 0xEE
        v2 ^= self._seed_0
        v3 ^= self._seed_1
        # The words of the key, the rest of it with its size, and two steps that finish one half of the hash each.
        for step in range(word_count + 3):
            word = 0
            rounds = 2
            if step <= word_count:
                left = 8 if step < word_count else size & 7
                for index in range(left):
                    octet = data[position + 8 * step + index]
                    word |= octet << (8 * index)
                if step == word_count:
                    octet = size & 0xFF
                    word |= octet << 56
            else:
                rounds = 4
                if step == word_count + 1:
                    v2 ^= 0xEE
                else:
                    self._hash_0 = v0 ^ v1 ^ v2 ^ v3
                    v1 ^= 0xDD
            v3 ^= word
            for _ in range(rounds):
                v0 = (v0 + v1) & mask
                v1 = (((v1 << 13) | (v1 >> 51)) & mask) ^ v0
                v0 = ((v0 << 32) | (v0 >> 32)) & mask
                v2 = (v2 + v3) & mask
                v3 = (((v3 << 16) | (v3 >> 48)) & mask) ^ v2
                v0 = (v0 + v3) & mask
                v3 = (((v3 << 21) | (v3 >> 43)) & mask) ^ v0
                v2 = (v2 + v1) & mask
                v1 = (((v1 << 17) | (v1 >> 47)) & mask) ^ v2
                v2 = ((v2 << 32) | (v2 >> 32)) & mask
            v0 ^= word
        self._hash_1 = v0 ^ v1 ^ v2 ^ v3


# --- The filter -------------------------------------------------------------------------------------------------------


@cython.final
@cython.cclass
class RecordFilter:
    """Which records of which batches stay, and the batches that are made of them, one after the other in `out`.

    Batches come in the order of their offsets. A batch is judged record by record; only then is it known what becomes
    of it, for a tombstone at its end changes how every timestamp in it is written. So the records that stay are noted
    as bits, and copied when all are known. Checksums of rebuilt batches are set at the end, by `seal`.
    """

    records_read = cython.declare(cython.longlong, visibility="readonly")
    records_kept = cython.declare(cython.longlong, visibility="readonly")
    records_without_key = cython.declare(cython.longlong, visibility="readonly")
    is_damaged = cython.declare(cython.bint, visibility="readonly")
    size = cython.declare(cython.Py_ssize_t, visibility="readonly")
    out = cython.declare(bytearray, visibility="readonly")
    _out = cython.declare("unsigned char[::1]")
    _stays = cython.declare("unsigned char[::1]")
    _last_data_offsets = cython.declare("const long long[::1]")
    _next_last_data_offset: cython.Py_ssize_t
    _keys: KeyTable
    _cursor: _Cursor
    _latest_offset: cython.longlong
    _end_offset: cython.longlong
    _now_ms: cython.longlong
    _new_delete_horizon_ms: cython.longlong
    # The batch that is being judged.
    _base_offset: cython.longlong
    _attributes: cython.int
    _base_timestamp: cython.longlong
    _max_timestamp: cython.longlong
    _count: cython.longlong
    _index: cython.longlong
    _kept: cython.longlong
    _copied: cython.longlong
    _keeps_tombstone: cython.bint
    _first_kept_timestamp: cython.longlong
    _max_kept_timestamp: cython.longlong
    _new_base_timestamp: cython.longlong
    _new_attributes: cython.int

    def __init__(
        self,
        keys: KeyTable,
        last_data_offsets: memoryview,
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """`last_data_offsets`: int64, sorted: the last offset of each active producer's last batch."""
        self._keys = keys
        self._cursor = _Cursor()
        self._latest_offset = keys.latest_offset
        self._last_data_offsets = last_data_offsets
        self._next_last_data_offset = 0
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._new_delete_horizon_ms = now_ms + delete_retention_ms
        self.records_read = 0
        self.records_kept = 0
        self.records_without_key = 0
        self.is_damaged = False
        self.size = 0
        self.out = bytearray()
        self._out = self.out
        self._stays = bytearray()

    @cython.locals(data="const unsigned char[::1]")
    def filter_plain(self, buffer: Octets, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> int:
        """Filter the whole batches in `buffer[start:end]`, until one is not plain or is damaged: where it begins."""
        data = buffer
        if start < 0 or end > len(buffer):
            raise ValueError(f"no such place in {len(buffer)} bytes: {start} to {end}")
        self._make_room(_MOST_GROWTH * (end - start), (end - start) // _SMALLEST_RECORD)
        keys: KeyTable = self._keys
        record: _Cursor = self._cursor
        with cython.nogil:
            while end - start >= HEADER_SIZE and not data[start + 22] & _NOT_PLAIN:
                if not self._filter(data, start, end, False, False, False, keys, record):
                    break
                start += _int32(data, start + 8) + 12
        return start

    @cython.locals(data="const unsigned char[::1]")
    def filter_batch(
        self,
        buffer: Octets,
        start: cython.Py_ssize_t,
        drops_records: cython.bint,
        ends_nothing: cython.bint,
        keeps_empty: cython.bint,
    ) -> None:
        """Filter the one batch at `start`, whose records are not compressed, or are all dropped."""
        data = buffer
        end: cython.Py_ssize_t = len(buffer)
        if start < 0 or end - start < HEADER_SIZE:
            raise ValueError(f"no batch can be at position {start} of {len(buffer)} bytes")
        size: cython.Py_ssize_t = _int32(data, start + 8) + 12
        self._make_room(_MOST_GROWTH * size, size // _SMALLEST_RECORD)
        keys: KeyTable = self._keys
        record: _Cursor = self._cursor
        with cython.nogil:
            self._filter(data, start, end, drops_records, ends_nothing, keeps_empty, keys, record)

    # A compressed batch comes in pieces: begin, judge for each of them, conclude, and if it has to be rebuilt copy for
    # each of them and put_rebuilt.

    @cython.locals(data="const unsigned char[::1]")
    def begin(self, buffer: Octets, start: cython.Py_ssize_t) -> None:
        data = buffer
        if start < 0 or len(buffer) - start < HEADER_SIZE:
            raise ValueError(f"no batch can be at position {start} of {len(buffer)} bytes")
        self._begin(data, start)
        self._make_room(0, self._count)

    @cython.locals(data="const unsigned char[::1]")
    def judge(self, records: Octets) -> bool:
        """Whole records of the batch. False if it is damaged."""
        data = records
        end: cython.Py_ssize_t = len(records)
        keys: KeyTable = self._keys
        record: _Cursor = self._cursor
        with cython.nogil:
            self._judge(data, 0, end, keys, record)
        return not self.is_damaged

    @cython.locals(data="const unsigned char[::1]")
    def conclude(self, buffer: Octets, start: cython.Py_ssize_t) -> bool:
        """All records are judged. True if the batch has to be rebuilt: otherwise it is done with."""
        data = buffer
        if self._index != self._count:
            self.is_damaged = True
            return False
        self._make_room(_int32(data, start + 8) + 12, 0)
        return not self._conclude(data, start, False, False)

    @cython.locals(data="const unsigned char[::1]", out="unsigned char[::1]")
    def copy(self, records: Octets) -> memoryview:
        """Those of the records that stay, as they are written in the new batch."""
        data = records
        end: cython.Py_ssize_t = len(records)
        copied = bytearray(_MOST_GROWTH * end)
        out = copied
        record: _Cursor = self._cursor
        with cython.nogil:
            end = self._copy(data, 0, end, out, 0, record)
        return memoryview(copied)[:end]

    @cython.locals(data="const unsigned char[::1]")
    def put_rebuilt(self, buffer: Octets, start: cython.Py_ssize_t, records: Octets) -> None:
        """The batch at `start` again, with these compressed records."""
        data = buffer
        size: cython.Py_ssize_t = HEADER_SIZE + len(records)
        self._make_room(size, 0)
        memoryview(self.out)[self.size + HEADER_SIZE : self.size + size] = records
        self._put_header(data, start, size)

    @cython.locals(data="const unsigned char[::1]")
    def seal(self) -> memoryview:
        """The batches that stay. They are to be used before the next are filtered, which take their place."""
        data = self.out
        view = memoryview(self.out)
        position: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t
        while position < self.size:
            size = _int32(data, position + 8) + 12
            if _int32(data, position + 17) == 0:
                crc: cython.longlong = crc32c(view[position + 21 : position + size], 0, size >= _GIL_RELEASE_BYTES)
                _put_integer(self._out, position + 17, crc, 4)
            position += size
        position = self.size
        self.size = 0
        return view[:position]

    def _make_room(self, size: cython.Py_ssize_t, count: cython.Py_ssize_t) -> None:
        """For so many bytes of batches, and a batch of so many records."""
        if self.size + size > len(self.out):
            grown = bytearray(self.size + size)
            grown[: self.size] = memoryview(self.out)[: self.size]
            self.out = grown
            self._out = grown
        if count // 8 >= len(self._stays):
            self._stays = bytearray(count // 8 + 1)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _filter(
        self,
        data: Octets,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        drops_records: cython.bint,
        ends_nothing: cython.bint,
        keeps_empty: cython.bint,
        keys: KeyTable,
        record: _Cursor,
    ) -> cython.bint:
        """False if the batch is damaged."""
        size: cython.Py_ssize_t = _int32(data, start + 8) + 12
        if size < HEADER_SIZE or size > end - start:
            self.is_damaged = True
            return False
        end = start + size
        self._begin(data, start)
        if drops_records:
            self.records_read += self._count
        else:
            self._judge(data, start + HEADER_SIZE, end, keys, record)
            if self._index != self._count:
                self.is_damaged = True
                return False
        if not self._conclude(data, start, ends_nothing, keeps_empty):
            size = self._copy(data, start + HEADER_SIZE, end, self._out, self.size + HEADER_SIZE, record) - self.size
            self._put_header(data, start, size)
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _begin(self, data: Octets, start: cython.Py_ssize_t) -> cython.void:
        self._base_offset = _int64(data, start)
        self._attributes = data[start + 22]
        self._base_timestamp = _int64(data, start + 27)
        self._max_timestamp = _int64(data, start + 35)
        self._count = _int32(data, start + 57)
        self._index = 0
        self._copied = 0
        self._kept = 0
        self._keeps_tombstone = False
        self._max_kept_timestamp = -1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _judge(
        self,
        data: Octets,
        position: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        keys: KeyTable,
        record: _Cursor,
    ) -> cython.void:
        """Kafka's rules. What the map has not reached stays; of a key, what is not older than the map's offset stays,
        but a tombstone only until the batch's delete horizon; control records stay; a record without a key goes."""
        index: cython.longlong = self._index
        offset: cython.longlong
        timestamp: cython.longlong
        stays: cython.bint
        keeps_tombstones: cython.bint = not self._attributes & _DELETE_HORIZON or self._now_ms < self._base_timestamp
        while position < end:
            if index >= self._count or not record._read(data, position, end):
                self.is_damaged = True
                break
            offset = self._base_offset + record.offset_delta
            if offset > self._latest_offset or self._attributes & _CONTROL:
                stays = True
            elif record.key_size < 0:
                stays = False
                self.records_without_key += 1
            else:
                stays = (record.has_value or keeps_tombstones) and offset >= keys._get(
                    data, record.key, record.key_size
                )
            if stays:
                self._stays[index >> 3] |= 1 << (index & 7)
                timestamp = self._timestamp(record.timestamp_delta)
                if self._kept == 0:
                    self._first_kept_timestamp = timestamp
                if timestamp > self._max_kept_timestamp:
                    self._max_kept_timestamp = timestamp
                if not record.has_value:
                    self._keeps_tombstone = True
                self._kept += 1
            else:
                self._stays[index >> 3] &= 0xFF ^ (1 << (index & 7))
            index += 1
            position = record.end
        self.records_read += index - self._index
        self._index = index

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _timestamp(self, delta: cython.longlong) -> cython.longlong:
        return self._max_timestamp if self._attributes & _LOG_APPEND_TIME else self._base_timestamp + delta

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _conclude(
        self, data: Octets, start: cython.Py_ssize_t, ends_nothing: cython.bint, keeps_empty: cython.bint
    ) -> cython.bint:
        """All records are judged. False if the batch has to be rebuilt from some of them."""
        size: cython.Py_ssize_t = _int32(data, start + 8) + 12
        last_offset: cython.longlong = self._base_offset + _int32(data, start + 23)
        has_horizon: cython.bint = self._attributes & _DELETE_HORIZON != 0
        sets_horizon: cython.bint = not has_horizon and (self._keeps_tombstone or ends_nothing)
        index: cython.Py_ssize_t
        self.records_kept += self._kept
        self._new_attributes = self._attributes
        if self._kept == 0:
            # An empty batch remembers its producer's last sequence, or where a pass over the log ended.
            if (
                keeps_empty
                or last_offset + 1 == self._end_offset
                or self._is_last_of_a_producer(data, start, last_offset)
            ):
                self._new_attributes = self._attributes & 0x38  # the kind of timestamps, transactional, control
                self._new_base_timestamp = -1
                self._max_kept_timestamp = self._max_timestamp
                self._put_header(data, start, HEADER_SIZE)
            return True
        if self._kept == self._count and not sets_horizon:
            for index in range(size):
                self._out[self.size + index] = data[start + index]
            self.size += size
            return True
        if self._attributes & _LOG_APPEND_TIME:
            self._max_kept_timestamp = self._max_timestamp
        if sets_horizon:
            self._new_attributes = self._attributes | _DELETE_HORIZON
            self._new_base_timestamp = self._new_delete_horizon_ms
        else:
            self._new_base_timestamp = self._base_timestamp if has_horizon else self._first_kept_timestamp
        return False

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _is_last_of_a_producer(
        self, data: Octets, start: cython.Py_ssize_t, last_offset: cython.longlong
    ) -> cython.bint:
        count: cython.Py_ssize_t = len(self._last_data_offsets)
        while (
            self._next_last_data_offset < count and self._last_data_offsets[self._next_last_data_offset] < last_offset
        ):
            self._next_last_data_offset += 1
        return (
            self._next_last_data_offset < count
            and self._last_data_offsets[self._next_last_data_offset] == last_offset
            and _int64(data, start + 43) >= 0
        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]", out="unsigned char[::1]")
    def _copy(
        self,
        data: Octets,
        position: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        out: bytearray | memoryview,
        to: cython.Py_ssize_t,
        record: _Cursor,
    ) -> cython.Py_ssize_t:
        """Copy the records that stay, their timestamps counted from the new base. Where the bytes after them go."""
        index: cython.Py_ssize_t
        rest: cython.Py_ssize_t
        delta: cython.longlong
        while position < end:
            record._read(data, position, end)
            if self._stays[self._copied >> 3] >> (self._copied & 7) & 1:
                delta = self._timestamp(record.timestamp_delta) - self._new_base_timestamp
                rest = record.end - record.behind_timestamp
                to = _put_varint(out, to, 1 + _varint_size(delta) + rest)
                out[to] = 0  # the attributes
                to = _put_varint(out, to + 1, delta)
                for index in range(rest):
                    out[to + index] = data[record.behind_timestamp + index]
                to += rest
            self._copied += 1
            position = record.end
        return to

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]")
    def _put_header(self, data: Octets, start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.void:
        """The header of the batch at `start` for a new one of `size` bytes, which is complete with it but for its
        checksum. Offsets, leader epoch, producer and sequence stay as they were."""
        index: cython.int
        for index in range(HEADER_SIZE):
            self._out[self.size + index] = data[start + index]
        _put_integer(self._out, self.size + 8, size - 12, 4)
        _put_integer(self._out, self.size + 17, 0, 4)
        _put_integer(self._out, self.size + 21, self._new_attributes, 2)
        _put_integer(self._out, self.size + 27, self._new_base_timestamp, 8)
        _put_integer(self._out, self.size + 35, self._max_kept_timestamp, 8)
        _put_integer(self._out, self.size + 57, self._kept, 4)
        self.size += size


# --- The index --------------------------------------------------------------------------------------------------------


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
            size = _int32(data, here + 8) + 12
            self.last_offset = _int64(data, here) + _int32(data, here + 23)
            timestamp = _int64(data, here + 35)
            if timestamp > self.max_timestamp:
                self.max_timestamp = timestamp
                self.offset_of_max_timestamp = self.last_offset
            if self._bytes_since > self._interval_bytes:
                points.append((self.last_offset, position + here, self.max_timestamp, self.offset_of_max_timestamp))
                self._bytes_since = 0
            self._bytes_since += size
            here += size
        return points
