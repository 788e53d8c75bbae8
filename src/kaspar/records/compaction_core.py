"""The compiled core of compaction, first of three: the table of keys, and the loop that maps every key of a log. By it
records/judging_core.py judges which records stay, and records/rebuilding_core.py makes new batches of those.

Written in Cython's pure Python mode, by the rules of records/core.py: index loops over typed memoryviews, no pointers,
bounds checked here, and every number that wraps around in C is masked. The loops make no Python object for a record
and run without the GIL, so that a thread can clean beside an event loop. Nothing imports this module by name:
records/compaction.py loads one form of it.

What comes here was checked when it was appended, and its checksum again when it was read. So the loops look at no more
than they need; what they could not stand on stops them, and the caller asks `is_damaged`.

Nearly all of the time goes by waiting for memory, since the slots of keys lie anywhere. So keys are taken in blocks:
all are hashed, then all of their slots are touched, which the processor does at the same time, and then looked at.
"""

import cython

from kaspar.records.codec import Octets

IS_COMPILED: bool = cython.compiled

SLOT_WORDS = 3  # two of the key's hash, and its offset plus one, so that memory full of zeros is an empty table

_HEADER_SIZE = cython.declare(cython.int, 61)

# Fewer bytes are done with so soon that giving the GIL away, and waiting for it, costs more than it gives.
_GIL_RELEASE_BYTES = cython.declare(cython.Py_ssize_t, 64 * 1024)

_BLOCK_KEYS = cython.declare(cython.int, 64)

# The records of these have to be inflated, or somebody has to say whether they are dropped: compressed batches,
# transactions, control batches.
_NOT_PLAIN = cython.declare(cython.int, 0x37)


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


# --- Keys -------------------------------------------------------------------------------------------------------------


