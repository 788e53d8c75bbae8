"""The sparse indexes of a segment, in Kafka's formats.

- `.index`: 8-byte entries, the last offset of a batch relative to the base offset (int32) and the position of that
  batch in the `.log` file (int32).
- `.timeindex`: 12-byte entries, the largest timestamp so far (int64) and the relative offset at which it was seen
  (int32); both columns only grow.

The index of a segment that takes appends is kept in memory. Its file is written a page at a time and is complete once
the segment is rolled or closed, so an index file is never longer than its entries. An index only speeds up a search: a
lookup returns a position at or before the wanted batch, and the reader walks on from there. The owner appends; lookups
may run in any thread (positions are appended before offsets, so every visible slot is complete).
"""

import errno
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right

from kaspar.storage.disk.files import Files, read_file, write_all

OFFSET_ENTRY_SIZE = 8
TIME_ENTRY_SIZE = 12
_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_PAGE = 4096


class OffsetIndex:
    __slots__ = ("_written", "offsets", "positions")

    def __init__(self, offsets: "array[int] | None" = None, positions: "array[int] | None" = None) -> None:
        self.offsets = array("i") if offsets is None else offsets
        self.positions = array("i") if positions is None else positions
        self._written = len(self.offsets)

    @staticmethod
    def load(files: Files, path: str) -> "OffsetIndex":
        """The index as it is on disk; a partial entry at the end is dropped. FileNotFoundError if there is none."""
        content = read_file(files, path)
        both = array("i")
        both.frombytes(content[: len(content) // OFFSET_ENTRY_SIZE * OFFSET_ENTRY_SIZE])
        if sys.byteorder == "little":
            both.byteswap()
        return OffsetIndex(both[0::2], both[1::2])

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def memory_bytes(self) -> int:
        return OFFSET_ENTRY_SIZE * len(self.offsets)

    def append(self, relative_offset: int, position: int) -> None:
        self.positions.append(position)
        self.offsets.append(relative_offset)

    def lookup(self, relative_offset: int) -> int:
        """The position of a batch at or before the one that contains the offset: where a search begins."""
        slot = bisect_right(self.offsets, relative_offset) - 1
        return self.positions[slot] if slot >= 0 else 0

    def is_sound(self, log_size: int) -> bool:
        """Whether both columns grow and stay inside the log. What a power failure leaves of a file often does not."""
        offsets, positions = self.offsets, self.positions
        return (
            all(map(int.__lt__, offsets, offsets[1:]))
            and all(map(int.__lt__, positions, positions[1:]))
            and (not offsets or (offsets[0] >= 0 and positions[0] > 0 and positions[-1] < log_size))
        )

    def kept_below(self, relative_offset: int) -> "OffsetIndex":
        """A new index without the entries at or above the offset. The caller truncates the file, which is complete."""
        slot = bisect_left(self.offsets, relative_offset)
        return OffsetIndex(self.offsets[:slot], self.positions[:slot])

    @property
    def has_full_page(self) -> bool:
        """Whether there are enough unwritten entries in memory to make a write worthwhile."""
        return (len(self.offsets) - self._written) * OFFSET_ENTRY_SIZE >= _PAGE

    def write(self, files: Files, path: str, *, everything: bool) -> None:
        """Write the pending entries to the file: all of them with `everything`, otherwise only once a page is full."""
        pending = len(self.offsets) - self._written
        if pending and (everything or self.has_full_page):
            pack = _OFFSET_ENTRY.pack
            end = len(self.offsets)
            added = b"".join(map(pack, self.offsets[self._written : end], self.positions[self._written : end]))
            _write_entries(files, path, added, self._written * OFFSET_ENTRY_SIZE)
            self._written = end


class TimeIndex:
    """Keeps only its last entry and the unwritten ones in memory; lookups, which are rare, read the file."""

    __slots__ = ("_pending", "count", "last_relative_offset", "last_timestamp")

    def __init__(self, count: int = 0, last_timestamp: int = -1, last_relative_offset: int = 0) -> None:
        self.count = count
        self.last_timestamp = last_timestamp
        self.last_relative_offset = last_relative_offset
        self._pending: tuple[bytes, ...] = ()

    @staticmethod
    def load(files: Files, path: str, size: int | None = None) -> "TimeIndex":
        """Load the index from disk. FileNotFoundError if there is none, or it was replaced meanwhile."""
        count = (files.size(path) if size is None else size) // TIME_ENTRY_SIZE
        if count == 0:
            return TimeIndex()
        fd = files.open(path)
        try:
            last = files.pread(fd, TIME_ENTRY_SIZE, (count - 1) * TIME_ENTRY_SIZE)
        finally:
            files.close(fd)
        if len(last) < TIME_ENTRY_SIZE:
            raise FileNotFoundError(errno.ENOENT, "replaced by a shorter file while it was read", path)
        return TimeIndex(count, *_TIME_ENTRY.unpack(last))

    def __len__(self) -> int:
        return self.count

    def maybe_append(self, timestamp: int, relative_offset: int) -> None:
        """Add an entry if the timestamp is later than the last one."""
        if timestamp > self.last_timestamp and relative_offset >= self.last_relative_offset:
            self._pending = (*self._pending, _TIME_ENTRY.pack(timestamp, relative_offset))
            self.last_timestamp = timestamp
            self.last_relative_offset = relative_offset
            self.count += 1

    @property
    def has_full_page(self) -> bool:
        return len(self._pending) * TIME_ENTRY_SIZE >= _PAGE

    def write(self, files: Files, path: str, *, everything: bool) -> None:
        pending = self._pending
        if pending and (everything or self.has_full_page):
            _write_entries(files, path, b"".join(pending), (self.count - len(pending)) * TIME_ENTRY_SIZE)
            self._pending = ()

    def entries(self, files: Files, path: str) -> list[tuple[int, int]]:
        """Every (timestamp, relative offset), from the file and from memory. Safe in any thread."""
        pending = self._pending
        content = read_file(files, path)
        content = content[: len(content) // TIME_ENTRY_SIZE * TIME_ENTRY_SIZE]
        found: list[tuple[int, int]] = list(_TIME_ENTRY.iter_unpack(content))
        last = found[-1][0] if found else -1
        later = (_TIME_ENTRY.unpack(entry) for entry in pending)
        return found + [entry for entry in later if entry[0] > last]


def truncated_time_index(files: Files, path: str, below_relative_offset: int) -> TimeIndex:
    """Truncate the file so that no entry has an offset at or above the given one."""
    entries = [entry for entry in TimeIndex().entries(files, path) if entry[1] < below_relative_offset]
    cut_index_file(files, path, len(entries) * TIME_ENTRY_SIZE)
    return TimeIndex(len(entries), *entries[-1]) if entries else TimeIndex()


def create_index_file(files: Files, path: str) -> None:
    files.close(files.open(path, create=True))


def cut_index_file(files: Files, path: str, size: int) -> None:
    """Truncate and sync, so that entries for truncated records do not come back after a power failure."""
    fd = files.open(path, write=True)
    try:
        files.truncate(fd, size)
        files.fsync(fd)
    finally:
        files.close(fd)


def _write_entries(files: Files, path: str, entries: bytes, position: int) -> None:
    fd = files.open(path, write=True)
    try:
        write_all(files, fd, entries, position)
    finally:
        files.close(fd)
