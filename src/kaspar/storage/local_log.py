"""One partition's log as files: its segments, and the offsets up to which they are written and synced.

It corresponds to Kafka's LocalLog: it knows nothing of producers, leader epochs or the log start offset, which belong
to `Log`. The rules for threads and failures are in the docstring of log.py.
"""

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import Offset, TopicPartition
from kaspar.base.log import get_log
from kaspar.config import LogConfig
from kaspar.records import HEADER_SIZE
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.deleted_files import DeletedFiles
from kaspar.storage.disk.file_names import LOG, OFFSET_INDEX, SWAP, TIME_INDEX, TRANSACTION_INDEX
from kaspar.storage.disk.files import DISK_FULL, read_file, unlink_if_there
from kaspar.storage.rolling import RollPolicy, jitter_ms
from kaspar.storage.segments.indexes import OffsetIndex, TimeIndex
from kaspar.storage.segments.open_files import open_or_make_room
from kaspar.storage.segments.search import locate
from kaspar.storage.segments.segment import CLOSED, NOT_LOADED, Segment
from kaspar.storage.segments.segment_list import Segments
from kaspar.storage.segments.transaction_index import AbortedTransaction
from kaspar.storage.unsynced_files import UnsyncedFiles

log = get_log(__name__)


class ColdIndex(NamedTuple):
    """The index of the active segment, as read in a thread."""

    segment: Segment
    offsets: OffsetIndex


