"""Limits the number of open segment files, however many partitions there are.

- `ReadHandles` is shared by all threads. A file stays open while it is being read (it is pinned) and afterwards until
  it is the least recently used. A handle also carries the segment's indexes, counted by their bytes.
- `WriteHandles` belongs to the owner of the logs (the event loop) alone: no other thread closes a descriptor that an
  append is about to write to, so the hot path needs no lock.

When the process runs out of descriptors, idle files of both are closed and the open is retried.
"""

import resource
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Protocol

from kaspar.base.errors import ErrorCode, Refused
from kaspar.storage.disk.files import TOO_MANY_OPEN_FILES, Files
from kaspar.storage.segments.indexes import OffsetIndex
from kaspar.storage.segments.transaction_index import TransactionIndex


class ReadHandle:
    __slots__ = ("aborted", "evicted", "fd", "index", "pins")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.pins = 1
        self.evicted = False
        self.index: OffsetIndex | None = None
        self.aborted: TransactionIndex | None = None

    @property
    def index_bytes(self) -> int:
        indexes = (index for index in (self.index, self.aborted) if index is not None)
        return sum(index.memory_bytes for index in indexes)


class ReadHandles:
    def __init__(self, files: Files, *, most_files: int, most_index_bytes: int = 64 << 20) -> None:
        self.files = files
        self._most_files = most_files
        self._most_index_bytes = most_index_bytes
        self._index_bytes = 0
        # Reentrant, because garbage collection may release a file slice at any point.
        self._lock = threading.RLock()
        self._handles: OrderedDict[object, ReadHandle] = OrderedDict()

    def __len__(self) -> int:
        return len(self._handles)

    @property
    def all_in_use(self) -> bool:
        """Whether more files are open than the limit allows, and all of them are being read."""
        if len(self._handles) <= self._most_files:
            return False
        with self._lock:
            self._evict(self._most_files)
            return len(self._handles) > self._most_files

    def acquire(self, key: object, path: str) -> ReadHandle:
        """Return an open handle that stays open until `release`. FileNotFoundError if the file is gone."""
        handle = self.pin(key)
        if handle is not None:
            return handle
        fd = self._open(path)
        with self._lock:
            handle = self._handles.get(key)
            if handle is not None:
                # Another thread opened it meanwhile.
                self.files.close(fd)
                handle.pins += 1
                return handle
            handle = ReadHandle(fd)
            self._handles[key] = handle
            self._evict(self._most_files)
            return handle

    def pin(self, key: object) -> ReadHandle | None:
        """Return the handle if it is already open, pinned as by `acquire`."""
        with self._lock:
            handle = self._handles.get(key)
            if handle is not None:
                handle.pins += 1
                self._handles.move_to_end(key)
            return handle

    def release(self, handle: ReadHandle) -> None:
        with self._lock:
            handle.pins -= 1
            if handle.evicted and handle.pins == 0:
                self.files.close(handle.fd)

    def set_index(self, handle: ReadHandle, index: OffsetIndex) -> None:
        """Keep a pinned segment's index in memory for as long as the handle stays."""
        with self._lock:
            if handle.index is None and not handle.evicted:
                handle.index = index
                self._index_bytes += index.memory_bytes
                self._evict(self._most_files)

    def set_aborted(self, handle: ReadHandle, aborted: TransactionIndex) -> None:
        """Keep a pinned segment's aborted transactions in memory; they may replace an index that was loaded earlier."""
        with self._lock:
            if not handle.evicted:
                self._index_bytes += aborted.memory_bytes - (
                    handle.aborted.memory_bytes if handle.aborted is not None else 0
                )
                handle.aborted = aborted
                self._evict(self._most_files)

    def forget(self, key: object) -> None:
        """Drop the handle of a segment that was deleted or replaced. Reads under way can finish."""
        with self._lock:
            self._drop(key)

    def close_idle(self) -> None:
        with self._lock:
            self._evict(0)

    def _open(self, path: str) -> int:
        try:
            return self.files.open(path)
        except OSError as error:
            if error.errno not in TOO_MANY_OPEN_FILES:
                raise
        self.close_idle()
        try:
            return self.files.open(path)
        except OSError as error:
            if error.errno not in TOO_MANY_OPEN_FILES:
                raise
            raise too_many_open_files(path) from error

    def _evict(self, most_files: int) -> None:
        if len(self._handles) <= most_files and self._index_bytes <= self._most_index_bytes:
            return
        for key in [key for key, handle in self._handles.items() if handle.pins == 0]:
            if len(self._handles) <= most_files and self._index_bytes <= self._most_index_bytes:
                return
            self._drop(key)

    def _drop(self, key: object) -> None:
        handle = self._handles.pop(key, None)
        if handle is None:
            return
        self._index_bytes -= handle.index_bytes
        handle.evicted = True
        if handle.pins == 0:
            self.files.close(handle.fd)


class Writer(Protocol):
    """A log with an open active segment."""

    @property
    def log_end_offset(self) -> int: ...

    def close_writer(self) -> None: ...


class WriteHandles:
    def __init__(self, *, most_files: int) -> None:
        self._most_files = most_files
        self._lock = threading.Lock()
        self._open: deque[tuple[Writer, int]] = deque()

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, writer: Writer) -> None:
        """Register the file that `writer` has opened. If there are too many, close one that has been idle."""
        with self._lock:
            self._open.append((writer, -1))
            while len(self._open) > self._most_files:
                self._close_one()

    def remove(self, writer: Writer) -> None:
        """Forget a `writer` that closes its file itself. Any thread that has the writer to itself may call this."""
        with self._lock:
            self._open = deque(entry for entry in self._open if entry[0] is not writer)

    def make_room(self) -> bool:
        """Close one file, because the process has run out of descriptors. False if there is none to close."""
        with self._lock:
            if not self._open:
                return False
            self._close_one()
            return True

    def _close_one(self) -> None:
        # Second-chance order: a log that was appended to since the last check is kept, so appends need not maintain an
        # order.
        for _ in range(len(self._open)):
            writer, seen = self._open.popleft()
            if writer.log_end_offset == seen:
                writer.close_writer()
                return
            self._open.append((writer, writer.log_end_offset))
        writer, _ = self._open.popleft()
        writer.close_writer()


def open_or_make_room(open_file: Callable[[], int], path: str, readers: ReadHandles, writers: WriteHandles) -> int:
    """Open a file for the owner of the logs; idle files are closed if descriptors run out."""
    while True:
        try:
            return open_file()
        except OSError as error:
            if error.errno not in TOO_MANY_OPEN_FILES:
                raise
            readers.close_idle()
            if not writers.make_room():
                raise too_many_open_files(path) from error


def too_many_open_files(path: str) -> Refused:
    return Refused(
        ErrorCode.KAFKA_STORAGE_ERROR,
        f"{path} cannot be opened: this process has as many open files as its limit allows (see 'ulimit -n')",
    )


def share_of_open_files() -> int:
    """The limit for reading: a quarter of the files that the process may open, at most 4096. The limit for writing is
    the same; the rest is for connections.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(soft // 4, 4096))
