"""The index of aborted transactions of a segment (`.txnindex`), in Kafka's format.

An entry has 34 bytes: a version (int16, zero), and four int64: the producer id, the first offset of the transaction,
the offset of its marker, and the last stable offset when the marker was written. It is in the index of the segment that
contains the marker. A segment without such an entry has no file.

The other indexes only speed up searches; this one is data. A read_committed reader learns from nowhere else which
records to filter out, so an entry is in the file before its marker is in the log, is synced with it, and is rebuilt
from the log after a crash. Markers are appended in order, so their offsets and the last stable offsets only grow, and a
search can stop where the last stable offset passes the range that is read. The owner of the log appends and truncates;
searches may run in any thread.
"""

import struct
import threading
from typing import NamedTuple

from kaspar.storage.disk.files import Files, read_file, unlink_if_there, write_all, write_file
from kaspar.storage.segments.indexes import cut_index_file

ENTRY_SIZE = 34
_ENTRY = struct.Struct(">hqqqq")
_LAST_OFFSET = struct.Struct(">18xq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """A transaction with records in a partition that no read_committed reader may see."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the marker."""
    last_stable_offset: int
    """Without this transaction: the first offset of the next open transaction, or the offset after the marker."""


class TransactionIndex:
    __slots__ = ("_entries", "_lock", "_written")

    def __init__(self, content: bytes = b"") -> None:
        """Parse the entries in `content`, in the format of the file; a partial one at the end is dropped."""
        self._entries = bytearray(content[: len(content) // ENTRY_SIZE * ENTRY_SIZE])
        self._written = len(self._entries)
        self._lock = threading.Lock()

    @staticmethod
    def load(files: Files, path: str) -> "TransactionIndex":
        """FileNotFoundError if there is none."""
        return TransactionIndex(read_file(files, path))

    def __len__(self) -> int:
        return len(self._entries) // ENTRY_SIZE

    @property
    def memory_bytes(self) -> int:
        return len(self._entries)

    def __getitem__(self, slot: int) -> AbortedTransaction:
        return _entry(self._entries, slot * ENTRY_SIZE)

    def append(self, transaction: AbortedTransaction) -> None:
        assert not self._entries or self[len(self) - 1].last_offset < transaction.last_offset, "markers come in order"
        self._entries += _ENTRY.pack(_VERSION, *transaction)

    def collect(
        self, fetch_offset: int, upper_offset: int, found: list[AbortedTransaction], *, at_most: int | None = None
    ) -> bool:
        """Add to `found` the transactions that overlap the offsets from `fetch_offset` up to, not including,
        `upper_offset`. Returns whether no later marker can belong to such a transaction. With `at_most`, stops at the
        first one too many.
        """
        entries = self._entries  # a truncation meanwhile replaces the array
        for position in range(_first_from(entries, fetch_offset), len(entries), ENTRY_SIZE):
            transaction = _entry(entries, position)
            if transaction.first_offset < upper_offset:
                found.append(transaction)
                if at_most is not None and len(found) > at_most:
                    return True
            if transaction.last_stable_offset >= upper_offset:
                return True
        return False

    def is_sound(self, base_offset: int) -> bool:
        """Whether these can be the entries of a segment at `base_offset`: a power failure may leave garbage."""
        last = base_offset - 1
        stable = -1
        for version, _, first_offset, last_offset, last_stable_offset in _ENTRY.iter_unpack(bytes(self._entries)):
            if (
                version != _VERSION
                or not 0 <= first_offset < last_offset
                or last_offset <= last
                or not stable <= last_stable_offset <= last_offset + 1
            ):
                return False
            last, stable = last_offset, last_stable_offset
        return True

    def write(self, files: Files, path: str) -> None:
        """Write the pending entries, and create the file if necessary. Safe in any thread: a sync writes entries that
        did not fit on a full disk before.
        """
        with self._lock:
            end = len(self._entries)
            if self._written < end:
                self._write_from(files, path, self._written, end)
                self._written = end

    def _write_from(self, files: Files, path: str, begin: int, end: int) -> None:
        try:
            fd = files.open(path, write=True) if begin else files.open(path, create=True)
        except FileNotFoundError:
            begin, fd = 0, files.open(path, create=True)
        try:
            write_all(files, fd, bytes(self._entries[begin:end]), begin)
        finally:
            files.close(fd)

    def replace_file(self, files: Files, path: str) -> None:
        """Atomically replace the file by one with these entries."""
        if self._entries:
            write_file(files, path, bytes(self._entries))
        else:
            unlink_if_there(files, path)
        self._written = len(self._entries)

    def cut(self, files: Files, path: str, offset: int) -> None:
        """Remove every entry whose marker is at `offset` or later; synced, so that none comes back after a power
        failure.
        """
        with self._lock:
            size = _first_from(self._entries, offset)
            if size == len(self._entries):
                return
            self._entries = self._entries[:size]
            if self._written > size:
                cut_index_file(files, path, size)
                self._written = size


def _entry(entries: bytearray, position: int) -> AbortedTransaction:
    return AbortedTransaction(*_ENTRY.unpack_from(entries, position)[1:])


def _first_from(entries: bytearray, offset: int) -> int:
    """The position of the first entry whose marker is at `offset` or later."""
    low, high = 0, len(entries) // ENTRY_SIZE
    while low < high:
        middle = (low + high) // 2
        if _LAST_OFFSET.unpack_from(entries, middle * ENTRY_SIZE)[0] < offset:
            low = middle + 1
        else:
            high = middle
    return low * ENTRY_SIZE
