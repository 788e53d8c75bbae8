"""The files of one partition's log: its segments, open or not, and how they are rolled, synced, cut and given up.

`Log` stands on it and adds what the bytes mean: offsets for producers, leader epochs, reads. The rules on threads and
failures are written there.
"""

import contextlib
import os
import random
import threading
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused, StorageFailure
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.config import LogConfig
from kaspar.config.kinds import MAX_LONG
from kaspar.records import HEADER_SIZE, read_header
from kaspar.storage.doomed_files import DoomedFiles
from kaspar.storage.file_names import (
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA,
    TIME_INDEX,
    TRANSACTION_INDEX,
)
from kaspar.storage.files import DISK_FULL, read_file, sync_file, unlink_if_there
from kaspar.storage.indexes import OffsetIndex, TimeIndex
from kaspar.storage.log_directory import LogDirectory
from kaspar.storage.log_reader import Segments, locate
from kaspar.storage.open_files import open_or_make_room
from kaspar.storage.segment import CLOSED, NOT_LOADED, Segment
from kaspar.storage.transaction_index import AbortedTransaction
from kaspar.storage.validator import plain_terms

log = get_log(__name__)


class ColdIndex(NamedTuple):
    """The index of a segment that takes appends, as it was read in a thread."""

    segment: Segment
    offsets: OffsetIndex


