"""One segment of a log: a `.log` file of record batches with its two sparse indexes, and the index of aborted
transactions if it contains the marker of any.

`base_offset` is in every file's name and never above the first record's offset. A segment knows its size, its largest
timestamp and, while it is the active one, the positions of its last batches, so that a reader at the end of the log
finds its batch without an index. What is not needed to list a segment is loaded when it is first used. The owner of the
log changes it; readers in other threads use only attributes that are published in one step.
"""

import contextlib
import os
from array import array
from bisect import bisect_right

from kaspar.storage.disk.file_names import (
    DELETED,
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    TIME_INDEX,
    TRANSACTION_INDEX,
    numbered,
)
from kaspar.storage.disk.files import Files, unlink_if_there
from kaspar.storage.segments.indexes import (
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    OffsetIndex,
    TimeIndex,
    create_index_file,
    cut_index_file,
    truncated_time_index,
)
from kaspar.storage.segments.transaction_index import AbortedTransaction, TransactionIndex

CLOSED = -1
NOT_LOADED = -2
_NEVER = 1 << 63
_RECENT_BATCHES = 2048
_LARGEST_RELATIVE_OFFSET = 0x7FFF_FFFF

Recent = tuple["array[int]", "array[int]"]


class Segment:
    __slots__ = (
        "aborted",
        "aborted_count",
        "base_offset",
        "byte_limit",
        "bytes_since_index_entry",
        "created_ms",
        "fd",
        "folder",
        "index",
        "jitter_ms",
        "largest_offset",
        "max_timestamp",
        "offset_of_max_timestamp",
        "recent",
        "recent_offsets",
        "recent_positions",
        "roll_after_timestamp",
        "rolling_timestamp",
        "size",
        "time_index",
    )

    def __init__(self, folder: str, base_offset: int, size: int, *, created_ms: int, jitter_ms: int = 0) -> None:
        self.folder = folder
        self.base_offset = base_offset
        self.size = size
        self.created_ms = created_ms
        self.jitter_ms = jitter_ms
        self.largest_offset = base_offset + _LARGEST_RELATIVE_OFFSET
        self.fd = CLOSED
        # An append that would pass this size takes the slow path, which may roll. It is -1, for all appends, while the
        # file is closed or an index is full.
        self.byte_limit = -1
        self.index: OffsetIndex | None = None
        self.time_index: TimeIndex | None = None
        # How many aborted transactions have their marker here. Their index is loaded only while appends go on.
        self.aborted_count = 0
        self.aborted: TransactionIndex | None = None
        self.max_timestamp = NOT_LOADED
        self.offset_of_max_timestamp = base_offset
        # The largest timestamp of the first batch, from which the age of the segment counts.
        self.rolling_timestamp = NOT_LOADED
        self.roll_after_timestamp = _NEVER
        self.bytes_since_index_entry = 0
        self.recent_offsets = array("q")
        self.recent_positions = array("q")
        self.recent: Recent = (self.recent_offsets, self.recent_positions)

    @staticmethod
    def create(
        files: Files, folder: str, base_offset: int, *, now_ms: int, jitter_ms: int, preallocate: int
    ) -> "Segment":
        """Create a new, empty segment, open for appends. Files that a failed attempt left are truncated."""
        segment = Segment(folder, base_offset, 0, created_ms=now_ms, jitter_ms=jitter_ms)
        segment.index = OffsetIndex()
        segment.time_index = TimeIndex()
        segment.max_timestamp = -1
        fd = files.open(segment.path(LOG), create=True)
        try:
            create_index_file(files, segment.path(OFFSET_INDEX))
            create_index_file(files, segment.path(TIME_INDEX))
            if preallocate:
                files.allocate(fd, preallocate)
        except BaseException:
            files.close(fd)
            raise
        segment.fd = fd
        return segment

    def path(self, suffix: str) -> str:
        return os.path.join(self.folder, numbered(self.base_offset, suffix))

    def loaded_time_index(self, files: Files) -> TimeIndex:
        """Load the time index, and with it the largest timestamp. Safe in any thread: loading twice is harmless."""
        time_index = self.time_index
        if time_index is None:
            try:
                time_index = TimeIndex.load(files, self.path(TIME_INDEX))
            except FileNotFoundError:
                time_index = TimeIndex()
            if self.max_timestamp == NOT_LOADED:
                self.offset_of_max_timestamp = self.base_offset + time_index.last_relative_offset
                self.max_timestamp = time_index.last_timestamp
            self.time_index = time_index
        return time_index

    def loaded_max_timestamp(self, files: Files) -> int:
        if self.max_timestamp == NOT_LOADED:
            self.loaded_time_index(files)
        return self.max_timestamp

    def largest_timestamp(self, files: Files) -> int:
        """The largest timestamp or, without one, the time of the last write, for retention and lookups by time."""
        timestamp = self.loaded_max_timestamp(files)
        return timestamp if timestamp >= 0 else files.modified_ms(self.path(LOG))

    def first_batch_at(self, timestamp: int, segment_ms: int) -> None:
        """Set the timestamp of the first batch, from which the age of the segment counts (see RollPolicy)."""
        self.rolling_timestamp = timestamp
        self.segment_ms_changed(segment_ms)

    def segment_ms_changed(self, segment_ms: int) -> None:
        if self.rolling_timestamp >= 0:
            self.roll_after_timestamp = self.rolling_timestamp + segment_ms - self.jitter_ms
        else:
            # Without a timestamp in the first batch every append takes the slow path, which compares with the clock.
            self.roll_after_timestamp = _NEVER if self.rolling_timestamp == NOT_LOADED else -2

    def appended(self, base_offset: int, last_offset: int, position: int, timestamp: int) -> None:
        """Record a batch that was written at `position` (the leader's hot path does the same inline)."""
        self.recent_positions.append(position)
        self.recent_offsets.append(base_offset)
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.offset_of_max_timestamp = last_offset

    def add_index_entry(self, files: Files, last_offset: int, position: int) -> None:
        """Add entries for the batch at `position` and for the largest timestamp so far. Full pages are written."""
        assert self.index is not None
        assert self.time_index is not None
        self.index.append(last_offset - self.base_offset, position)
        self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp - self.base_offset)
        if self.index.has_full_page:
            self.index.write(files, self.path(OFFSET_INDEX), everything=False)
        if self.time_index.has_full_page:
            self.time_index.write(files, self.path(TIME_INDEX), everything=False)

    def loaded_aborted(self, files: Files) -> TransactionIndex:
        """Load the index of aborted transactions for the owner, which changes it."""
        if self.aborted is None:
            path = self.path(TRANSACTION_INDEX)
            self.aborted = TransactionIndex.load(files, path) if self.aborted_count else TransactionIndex()
        return self.aborted

    def add_aborted(self, files: Files, transaction: AbortedTransaction) -> None:
        """Add the entry before its marker can be read. On a full disk it stays in memory until the next write."""
        aborted = self.loaded_aborted(files)
        aborted.append(transaction)
        self.aborted_count = len(aborted)
        aborted.write(files, self.path(TRANSACTION_INDEX))

    def drop_aborted(self, files: Files, offset: int) -> None:
        """Remove the entries of markers from `offset` on, which were truncated or never written."""
        if self.aborted_count:
            aborted = self.loaded_aborted(files)
            aborted.cut(files, self.path(TRANSACTION_INDEX), offset)
            self.aborted_count = len(aborted)

    def forget_old_batches(self) -> None:
        """Limit the list of recent batches. Readers continue with the arrays that they have."""
        if len(self.recent_offsets) > _RECENT_BATCHES:
            half = -_RECENT_BATCHES // 2
            self._set_recent(self.recent_offsets[half:], self.recent_positions[half:])

    def forget_recent_batches(self) -> None:
        self._set_recent(array("q"), array("q"))

    def _set_recent(self, offsets: "array[int]", positions: "array[int]") -> None:
        self.recent_offsets, self.recent_positions = offsets, positions
        self.recent = (offsets, positions)

    def recent_position(self, offset: int) -> int:
        """The position of the batch that contains `offset`, if it is one of the last ones; otherwise -1."""
        offsets, positions = self.recent
        slot = bisect_right(offsets, offset) - 1
        return positions[slot] if slot >= 0 else -1

    def recent_batch_size(self, offset: int) -> int:
        """The size of the batch that begins with `offset`, if it is one of the last; otherwise 0. Owner only."""
        offsets, positions = self.recent
        slot = bisect_right(offsets, offset) - 1
        if slot < 0 or offsets[slot] != offset:
            return 0
        return (positions[slot + 1] if slot + 1 < len(positions) else self.size) - positions[slot]

    def index_is_full(self, segment_index_bytes: int) -> bool:
        """Whether an index is full. One slot of the time index stays free, for the entry that a roll adds."""
        assert self.index is not None
        assert self.time_index is not None
        return (
            len(self.index) >= segment_index_bytes // OFFSET_ENTRY_SIZE
            or len(self.time_index) >= segment_index_bytes // TIME_ENTRY_SIZE - 1
        )

    def write_indexes(self, files: Files) -> None:
        """Write the pending entries of all indexes to their files."""
        if self.aborted is not None:
            self.aborted.write(files, self.path(TRANSACTION_INDEX))
        if self.index is not None:
            self.index.write(files, self.path(OFFSET_INDEX), everything=True)
        if self.time_index is not None:
            self.time_index.write(files, self.path(TIME_INDEX), everything=True)

    def complete_indexes(self, files: Files) -> None:
        """Complete the indexes when appends stop: the largest timestamp becomes the last entry of the time index."""
        if self.max_timestamp != NOT_LOADED and self.max_timestamp >= 0:
            time_index = self.loaded_time_index(files)
            time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp - self.base_offset)
        self.write_indexes(files)

    def seal(self, files: Files, *, trim: bool) -> None:
        """Close a segment that is no longer the active one, after completing its indexes."""
        self.complete_indexes(files)
        self.close(files, trim=trim)
        self.index = None
        self.aborted = None
        self.forget_recent_batches()

    def close(self, files: Files, *, trim: bool = False) -> None:
        if self.fd != CLOSED:
            fd, self.fd = self.fd, CLOSED
            self.byte_limit = -1
            try:
                if trim:
                    files.truncate(fd, self.size)
            finally:
                files.close(fd)

    def cut(self, files: Files, fd: int, offset: int, position: int) -> None:
        """Truncate the segment to `offset`, which begins at `position`; synced, so that nothing comes back. May be
        repeated if it fails.
        """
        files.truncate(fd, position)
        self.size = position
        files.fsync(fd)
        relative = offset - self.base_offset
        index = self.index if self.index is not None else OffsetIndex.load(files, self.path(OFFSET_INDEX))
        index.write(files, self.path(OFFSET_INDEX), everything=True)
        self.index = index.kept_below(relative)
        cut_index_file(files, self.path(OFFSET_INDEX), len(self.index) * OFFSET_ENTRY_SIZE)
        self.loaded_time_index(files).write(files, self.path(TIME_INDEX), everything=True)
        self.time_index = truncated_time_index(files, self.path(TIME_INDEX), relative)
        self.max_timestamp = self.time_index.last_timestamp
        self.offset_of_max_timestamp = self.base_offset + self.time_index.last_relative_offset
        self.drop_aborted(files, offset)
        self.bytes_since_index_entry = 0
        self.forget_recent_batches()

    def mark_deleted(self, files: Files, mark: str = DELETED) -> list[str]:
        """Rename the segment's files so that a start ignores them. Returns their new names."""
        renamed = []
        for suffix in SEGMENT_SUFFIXES:
            path = self.path(suffix)
            try:
                files.rename(path, path + mark)
            except FileNotFoundError:
                continue
            renamed.append(path + mark)
        return renamed

    def move_files(self, files: Files, old_mark: str, new_mark: str) -> None:
        """Rename the segment's files from one suffix to another (both follow the usual names). The log file comes
        first, as in Kafka: startup relies on that (see leftovers).
        """
        for suffix in SEGMENT_SUFFIXES:
            path = self.path(suffix)
            with contextlib.suppress(FileNotFoundError):  # the index of aborted transactions may not exist
                files.rename(path + old_mark, path + new_mark)

    def remove_files(self, files: Files, mark: str) -> None:
        for suffix in SEGMENT_SUFFIXES:
            unlink_if_there(files, self.path(suffix) + mark)