class LocalLog:
    __slots__ = (
        "_admitted",
        "_deleted_files",
        "_flushing",
        "_recovery_lock",
        "_roll_policy",
        "_swap_lock",
        "active",
        "cold",
        "config",
        "deleted",
        "directory",
        "folder",
        "index_interval_bytes",
        "is_starting_anew",
        "log_end_offset",
        "pwrite",
        "recovery_point",
        "segments",
        "swap_count",
        "topic_partition",
        "truncation_due",
        "truncations",
        "unflushed_since_ms",
        "unsynced",
    )

    def __init__(
        self,
        directory: LogDirectory,
        folder: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        *,
        segments: Sequence[Segment],
        log_end_offset: int,
        recovery_point: int,
    ) -> None:
        self.directory = directory
        self.folder = folder
        self.topic_partition = topic_partition
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self.unflushed_since_ms = -1
        """Time of the oldest append that no sync has covered, on the steady clock; -1 if there is none."""
        self.deleted = False
        self.truncations = 0
        """How often the end of the log was truncated. A sync that runs meanwhile must not move the recovery point."""
        self.truncation_due = False
        """Whether a truncation was begun but not finished, for lack of space or of file descriptors: it must be
        repeated before anything is appended."""
        self.is_starting_anew = False
        """Whether that truncation removes every record: some of the files may be gone already."""
        self.swap_count = 0
        """How often a cleaned segment has replaced others."""
        self.pwrite = directory.files.pwrite
        self.unsynced = UnsyncedFiles(directory, folder, topic_partition)
        self._deleted_files = DeletedFiles()
        self._admitted = False
        self._flushing = threading.Lock()
        self._recovery_lock = threading.Lock()
        # Held while a cleaned segment replaces others, and during a truncation: file names and the list of segments
        # change together.
        self._swap_lock = threading.Lock()
        self._publish(segments)
        self.reconfigure(config)

    def reconfigure(self, config: LogConfig) -> None:
        self.config = config
        self.index_interval_bytes = config.index_interval_bytes
        self._roll_policy = RollPolicy(self.directory, config)
        self._roll_policy.update(self.active)
        self.active.byte_limit = -1  # the next append checks all limits again

    # The list of segments

    def _publish(self, segments: Sequence[Segment]) -> None:
        self.segments = Segments.of(segments)
        self.active = segments[-1]
        # The first append to a cold log would have to read the index of the active segment.
        self.cold = self.active.size > 0 and self.active.index is None

    def has_segment(self, segment: Segment) -> bool:
        """Whether a segment is part of the log. Waits for a swap that is renaming files. Safe in any thread."""
        with self._swap_lock:
            return segment in self.segments.all

    def has_segments(self, segments: Segments) -> bool:
        """Whether this is still the log's list: a roll publishes a new one. Waits for a swap that is renaming files."""
        with self._swap_lock:
            return self.segments is segments

    def completed_swaps(self) -> int:
        """Return `swap_count`, after waiting for a swap that is renaming files. Safe in any thread."""
        with self._swap_lock:
            return self.swap_count

    # The active segment

    def read_cold(self) -> ColdIndex | None:
        """Read from disk what an append to a cold log needs. Safe in any thread; the owner then calls `warm_up`."""
        segment, files = self.active, self.directory.files
        try:
            index = OffsetIndex.load(files, segment.path(OFFSET_INDEX))
            # The rest is small: once it is in the page cache, the owner can read it without blocking.
            TimeIndex.load(files, segment.path(TIME_INDEX))
            if segment.aborted_count:
                read_file(files, segment.path(TRANSACTION_INDEX))
            fd = files.open(segment.path(LOG))
            try:
                files.pread(fd, HEADER_SIZE, 0)
            finally:
                files.close(fd)
        except OSError:
            return None  # the append gets the same error and handles it
        return ColdIndex(segment, index)

    def warm_up(self, read: ColdIndex | None) -> None:
        if self.cold and read is not None and read.segment is self.active and self.active.index is None:
            self.active.index = read.offsets
        self.cold = False

    def open_active(self) -> Segment:
        """Open the active segment's file, and load what an append needs."""
        segment = self.active
        if segment.fd != CLOSED:
            return segment
        self.directory.check_online()
        if self.truncation_due:
            raise Refused(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the truncation of {self.topic_partition} has to be finished first"
            )
        files = self.directory.files
        path = segment.path(LOG)
        try:
            if segment.index is None:
                segment.index = OffsetIndex.load(files, segment.path(OFFSET_INDEX))
                self.cold = False
            segment.loaded_time_index(files)
            if segment.aborted_count:
                segment.loaded_aborted(files)
            segment.fd = open_or_make_room(
                lambda: files.open(path, write=True), path, self.directory.readers, self.directory.writers
            )
            if self.config.preallocate and segment.size == 0:
                files.allocate(segment.fd, self.config.segment_bytes)
        except OSError as error:
            segment.close(files)
            raise self.directory.fail(error, f"opening {path}") from error
        self._admit()
        return segment

    def _admit(self) -> None:
        if not self._admitted:
            self._admitted = True
            self.directory.writers.admit(self)

    def close_writer(self) -> None:
        """Close the file descriptor; the next append opens the file again."""
        self._admitted = False
        self.active.close(self.directory.files, trim=self.config.preallocate)

    # Rolling

    def must_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether a batch needs a new segment. Opens the active one. Raises Refused if the batch fits in no segment."""
        if size > self.config.segment_bytes:
            raise Refused(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {size} bytes in append to partition {self.topic_partition}, which exceeds the "
                f"maximum configured segment size of {self.config.segment_bytes}.",
            )
        return self._roll_policy.must_roll(self.open_active(), size, last_offset, max_timestamp, now_ms)

    def prepare_active(self, max_timestamp: int) -> Segment:
        """Prepare the active segment, which is open, for a batch with this largest timestamp, and return it."""
        segment = self.active
        if segment.size == 0:
            self._roll_policy.first_batch_at(segment, max_timestamp)
        segment.byte_limit = self.config.segment_bytes
        return segment

    def is_overdue(self, now_ms: int) -> bool:
        """Whether the active segment must be rolled now, even without an append, to be compacted in time."""
        if not self._roll_policy.compacts_in_time or not self.active.size:
            return False
        if self.active.rolling_timestamp == NOT_LOADED:
            self.open_active()
        return self._roll_policy.is_overdue(self.active, now_ms)

    def roll(self, base_offset: int, now_ms: int) -> None:
        """Create a segment at `base_offset`, which becomes the active one. If the old one is empty, it is replaced."""
        files = self.directory.files
        old = self.active
        try:
            new = self._new_segment(base_offset, now_ms)
        except OSError as error:
            raise self.directory.fail(error, f"rolling {old.path(LOG)}") from error
        try:
            old.seal(files, trim=self.config.preallocate)
        except OSError as error:
            # The old segment stays active, and the next attempt may use the new one's file names.
            new.close(files)
            unlink_if_there(files, new.path(LOG))
            raise self.directory.fail(error, f"rolling {old.path(LOG)}") from error
        if old.size:
            self.unsynced.add_indexes(old)
            self._publish([*self.segments.all, new])
        else:
            self._publish([*self.segments.all[:-1], new])
            self._delete_files(old)
        self.unsynced.names = True
        self._admit()

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        config = self.config
        return Segment.create(
            self.directory.files,
            self.folder,
            base_offset,
            now_ms=now_ms,
            jitter_ms=jitter_ms(config),
            preallocate=config.segment_bytes if config.preallocate else 0,
        )

    # Writing

    def write_rest(self, fd: int, data: memoryview, position: int, written: int) -> None:
        while written < len(data):
            written += self.pwrite(fd, data[written:], position + written)

    def write_failed(self, segment: Segment, error: OSError) -> StorageFailure | Refused:
        """Cut off the part of a batch that was written. Only after a full disk does the log stay usable."""
        segment.byte_limit = -1
        if error.errno in DISK_FULL:
            try:
                self.directory.files.truncate(segment.fd, segment.size)
            except OSError as worse:
                return self.directory.take_offline(f"{worse} while cutting off a partial write to {self.folder}")
        return self.directory.fail(error, f"appending to {self.topic_partition}")

    def add_index_entry(self, segment: Segment, last_offset: int, position: int) -> None:
        try:
            segment.add_index_entry(self.directory.files, last_offset, position)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise self.directory.fail(error, f"writing an index of {self.topic_partition}") from error
            # The entries stay in memory and are written with the next ones.
        segment.bytes_since_index_entry = 0
        segment.forget_old_batches()
        if segment.index_is_full(self.config.segment_index_bytes):
            segment.byte_limit = -1

    def add_aborted(self, segment: Segment, transaction: AbortedTransaction) -> None:
        """Add the entry before the log end offset passes the marker: from then on a sync may make both durable."""
        if not segment.aborted_count:
            self.unsynced.names = True
        self.unsynced.add_aborted(segment)
        try:
            segment.add_aborted(self.directory.files, transaction)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise self.directory.fail(error, f"writing an index of {self.topic_partition}") from error
            log.warning("no space is left for an aborted transaction's entry", partition=self.topic_partition)

    def drop_aborted(self, segment: Segment, offset: int) -> None:
        """Remove the entry of the marker at `offset`, which was not written after all."""
        try:
            segment.drop_aborted(self.directory.files, offset)
        except OSError as error:
            raise self.directory.take_offline(f"{error} while removing an index entry of {self.folder}") from error

    # Syncing

    def flush(self, up_to: int | None, also: Callable[[], None]) -> Offset:
        """Sync everything below the log end offset or, if given, below `up_to`; returns the new recovery point. `also`
        persists whatever else must be durable before the recovery point moves.
        """
        with self._flushing:
            self.directory.check_online()
            truncations = self.truncations
            if up_to is None:
                self.unflushed_since_ms = -1
            target = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
            try:
                self._sync_segments(self.recovery_point, target)
                self.unsynced.sync()
                also()
            except OSError as error:
                if self.deleted:
                    return Offset(self.recovery_point)  # the log was deleted and its folder renamed
                # The kernel may have dropped pages that it could not write: another sync would succeed and prove
                # nothing.
                raise self.directory.take_offline(f"{error} while syncing {self.topic_partition}") from error
            with self._recovery_lock:
                if truncations == self.truncations and target > self.recovery_point:
                    self.recovery_point = target
                return Offset(self.recovery_point)

    def _sync_segments(self, begin: int, end: int) -> None:
        """Sync every file with records from `begin` up to `end`."""
        segments = self.segments
        for segment in segments.all[segments.slot_of(begin) :]:
            if segment.base_offset >= end:
                break
            try:
                handle = self.directory.readers.acquire(segment, segment.path(LOG))
            except FileNotFoundError:
                if self.has_segment(segment):
                    raise
                continue  # deleted, or replaced by a cleaned segment, which the cleaner has synced
            try:
                self.directory.files.fsync(handle.fd)
            finally:
                self.directory.readers.release(handle)

    # Removing records

    def truncate_to(self, offset: int) -> None:
        """Remove everything from `offset` on, durably. `offset` is not below the first segment. May be repeated."""
        files, readers = self.directory.files, self.directory.readers
        self._release_writer()
        self._ends_at(offset, min(self.recovery_point, offset))
        kept = [segment for segment in self.segments.all if segment.base_offset <= offset]
        dropped = self.segments.all[len(kept) :]
        if dropped:
            with self._swap_lock:
                for segment in dropped:
                    self._delete_files(segment)
                files.fsync_dir(self.folder)
                self._publish(kept)  # last, so that a repetition deletes what this call could not
        segment = self.active
        path = segment.path(LOG)
        handle = readers.acquire(segment, path)
        try:
            position = locate(readers, segment, handle, offset, segment.size, self.directory.waiting)
        finally:
            readers.release(handle)
        fd = files.open(path, write=True)
        try:
            segment.cut(files, fd, offset, segment.size if position is None else position)
        finally:
            files.close(fd)
        readers.forget(segment)
        self.cold = False
        if segment.size == 0:
            segment.rolling_timestamp = NOT_LOADED
        segment.byte_limit = -1

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Replace all segments by an empty one at `offset`, durably. May be repeated."""
        self.is_starting_anew = True
        self._release_writer()
        self._ends_at(offset, offset)
        with self._swap_lock:
            for segment in self.segments.all:
                self._delete_files(segment)
            empty = self._new_segment(offset, now_ms)
            empty.close(self.directory.files)
            self.directory.files.fsync_dir(self.folder)
            self._publish([empty])
        self.is_starting_anew = False

    def _release_writer(self) -> None:
        """Close the active segment's descriptor, for a thread that has the log to itself and opens a descriptor of its
        own: neither can the event loop close that one to make room for another log, nor does the thread close one in
        use.
        """
        self.directory.writers.remove(self)
        self.close_writer()

    def _ends_at(self, offset: int, recovery_point: int) -> None:
        with self._recovery_lock:
            self.log_end_offset = offset  # first, so that a sync that sees the new `truncations` also sees this end
            self.truncations += 1
            self.recovery_point = recovery_point

    def delete_segments_below(self, offset: int) -> None:
        """Delete the segments without records at or above `offset`."""
        dropped = self.segments.below(offset)
        if dropped:
            self._publish(self.segments.all[len(dropped) :])
            for segment in dropped:
                self._delete_files(segment)

    def swap(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace the segments `old` by `new`, whose files end in `.swap`. A start repairs the names after an
        OSError.
        """
        segments = self.segments.all
        slot = segments.index(old[0])
        with self._swap_lock:
            for segment in old:
                self._delete_files(segment)
            new.move_files(self.directory.files, SWAP, "")
            self._publish([*segments[:slot], new, *segments[slot + len(old) :]])
            self.swap_count += 1

    def _delete_files(self, segment: Segment) -> None:
        """Rename a segment's files to `.deleted`; `delete_due_files` removes them later."""
        segment.close(self.directory.files)
        self._deleted_files.add(segment.mark_deleted(self.directory.files))
        self.directory.readers.forget(segment)

    def delete_due_files(self, now_ms: int) -> int:
        """Remove files whose `file.delete.delay.ms` has passed on the steady clock; returns how many. Any thread."""
        return self._deleted_files.remove_due(self.directory.files, now_ms, self.config.file_delete_delay_ms)

    def folder_renamed(self, folder: str) -> None:
        self.folder = folder
        self.unsynced.folder_renamed(folder)
        self._deleted_files.folder_renamed(folder)
        for segment in self.segments.all:
            segment.folder = folder

    def abandon(self) -> None:
        """Close every file without writing: the log is deleted, or its directory is offline."""
        if self._admitted:
            self.directory.writers.remove(self)
        with contextlib.suppress(OSError):
            self.close_writer()
        for segment in self.segments.all:
            self.directory.readers.forget(segment)
