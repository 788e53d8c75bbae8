"""The state of cleaning for all logs, as in Kafka's LogCleanerManager: up to which offset each is clean, which are
being cleaned now, and which are uncleanable.

The first dirty offsets are in the `cleaner-offset-checkpoint` of each log directory, in Kafka's format. A damaged file
counts as empty: then everything is dirty, which costs a cleaning but no record.

An uncleanable log, which is damaged, is left alone until the broker restarts or the topic's settings change. Safe in
any thread. Methods may block on disk I/O unless they say otherwise.
"""

import threading
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.config import LogConfig
from kaspar.storage.cleaning.errors import CleaningStopped, DamagedSegment
from kaspar.storage.cleaning.offsets_to_clean import OffsetsToClean, offsets_to_clean
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk import checkpoints
from kaspar.storage.disk.file_names import CLEANER_OFFSET_CHECKPOINT
from kaspar.storage.disk.files import DISK_FULL
from kaspar.storage.log import Log
from kaspar.storage.log_manager import LogManager

log = get_log(__name__)


@dataclass(slots=True)
class _Checkpoint:
    """The first dirty offsets of the logs in a directory, and the topic ids of these logs."""

    directory: LogDirectory
    first_dirty_offsets: dict[TopicPartition, int]
    topic_ids: dict[TopicPartition, uuid.UUID | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Uncleanable:
    log: Log
    config: LogConfig
    reason: str


class LogCleanerManager:
    def __init__(self, logs: LogManager) -> None:
        self.max_dirty_ratio = 0.0
        self.max_compaction_delay_ms = 0
        self.last_run_ms = 0
        """When a cleaner thread last looked for a log to clean."""
        self._logs = logs
        self._lock = threading.RLock()
        self._checkpoints: dict[str, _Checkpoint] = {}
        # How often each log had been truncated when `offsets_to_clean` ran.
        self._in_progress: dict[Log, int] = {}
        self._uncleanable: dict[TopicPartition, _Uncleanable] = {}
        logs.when_truncated(self.truncated)

    # Which log is next

    def next_to_clean(
        self, last_stable_offsets: Mapping[TopicPartition, int], now_ms: int
    ) -> tuple[Log, OffsetsToClean] | None:
        """Reserve and return the log that most needs cleaning, until `done`, `failed` or `release`: first one that has
        waited longer than `max.compaction.lag.ms`, otherwise the one with the highest dirty ratio.
        """
        with self._lock:
            self.last_run_ms = now_ms
            found = [
                (one, to_clean)
                for partition, last_stable_offset in last_stable_offsets.items()
                if (one := self._logs.get(partition)) is not None
                and (to_clean := self._offsets_to_clean(one, last_stable_offset, now_ms)) is not None
            ]
            self.max_dirty_ratio = max((to_clean.dirty_ratio for _, to_clean in found), default=0.0)
            self.max_compaction_delay_ms = max((to_clean.compaction_delay_ms for _, to_clean in found), default=0)
            due = [(one, to_clean) for one, to_clean in found if to_clean.is_due(one.config.min_cleanable_dirty_ratio)]
            due.sort(key=lambda entry: (entry[1].must_clean, entry[1].dirty_ratio), reverse=True)
        refusal: Refused | None = None
        for one, to_clean in due:
            try:
                if self._reserve(one, to_clean, last_stable_offsets[one.topic_partition]):
                    return one, to_clean
            except Refused as refused:  # its directory has no space left: another one may have some
                refusal = refused
        if refusal is not None:
            raise refusal
        return None

    def claim(self, one: Log, last_stable_offset: int, now_ms: int) -> OffsetsToClean | None:
        """Reserve a log whatever its dirty ratio. None if another thread cleans it, or there is nothing to clean."""
        with self._lock:
            to_clean = self._offsets_to_clean(one, last_stable_offset, now_ms)
        taken = to_clean is not None and to_clean.dirty_bytes > 0 and self._reserve(one, to_clean, last_stable_offset)
        return to_clean if taken else None

    def _reserve(self, one: Log, to_clean: OffsetsToClean, last_stable_offset: int) -> bool:
        """Reserve a log for the caller, unless another thread has it, and sync the data that cleaning depends on.

        The segments are synced so that a start does not mistake the gaps that cleaning leaves for lost records. So are
        the markers of transactions, which decide what is removed and may be in the active segment: a power failure must
        not undo them.
        """
        with self._lock:
            if one in self._in_progress:
                return False
            self._in_progress[one] = to_clean.truncations
        try:
            self._logs.secure(one, to_clean.first_uncleanable_offset)
            if one.recovery_point < last_stable_offset and one.producers.have_ended_transactions():
                one.flush()
        except BaseException:
            self.release(one)
            if one.deleted:
                return False
            raise
        return True

    def _offsets_to_clean(self, one: Log, last_stable_offset: int, now_ms: int) -> OffsetsToClean | None:
        partition = one.topic_partition
        if (
            "compact" not in one.config.cleanup_policy
            or one.deleted
            or one.directory.offline is not None
            or one in self._in_progress
            or self.why_uncleanable(one) is not None
        ):
            return None
        try:
            to_clean = offsets_to_clean(one, self._checkpointed(one), last_stable_offset, now_ms)
        except (FileNotFoundError, CleaningStopped):
            return None  # a segment was deleted, or the log truncated, meanwhile
        except DamagedSegment as damage:
            reason = str(damage)
            self.failed(one, reason)
            log.error("a partition cannot be cleaned and will be skipped", partition=partition, reason=reason)
            return None
        except OSError as error:
            raise one.directory.fail(error, f"reading {partition}") from error
        if to_clean.was_reset:
            self._write_offset(one, to_clean.first_dirty_offset)
        return to_clean

    # Results

    def done(self, one: Log, next_dirty_offset: int) -> None:
        """The log was cleaned: store the result, unless the log was truncated since `offsets_to_clean`."""
        with self._lock:
            was_truncated = self._in_progress.pop(one, one.local.truncations) != one.local.truncations
            if not was_truncated and not one.deleted and one.directory.offline is None:
                self._write_offset(one, next_dirty_offset)

    def release(self, one: Log) -> None:
        """Release a log that was not cleaned; it may be tried again."""
        with self._lock:
            self._in_progress.pop(one, None)

    def failed(self, one: Log, reason: str) -> None:
        """Mark the log as uncleanable."""
        with self._lock:
            self._in_progress.pop(one, None)
            self._uncleanable[one.topic_partition] = _Uncleanable(one, one.config, reason)

    def truncated(self, offsets: Mapping[Log, int]) -> None:
        """Lower the first dirty offsets of logs that were truncated: what is appended from there on is dirty."""
        changed = {}
        with self._lock:
            for one, offset in offsets.items():
                offset_before = self._checkpointed(one)
                if offset_before is not None and offset_before > offset:
                    checkpoint = self._checkpoint_of(one.directory)
                    checkpoint.first_dirty_offsets[one.topic_partition] = offset
                    changed[one.directory.path] = checkpoint
            for checkpoint in changed.values():
                self._write(checkpoint)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that were deleted or moved to another broker."""
        with self._lock:
            for partition in partitions:
                self._uncleanable.pop(partition, None)
                for checkpoint in self._checkpoints.values():
                    if checkpoint.first_dirty_offsets.pop(partition, None) is not None:
                        self._write(checkpoint)

    # State

    def first_dirty_offset(self, one: Log) -> int:
        """The offset up to which the log is clean; the log start offset if it was never cleaned."""
        with self._lock:
            offset_before = self._checkpointed(one)
        start = one.log_start_offset
        return offset_before if offset_before is not None and start <= offset_before <= one.log_end_offset else start

    def in_progress(self, one: Log) -> bool:
        """Whether the log is being cleaned. Never blocks."""
        return one in self._in_progress

    def why_uncleanable(self, one: Log) -> str | None:
        """The reason why the log is uncleanable; None if it is not known to be. Never blocks."""
        found = self._uncleanable.get(one.topic_partition)
        return found.reason if found is not None and found.log is one and found.config is one.config else None

    def uncleanable(self) -> dict[str, list[Log]]:
        """The uncleanable logs, by the path of their directory."""
        found: dict[str, list[Log]] = {}
        with self._lock:
            for entry in self._uncleanable.values():
                if self.why_uncleanable(entry.log) is not None and not entry.log.deleted:
                    found.setdefault(entry.log.directory.path, []).append(entry.log)
        return found

    # The checkpoint

    def _checkpointed(self, one: Log) -> int | None:
        checkpoint = self._checkpoint_of(one.directory)
        partition = one.topic_partition
        if checkpoint.topic_ids.setdefault(partition, one.topic_id) != one.topic_id:
            # Another topic has this name now.
            checkpoint.topic_ids[partition] = one.topic_id
            checkpoint.first_dirty_offsets.pop(partition, None)
        return checkpoint.first_dirty_offsets.get(partition)

    def _write_offset(self, one: Log, first_dirty_offset: int) -> None:
        checkpoint = self._checkpoint_of(one.directory)
        checkpoint.topic_ids[one.topic_partition] = one.topic_id
        checkpoint.first_dirty_offsets[one.topic_partition] = first_dirty_offset
        self._write(checkpoint)

    def _checkpoint_of(self, directory: LogDirectory) -> _Checkpoint:
        checkpoint = self._checkpoints.get(directory.path)
        if checkpoint is None:
            checkpoint = self._checkpoints[directory.path] = _Checkpoint(directory, self._read(directory))
        return checkpoint

    @staticmethod
    def _read(directory: LogDirectory) -> dict[TopicPartition, int]:
        try:
            # Apache Kafka creates this file empty, and fills it when it has cleaned a log.
            return dict(
                checkpoints.read_offsets(directory.files, directory.path, CLEANER_OFFSET_CHECKPOINT, may_be_empty=True)
            )
        except checkpoints.DamagedCheckpoint as error:
            log.warning("the cleaner's checkpoint is damaged: all logs of the directory count as dirty", error=error)
        except OSError as error:
            raise directory.fail(error, f"reading {CLEANER_OFFSET_CHECKPOINT}") from error
        return {}

    def _write(self, checkpoint: _Checkpoint) -> None:
        directory = checkpoint.directory
        if directory.offline is not None:
            return
        here = {
            partition: offset
            for partition, offset in checkpoint.first_dirty_offsets.items()
            if (one := self._logs.get(partition)) is not None and one.directory is directory
        }
        try:
            checkpoints.write_offsets(directory.files, directory.path, CLEANER_OFFSET_CHECKPOINT, here)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise directory.fail(error, f"writing {CLEANER_OFFSET_CHECKPOINT}") from error
            log.warning("no space is left for the cleaner's checkpoint: the old one stays", directory=directory.path)
