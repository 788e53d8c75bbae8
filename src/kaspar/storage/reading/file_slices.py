"""Records that are sent directly from their file, without a copy in this process.

A slice is a range of a segment's bytes below the high watermark, so they never change. It pins the segment's open file:
a segment that is deleted or cleaned meanwhile stays readable until the slice is released, at the latest when it is
garbage collected. A thread that cannot wait must not send bytes that may have to come from the disk; `cached_length`
returns how many are in memory at this moment.

`try_slice` returns one only where that is worthwhile, and leaves all other cases to `log_reader`.
"""

import os
from bisect import bisect_right
from typing import Final

from kaspar.records.layout import LENGTH_OVERHEAD
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.file_names import LOG
from kaspar.storage.disk.source import NotCached
from kaspar.storage.reading.committed_reads import aborted_among
from kaspar.storage.reading.log_reader import ReadableLog
from kaspar.storage.segments.open_files import ReadHandle
from kaspar.storage.segments.search import PLACE, locate
from kaspar.storage.segments.segment import Segment
from kaspar.storage.segments.transaction_index import AbortedTransaction

SMALLEST_SLICE: Final = 64 * 1024
"""Below this size, a copy is cheaper than another system call."""


class FileSlice:
    __slots__ = ("_directory", "_handle", "_position", "_size", "first_offset", "left_out")

    def __init__(
        self,
        directory: LogDirectory,
        handle: ReadHandle,
        position: int,
        size: int,
        *,
        first_offset: int = -1,
        left_out: int = 0,
    ) -> None:
        """`handle` is pinned; this slice releases it. `left_out`: how many more bytes the reader could have got."""
        self._directory = directory
        self._handle: ReadHandle | None = handle
        self._position = position
        self._size = size
        self.first_offset = first_offset
        self.left_out = left_out

    def __len__(self) -> int:
        """How many bytes are still to be sent."""
        return self._size

    def __del__(self) -> None:
        self.release()

    def cached_length(self, at_most: int) -> int:
        """How many of the next bytes, up to `at_most`, can be sent or read without waiting for the disk."""
        assert self._handle is not None, "a slice is used after its release"
        return self._directory.cached_length(self._handle.fd, self._position, min(at_most, self._size))

    def send(self, socket_fd: int, at_most: int) -> int:
        """Send the next bytes; returns how many the socket took. Raises BlockingIOError if it takes none now; EOFError
        if the file was truncated.
        """
        assert self._handle is not None, "a slice is used after its release"
        sent = os.sendfile(socket_fd, self._handle.fd, self._position, min(at_most, self._size))
        if sent == 0:
            raise EOFError("the file ends before the slice does")
        self._position += sent
        self._size -= sent
        return sent

    def take(self, at_most: int) -> bytes:
        """Read the next bytes, for a caller that must copy them. May block on disk I/O. Raises EOFError like `send`."""
        assert self._handle is not None, "a slice is used after its release"
        data = self._directory.files.pread(self._handle.fd, min(at_most, self._size), self._position)
        if not data:
            raise EOFError("the file ends before the slice does")
        self._position += len(data)
        self._size -= len(data)
        return data

    def release(self) -> None:
        """Safe to call twice."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._directory.readers.release(handle)


def try_slice(
    owner: ReadableLog,
    offset: int,
    max_bytes: int,
    upper_offset: int,
    *,
    whole_first_batch: bool,
    preferred_bytes: int,
) -> FileSlice | None:
    """Return what `Log.try_read` would read, as a slice. None if it is too small for one, not in memory, or anything is
    wrong: `try_read` handles these cases. Owner only, and only for committed records. The slice has more than
    `preferred_bytes` only if its first batch is that large; the remaining bytes are counted in `left_out`.
    """
    if max_bytes < SMALLEST_SLICE and not whole_first_batch:
        return None
    local = owner.local
    if offset < owner.log_start_offset or offset >= upper_offset or upper_offset > local.log_end_offset:
        return None
    segments = local.segments
    slot = segments.slot_of(offset)
    segment = segments.all[slot]
    size = segment.size
    if size - segment.recent_position(offset) < SMALLEST_SLICE:
        return None
    directory = local.directory
    if directory.readers.all_in_use:
        return None  # a slice keeps its file open until its client has read it; a copy does not
    try:
        handle = directory.readers.pin(segment) or directory.readers.acquire(segment, segment.path(LOG))
    except OSError:
        return None  # the file may be gone
    found = None
    try:
        end = size
        if upper_offset < (local.log_end_offset if slot + 1 == len(segments.all) else segments.base_offsets[slot + 1]):
            before = locate(directory.readers, segment, handle, upper_offset, size, directory.cached)
            end = size if before is None else before
        position = locate(directory.readers, segment, handle, offset, size, directory.cached)
        if position is not None:
            found = _slice(directory, segment, handle, position, end, max_bytes, whole_first_batch, preferred_bytes)
    except (NotCached, OSError):
        return None
    finally:
        if found is None:
            directory.readers.release(handle)
    return found


def _slice(
    directory: LogDirectory,
    segment: Segment,
    handle: ReadHandle,
    position: int,
    end: int,
    max_bytes: int,
    whole_first_batch: bool,
    preferred_bytes: int,
) -> FileSlice | None:
    available = end - position
    head = directory.pread_now(handle.fd, PLACE.size, position)
    if available < SMALLEST_SLICE or len(head) < PLACE.size:
        return None
    first_offset, length, _, _ = PLACE.unpack(head)
    first_size = length + LENGTH_OVERHEAD
    size = min(max_bytes, available)
    if size < first_size:
        if not whole_first_batch or available < first_size:
            return None
        size = first_size
    allowed = size
    size = max(min(size, preferred_bytes), first_size)
    if size < available:
        size = _without_part_of_a_batch(segment, handle, position, size, first_size)
    size = directory.cached_length(handle.fd, position, size)
    if size < SMALLEST_SLICE or size < first_size:
        return None
    return FileSlice(directory, handle, position, size, first_offset=first_offset, left_out=allowed - size)


def _without_part_of_a_batch(segment: Segment, handle: ReadHandle, position: int, size: int, first_size: int) -> int:
    """Shorten the range to whole batches, as far as the index allows: readers drop an incomplete batch."""
    index = segment.index or handle.index
    if index is not None:
        entry = bisect_right(index.positions, position + size) - 1
        if entry >= 0 and index.positions[entry] >= position + first_size:
            return index.positions[entry] - position
    return size


def aborted_in(owner: ReadableLog, offset: int, found: FileSlice) -> list[AbortedTransaction] | None:
    """The aborted transactions that may have records in a slice that was read from `offset` on; None if finding them
    would block on disk I/O, or listing them would take long.
    """
    try:
        return aborted_among(owner.local, offset, found.first_offset, len(found), owner.local.directory.cached)
    except (NotCached, OSError):
        return None