@cython.final
@cython.cclass
class KeyTable:
    """The last offset of each key. A key is its hash: SipHash-2-4 of 128 bits under a secret seed, so that nobody can
    choose keys that are taken for one another, or that crowd together in the table."""

    slot_count = cython.declare(cython.longlong, visibility="readonly")
    capacity = cython.declare(cython.longlong, visibility="readonly")
    count = cython.declare(cython.longlong, visibility="readonly")
    latest_offset = cython.declare(cython.longlong, visibility="public")
    records_read = cython.declare(cython.longlong, visibility="readonly")
    is_full = cython.declare(cython.bint, visibility="readonly")
    is_damaged = cython.declare(cython.bint, visibility="readonly")
    _slots = cython.declare("unsigned long long[::1]")
    _hashes = cython.declare("unsigned long long[::1]")
    _offsets = cython.declare("long long[::1]")
    _seed_0: cython.ulonglong
    _seed_1: cython.ulonglong
    _touched: cython.ulonglong
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
        self._hashes = memoryview(bytearray(16 * _BLOCK_KEYS)).cast("Q")
        self._offsets = memoryview(bytearray(8 * _BLOCK_KEYS)).cast("q")
        self._touched = 0
        self._cursor = _Cursor()

    def wipe(self) -> None:
        """Make all slots zero, for the next table that uses them. This one must not be used again."""
        index: cython.Py_ssize_t
        end: cython.Py_ssize_t = 3 * self.slot_count if self.count else 0
        with cython.nogil:
            for index in range(end):
                self._slots[index] = 0

    @cython.locals(data="const unsigned char[::1]")
    def hash_of(self, key: Octets) -> tuple[int, int]:
        data = key
        self._hash(data, 0, len(key), 0)
        return self._hashes[0], self._hashes[1]

    @cython.locals(data="const unsigned char[::1]")
    def put(self, key: Octets, offset: cython.longlong) -> bool:
        """False if the key is new and no more fit."""
        data = key
        self._hash(data, 0, len(key), 0)
        return self._put(0, offset)

    @cython.locals(data="const unsigned char[::1]")
    def get(self, key: Octets) -> int:
        """The last offset that was put for the key, or -1."""
        data = key
        self._hash(data, 0, len(key), 0)
        return self._get(0)

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
    def map_records(self, buffer: Octets, base_offset: cython.longlong, first_offset: cython.longlong) -> int:
        """Map the records in `buffer`, those from `first_offset` on. How many there are, if they fit."""
        data = buffer
        count: cython.longlong
        end: cython.Py_ssize_t = len(buffer)
        record: _Cursor = self._cursor
        if end < _GIL_RELEASE_BYTES:
            return self._map_records(data, 0, end, base_offset, first_offset, record)
        with cython.nogil:
            count = self._map_records(data, 0, end, base_offset, first_offset, record)
        return count

    @cython.locals(data="const unsigned char[::1]", places="const long long[::1]", found="long long[::1]")
    def look_up(self, buffer: Octets, asked: memoryview, offsets: memoryview, count: cython.Py_ssize_t) -> None:
        """Put into `offsets` the last offset, or -1, of each of `count` keys; `asked` says where in `buffer` each
        begins, and its size."""
        data = buffer
        places = asked
        found = offsets
        if len(asked) < 2 * count or len(offsets) < count:
            raise ValueError(f"there is no room for {count} keys")
        if count < _BLOCK_KEYS * 16:
            self._look_up(data, places, found, count)
        else:
            with cython.nogil:
                self._look_up(data, places, found, count)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]", places="const long long[::1]", found="long long[::1]")
    def _look_up(
        self, data: Octets, places: Octets, found: bytearray | memoryview, count: cython.Py_ssize_t
    ) -> cython.void:
        first: cython.Py_ssize_t = 0
        held: cython.int
        place: cython.int
        while first < count:
            held = _BLOCK_KEYS if count - first > _BLOCK_KEYS else count - first
            for place in range(held):
                self._hash(data, places[2 * (first + place)], places[2 * (first + place) + 1], place)
            self._touch(held)
            for place in range(held):
                found[first + place] = self._get(place)
            first += held

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
        while end - position >= _HEADER_SIZE and not data[position + 22] & _NOT_PLAIN:
            size = _int32(data, position + 8) + 12
            if size < _HEADER_SIZE or size > end - position:
                self.is_damaged = True
                break
            base_offset = _int64(data, position)
            if base_offset >= end_offset:
                break
            last_offset = base_offset + _int32(data, position + 23)
            count = self._map_records(data, position + _HEADER_SIZE, position + size, base_offset, first_offset, record)
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
        held: cython.int = 0
        offset: cython.longlong
        while position < end:
            if not record._read(data, position, end):
                self.is_damaged = True
                break
            offset = base_offset + record.offset_delta
            if record.key_size >= 0 and offset >= first_offset:
                self._hash(data, record.key, record.key_size, held)
                self._offsets[held] = offset
                held += 1
            count += 1
            position = record.end
            if held == _BLOCK_KEYS or position >= end:
                if not self._put_block(held):
                    self.is_full = True
                    break
                held = 0
        self.records_read += count
        return count

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _put_block(self, held: cython.int) -> cython.bint:
        """False at the first that does not fit; those before it are in."""
        place: cython.int
        self._touch(held)
        for place in range(held):
            if not self._put(place, self._offsets[place]):
                return False
            self.latest_offset = self._offsets[place]
        return True

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _put(self, place: cython.int, offset: cython.longlong) -> cython.bint:
        slot: cython.Py_ssize_t = self._slot(place)
        if slot < 0:
            return False
        if self._slots[slot + 2] == 0:
            if self.count >= self.capacity:
                return False
            self.count += 1
            self._slots[slot] = self._hashes[2 * place]
            self._slots[slot + 1] = self._hashes[2 * place + 1]
        self._slots[slot + 2] = offset + 1
        return True

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _get(self, place: cython.int) -> cython.longlong:
        slot: cython.Py_ssize_t = self._slot(place)
        return -1 if slot < 0 else self._slots[slot + 2] - 1

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _home(self, place: cython.int) -> cython.Py_ssize_t:
        """The slot where the search for a key begins: the upper bits of its hash, in proportion, with no division."""
        slot_count: cython.ulonglong = self.slot_count
        upper_bits: cython.ulonglong = self._hashes[2 * place] >> 32
        return 3 * ((upper_bits * slot_count) >> 32)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _touch(self, held: cython.int) -> cython.void:
        """Have the memory of all of these slots brought near at once."""
        touched: cython.ulonglong = 0
        place: cython.int
        slot: cython.Py_ssize_t
        for place in range(held):
            slot = self._home(place)
            touched ^= self._slots[slot] ^ self._slots[slot + 2]
        self._touched = touched  # so that the compiler cannot leave the reads out

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _slot(self, place: cython.int) -> cython.Py_ssize_t:
        """Where the hashed key is, or the empty slot where it would go; -1 if every slot has another key."""
        slot: cython.Py_ssize_t = self._home(place)
        end: cython.Py_ssize_t = 3 * self.slot_count
        tried: cython.longlong = 0
        while tried < self.slot_count:
            if self._slots[slot + 2] == 0 or (
                self._slots[slot] == self._hashes[2 * place] and self._slots[slot + 1] == self._hashes[2 * place + 1]
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
    def _hash(
        self, data: Octets, position: cython.Py_ssize_t, size: cython.Py_ssize_t, place: cython.int
    ) -> cython.void:
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
                    self._hashes[2 * place] = v0 ^ v1 ^ v2 ^ v3
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
        self._hashes[2 * place + 1] = v0 ^ v1 ^ v2 ^ v3