class LocalLog:
    __slots__ = (
        "_active",
        "_admitted",
        "_config",
        "_doomed",
        "_flushing",
        "_folder_dirty",
        "_folder_is_new",
        "_index_interval_bytes",
        "_max_segment_ms",
        "_pwrite",
        "_recovering",
        "_renaming",
        "_truncations",
        "_unsynced_aborted",
        "_unsynced_indexes",
        "cold",
        "deleted",
        "directory",
        "folder",
        "log_end_offset",
        "plain_terms",
        "recovery_point",
        "segments",
        "topic_partition",
        "unflushed_since_ms",
    )

    def __init__(
        self,
        directory: LogDirectory,
        folder: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        segments: list[Segment],
        log_end_offset: int,
        recovery_point: int,
    ) -> None:
        self.directory = directory
        self.folder = folder
        self.topic_partition = topic_partition
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        # When the oldest append that no sync has covered came, on the steady clock; -1 if there is none.
        self.unflushed_since_ms = -1
        self.deleted = False
        self._pwrite = directory.files.pwrite
        self._publish(segments)
        self._admitted = False
        # New files, and perhaps the folder itself, whose names are not durable yet, and rolled segments whose indexes
        # are not.
        self._folder_dirty = False
        self._folder_is_new = False
        self._unsynced_indexes: list[Segment] = []
        # Segments whose aborted transactions are not durable yet, although their markers may be synced at any moment.
        self._unsynced_aborted: set[Segment] = set()
        self._doomed = DoomedFiles()
        # A sync that was under way while the log was cut must not move the recovery point.
        self._truncations = 0
        self._flushing = threading.Lock()
        self._recovering = threading.Lock()
        # Held while a cleaned segment takes the place of others: names and the list of segments change together.
        self._renaming = threading.Lock()
        self.config = config

    @property
    def config(self) -> LogConfig:
        """May be replaced while the log is in use."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self.plain_terms = plain_terms(config)
        self._index_interval_bytes = config.index_interval_bytes
        self._max_segment_ms = max_segment_ms(config)
        self._active.segment_ms_changed(self._max_segment_ms)
        self._active.byte_limit = -1  # the next append looks at everything anew

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments.all)

    def _publish(self, segments: list[Segment]) -> None:
        self.segments = Segments(tuple(segment.base_offset for segment in segments), tuple(segments))
        self._active = segments[-1]
        # An append would have to read the index of the active segment first.
        self.cold = self._active.size > 0 and self._active.index is None

    def has_segment(self, segment: Segment) -> bool:
        """Whether a segment is part of the log, also in the moment in which files change their names. Any thread."""
        with self._renaming:
            return segment in self.segments.all

    def has_segments(self, segments: Segments) -> bool:
        """The same for the whole list. A roll makes another list."""
        with self._renaming:
            return self.segments is segments

    # Opening and rolling

    def _segment_for(self, size: int, base_offset: int, last_offset: int, max_timestamp: int, now_ms: int) -> Segment:
        """The segment that a batch goes to, open for writing: the slow path of an append."""
        config = self._config
        if size > config.segment_bytes:
            raise Refused(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {size} bytes in append to partition {self.topic_partition}, which exceeds the "
                f"maximum configured segment size of {config.segment_bytes}.",
            )
        segment = self._open_active()
        if segment.size == 0:
            # An empty segment may begin too low for what a follower is given.
            must_roll = last_offset > segment.largest_offset
        else:
            must_roll = (
                self._waited_ms(segment, max_timestamp, now_ms) > self._max_segment_ms - segment.jitter_ms
                or segment.size + size > config.segment_bytes
                or last_offset > segment.largest_offset
                or segment.index_is_full(config.segment_index_bytes)
            )
        if must_roll:
            self._roll(max(base_offset, self.log_end_offset), now_ms)
            segment = self._active
        if segment.size == 0:
            segment.first_batch_at(max_timestamp, self._max_segment_ms)
        segment.byte_limit = config.segment_bytes
        return segment

    def _waited_ms(self, segment: Segment, max_timestamp: int, now_ms: int) -> int:
        """How old a segment has become: by the time in its records, or by the clock if its first batch has none."""
        if segment.rolling_timestamp == NOT_LOADED:
            self._load_rolling_timestamp(segment)
        if segment.rolling_timestamp >= 0:
            return max_timestamp - segment.rolling_timestamp
        return now_ms - segment.created_ms

    def _load_rolling_timestamp(self, segment: Segment) -> None:
        first = read_header(self.directory.files.pread(segment.fd, HEADER_SIZE, 0), 0)
        segment.first_batch_at(first.max_timestamp, self._max_segment_ms)

    def read_cold(self) -> ColdIndex | None:
        """What an append to a cold log has to know, from the disk: in any thread. The owner then warms the log up."""
        segment, files = self._active, self.directory.files
        try:
            index = OffsetIndex.load(files, segment.path(OFFSET_INDEX))
            # The rest is small, and once it is in the page cache the owner reads it without waiting.
            TimeIndex.load(files, segment.path(TIME_INDEX))
            if segment.aborted_count:
                read_file(files, segment.path(TRANSACTION_INDEX))
            fd = files.open(segment.path(LOG))
            try:
                files.pread(fd, HEADER_SIZE, 0)
            finally:
                files.close(fd)
        except OSError:
            return None  # the append meets it too, and knows what follows from it
        return ColdIndex(segment, index)

    def warm_up(self, read: ColdIndex | None) -> None:
        if self.cold and read is not None and read.segment is self._active and self._active.index is None:
            self._active.index = read.offsets
        self.cold = False

    def _open_active(self) -> Segment:
        """Open the active segment's file, and load what an append needs to know of it."""
        segment = self._active
        if segment.fd != CLOSED:
            return segment
        self.directory.check_online()
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
            if self._config.preallocate and segment.size == 0:
                files.allocate(segment.fd, self._config.segment_bytes)
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
        """Give the file descriptor back; the next append opens the file again."""
        self._admitted = False
        self._active.close(self.directory.files, trim=self._config.preallocate)

    def roll(self, *, now_ms: int) -> None:
        """Start a new segment at the log end offset, unless the active one is still empty."""
        if self._active.size:
            self._roll(self.log_end_offset, now_ms)

    def roll_if_overdue(self, *, now_ms: int) -> bool:
        """Roll a segment of a compacted topic that nobody appends to, so that its records, too, are cleaned in time.

        Its age counts from its first record, but not from before there was the segment: old records that come in one by
        one would otherwise end a segment each, and have the log cleaned for each.
        """
        config = self._config
        max_lag_ms = config.max_compaction_lag_ms
        segment = self._active
        if "compact" not in config.cleanup_policy or max_lag_ms >= MAX_LONG or not segment.size:
            return False
        if segment.rolling_timestamp == NOT_LOADED:
            self._look_at_idle(self._open_active())
        overdue = now_ms - max(segment.rolling_timestamp, segment.created_ms) > max_lag_ms
        if overdue:
            self.roll(now_ms=now_ms)
        return overdue

    def _look_at_idle(self, segment: Segment) -> None:
        """Since when the active segment waits that a start has found: at the latest since it was last written to."""
        path = segment.path(LOG)
        try:
            self._load_rolling_timestamp(segment)
            segment.created_ms = min(segment.created_ms, self.directory.files.modified_ms(path))
        except MalformedBytes as problem:
            raise Refused(
                ErrorCode.CORRUPT_MESSAGE, f"{path} does not begin with a record batch: {problem}"
            ) from problem
        except OSError as error:
            raise self.directory.fail(error, f"looking at {path}") from error

    def _roll(self, base_offset: int, now_ms: int) -> None:
        files = self.directory.files
        old = self._active
        try:
            new = self._new_segment(base_offset, now_ms)
        except OSError as error:
            raise self.directory.fail(error, f"rolling {old.path(LOG)}") from error
        try:
            old.seal(files, trim=self._config.preallocate)
        except OSError as error:
            # The old segment stays the active one; the new one's name is free again for the next attempt.
            new.close(files)
            unlink_if_there(files, new.path(LOG))
            raise self.directory.fail(error, f"rolling {old.path(LOG)}") from error
        if old.size:
            self._unsynced_indexes.append(old)
            self._publish([*self.segments.all, new])
        else:
            self._publish([*self.segments.all[:-1], new])
            self._doom(old)
        self._folder_dirty = True
        self._admit()

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        config = self._config
        return Segment.create(
            self.directory.files,
            self.folder,
            base_offset,
            now_ms=now_ms,
            jitter_ms=jitter_ms(config),
            preallocate=config.segment_bytes if config.preallocate else 0,
        )

    # Writing

    def _write_rest(self, fd: int, data: memoryview, position: int, written: int) -> None:
        while written < len(data):
            written += self._pwrite(fd, data[written:], position + written)

    def _write_failed(self, segment: Segment, error: OSError) -> StorageFailure | Refused:
        """Cut off what was written of a batch. Only a full disk leaves the log usable."""
        segment.byte_limit = -1
        if error.errno in DISK_FULL:
            try:
                self.directory.files.truncate(segment.fd, segment.size)
            except OSError as worse:
                return self.directory.take_offline(f"{worse} while cutting off a partial write to {self.folder}")
        return self.directory.fail(error, f"appending to {self.topic_partition}")

    def _add_index_entry(self, segment: Segment, last_offset: int, position: int) -> None:
        try:
            segment.add_index_entry(self.directory.files, last_offset, position)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise self.directory.fail(error, f"writing an index of {self.topic_partition}") from error
            # The entries stay in memory and are tried again with the next ones.
        segment.bytes_since_index_entry = 0
        segment.forget_old_batches()
        if segment.index_is_full(self._config.segment_index_bytes):
            segment.byte_limit = -1

    def _add_aborted(self, segment: Segment, transaction: AbortedTransaction) -> None:
        """Before the end of the log passes the marker: from then on a sync may make it durable, and this with it."""
        if not segment.aborted_count:
            self._folder_dirty = True
        self._unsynced_aborted.add(segment)
        try:
            segment.add_aborted(self.directory.files, transaction)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise self.directory.fail(error, f"writing an index of {self.topic_partition}") from error
            log.warning("no space is left for an aborted transaction's entry", partition=self.topic_partition)

    def _drop_aborted(self, segment: Segment, offset: int) -> None:
        """The marker at `offset` was not written after all."""
        try:
            segment.drop_aborted(self.directory.files, offset)
        except OSError as error:
            raise self.directory.take_offline(f"{error} while taking back an entry of {self.folder}") from error

    def _sync_aborted(self) -> None:
        """What cannot be written now, for want of space, keeps the recovery point from moving on."""
        files = self.directory.files
        while self._unsynced_aborted:
            segment = self._unsynced_aborted.pop()
            path = segment.path(TRANSACTION_INDEX)
            try:
                aborted = segment.aborted
                if aborted is not None:
                    aborted.write(files, path)
                with contextlib.suppress(FileNotFoundError):  # the segment was deleted, or the marker never came to be
                    sync_file(files, path)
            except OSError as error:
                self._unsynced_aborted.add(segment)
                if error.errno not in DISK_FULL:
                    raise
                raise self.directory.fail(error, f"writing an index of {self.topic_partition}") from error

    def _sync_segments(self, begin: int, end: int) -> None:
        """Sync every file that holds offsets from `begin` up to `end`, and the names of new files."""
        files = self.directory.files
        segments = self.segments
        for segment in segments.all[segments.slot_of(begin) :]:
            if segment.base_offset >= end:
                break
            try:
                handle = self.directory.readers.acquire(segment, segment.path(LOG))
            except FileNotFoundError:
                if self.has_segment(segment):
                    raise
                continue  # deleted, or cleaned and synced by the cleaner
            try:
                files.fsync(handle.fd)
            finally:
                self.directory.readers.release(handle)
        self._sync_aborted()
        rolled, self._unsynced_indexes = self._unsynced_indexes, []
        for segment in rolled:
            for suffix in (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX):
                with contextlib.suppress(FileNotFoundError):
                    sync_file(files, segment.path(suffix))
        if self._folder_is_new:
            with contextlib.suppress(FileNotFoundError):
                sync_file(files, os.path.join(self.folder, PARTITION_METADATA))
            files.fsync_dir(self.directory.path)
            self._folder_is_new = False
        if self._folder_dirty:
            self._folder_dirty = False
            files.fsync_dir(self.folder)

    def sync_with_next_flush(self, segments_with_new_indexes: list[Segment], *, names: bool) -> None:
        """What a crash may have left unsynced, or recovery has made, is to be durable after the next flush."""
        self._unsynced_indexes.extend(segments_with_new_indexes)
        self._unsynced_aborted.update(segment for segment in segments_with_new_indexes if segment.aborted_count)
        self._folder_dirty = self._folder_is_new = names

    # Cutting and giving up

    def _cut(self, offset: int) -> None:
        """Drop every segment above `offset` and what the one that holds it has from there on, durably."""
        files = self.directory.files
        with self._recovering:
            self._truncations += 1
            self.recovery_point = min(self.recovery_point, offset)
        kept = [segment for segment in self.segments.all if segment.base_offset <= offset]
        dropped = self.segments.all[len(kept) :]
        self.log_end_offset = offset
        if dropped:
            self.close_writer()
            self._publish(kept)
            for segment in dropped:
                self._doom(segment)
            files.fsync_dir(self.folder)
        segment = self._open_active()
        handle = self.directory.readers.acquire(segment, segment.path(LOG))
        try:
            position = locate(self.directory, segment, handle, offset, segment.size, self.directory.waiting)
        finally:
            self.directory.readers.release(handle)
        if position is not None:
            segment.cut(files, segment.fd, offset, position)
            self.directory.readers.forget(segment)
        if segment.size == 0:
            segment.rolling_timestamp = NOT_LOADED
        segment.byte_limit = -1

    def _cut_all(self, offset: int, now_ms: int) -> None:
        """Drop every segment, durably; an empty one at `offset` takes their place."""
        with self._recovering:
            self._truncations += 1
            self.recovery_point = offset
        self.close_writer()
        dropped = self.segments.all
        for segment in dropped:
            self._doom(segment)
        empty = self._new_segment(offset, now_ms)
        empty.close(self.directory.files)
        self._publish([empty])
        self.log_end_offset = offset
        self.directory.files.fsync_dir(self.folder)

    def _segments_below(self, offset: int) -> tuple[Segment, ...]:
        """The segments that hold nothing from `offset` on; never the active one."""
        base_offsets, segments = self.segments
        return tuple(segment for segment, end in zip(segments, base_offsets[1:], strict=False) if end <= offset)

    def _drop_segments_below(self, offset: int) -> None:
        dropped = self._segments_below(offset)
        if dropped:
            self._publish([*self.segments.all[len(dropped) :]])
            for segment in dropped:
                self._doom(segment)

    def _doom(self, segment: Segment) -> None:
        segment.close(self.directory.files)
        self._doomed.add(segment.mark_deleted(self.directory.files))
        self.directory.readers.forget(segment)

    def maintain(self, now_ms: int) -> int:
        """Remove files whose `file.delete.delay.ms` is over, by the steady clock: how many. Any thread."""
        if self.deleted:
            return 0
        return self._doomed.remove_due(self.directory.files, now_ms, self._config.file_delete_delay_ms)

    def delete(self) -> None:
        """The log is no partition's any more: nothing of it is written from now on. Its folder is the caller's."""
        self.deleted = True
        self.abandon()

    def abandon(self) -> None:
        """Give up every open file and write nothing: the log is deleted, or its directory is offline."""
        if self._admitted:
            self.directory.writers.remove(self)
        with contextlib.suppress(OSError):
            self.close_writer()
        for segment in self.segments.all:
            self.directory.readers.forget(segment)


def max_segment_ms(config: LogConfig) -> int:
    """A compacted topic's segment ends in time for it to be cleaned within `max.compaction.lag.ms`."""
    if "compact" in config.cleanup_policy and config.max_compaction_lag_ms > 0:
        return min(config.max_compaction_lag_ms, config.segment_ms)
    return config.segment_ms


def jitter_ms(config: LogConfig) -> int:
    """Segments of many partitions that began together shall not all be rolled in the same moment."""
    most = min(config.segment_jitter_ms, max_segment_ms(config))
    return random.randrange(most) if most > 0 else 0
