"""The table of keys by which compaction decides. Part of the compiled core; the rules of checking.py apply.

Compaction has four compiled modules: key_collecting.py finds the keys of a log's records, this table has their last
offsets, judging.py decides by it which records stay, and rebuilding.py writes new batches from those. Their loops
create no Python object for a record and run without the GIL, so that a thread can clean while an event loop runs.

Batches were checked when they were appended, and their CRC again when they were read. So the loops only check what they
need to stay within bounds; they stop at damage, and the caller checks `is_damaged`.

Nearly all of the time is spent waiting for memory, since the slots of keys are scattered. So keys are processed in
blocks: all are hashed, then all of their slots are touched, which the processor does in parallel, and then they are
compared.
"""

import cython

from kaspar.records.codec import Octets

IS_COMPILED: bool = cython.compiled

SLOT_WORDS = 3  # two for the hash, one for the offset plus one, so that zeroed memory is an empty table

_BLOCK_KEYS = cython.declare(cython.int, 64)

# Processing fewer keys takes less time than releasing the GIL and waiting for it again.
_GIL_RELEASE_KEYS = cython.declare(cython.Py_ssize_t, 1024)


@cython.final
@cython.cclass
class KeyTable:
    """The last offset of each key. A key is stored as its hash: SipHash-2-4 of 128 bits with a secret seed, so that
    nobody can choose keys that collide."""

    slot_count = cython.declare(cython.longlong, visibility="readonly")
    capacity = cython.declare(cython.longlong, visibility="readonly")
    count = cython.declare(cython.longlong, visibility="readonly")
    _slots = cython.declare("unsigned long long[::1]")
    _hashes = cython.declare("unsigned long long[::1]")
    _seed_0: cython.ulonglong
    _seed_1: cython.ulonglong
    _touched: cython.ulonglong

    def __init__(self, slots: memoryview, capacity: int, seed: tuple[int, int]) -> None:
        """`slots`: zeroed 64-bit words, SLOT_WORDS per slot; `capacity`: how many slots may be filled."""
        self._slots = slots
        self.slot_count = len(slots) // SLOT_WORDS
        self.capacity = capacity
        self._seed_0, self._seed_1 = seed
        self.count = 0
        self._hashes = memoryview(bytearray(16 * _BLOCK_KEYS)).cast("Q")
        self._touched = 0

    def wipe(self) -> None:
        """Zero all slots for the next table that uses them. This one must not be used again."""
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
        """Store the offset of a key. Returns False if the key is new and the table is full."""
        data = key
        self._hash(data, 0, len(key), 0)
        return self._put(0, offset)

    @cython.locals(data="const unsigned char[::1]")
    def get(self, key: Octets) -> int:
        """The last offset that was put for the key, or -1."""
        data = key
        self._hash(data, 0, len(key), 0)
        return self._get(0)

    @cython.locals(data="const unsigned char[::1]", places="const long long[::1]", taken="const long long[::1]")
    def put_all(self, buffer: Octets, keys: memoryview, offsets: memoryview, count: cython.Py_ssize_t) -> int:
        """Put `count` keys; `keys` has the position in `buffer` and the size of each. Returns how many were put before
        the table was full."""
        data = buffer
        places = keys
        taken = offsets
        done: cython.Py_ssize_t
        if len(keys) < 2 * count or len(offsets) < count:
            raise ValueError(f"there are fewer than {count} keys")
        if count < _GIL_RELEASE_KEYS:
            return self._put_all(data, places, taken, count)
        with cython.nogil:
            done = self._put_all(data, places, taken, count)
        return done

    @cython.locals(data="const unsigned char[::1]", places="const long long[::1]", found="long long[::1]")
    def look_up(self, buffer: Octets, asked: memoryview, offsets: memoryview, count: cython.Py_ssize_t) -> None:
        """Write the last offset, or -1, of each of `count` keys to `offsets`; `asked` has the position in `buffer` and
        the size of each."""
        data = buffer
        places = asked
        found = offsets
        if len(asked) < 2 * count or len(offsets) < count:
            raise ValueError(f"there is no room for {count} keys")
        if count < _GIL_RELEASE_KEYS:
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
            held = self._hash_block(data, places, first, count)
            for place in range(held):
                found[first + place] = self._get(place)
            first += held

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]", places="const long long[::1]", taken="const long long[::1]")
    def _put_all(self, data: Octets, places: Octets, taken: Octets, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        first: cython.Py_ssize_t = 0
        held: cython.int
        place: cython.int
        while first < count:
            held = self._hash_block(data, places, first, count)
            for place in range(held):
                if not self._put(place, taken[first + place]):
                    return first + place
            first += held
        return count

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    @cython.locals(data="const unsigned char[::1]", places="const long long[::1]")
    def _hash_block(
        self, data: Octets, places: Octets, first: cython.Py_ssize_t, count: cython.Py_ssize_t
    ) -> cython.int:
        """Hash a block of keys from number `first` on and bring their slots into the cache. Returns how many."""
        held: cython.int = _BLOCK_KEYS if count - first > _BLOCK_KEYS else count - first
        place: cython.int
        for place in range(held):
            self._hash(data, places[2 * (first + place)], places[2 * (first + place) + 1], place)
        self._touch(held)
        return held

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
        """The slot where the search for a key begins: the upper bits of its hash, in proportion, without a division."""
        slot_count: cython.ulonglong = self.slot_count
        upper_bits: cython.ulonglong = self._hashes[2 * place] >> 32
        return 3 * ((upper_bits * slot_count) >> 32)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _touch(self, held: cython.int) -> cython.void:
        """Bring all of these slots into the cache at once."""
        touched: cython.ulonglong = 0
        place: cython.int
        slot: cython.Py_ssize_t
        for place in range(held):
            slot = self._home(place)
            touched ^= self._slots[slot] ^ self._slots[slot + 2]
        self._touched = touched  # so that the compiler cannot drop the reads

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _slot(self, place: cython.int) -> cython.Py_ssize_t:
        """The slot with the hashed key, or the empty slot for it; -1 if every slot has another key."""
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
