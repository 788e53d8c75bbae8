"""What the cleaner knows of all logs: up to where each is clean, which are being cleaned, and which cannot be.

Up to where is written to `cleaner-offset-checkpoint` in each log directory, in Kafka's format. A file that is damaged
counts as empty: everything is dirty then, which costs a cleaning and no record.

A log that could not be cleaned, because it is damaged, is left alone until the broker starts anew or the topic's
settings change. For any thread; what does not say otherwise may wait for the disk.
"""

import threading
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.config import LogConfig
from kaspar.storage import checkpoints
from kaspar.storage.cleaning.dirt import Dirt, dirt_of
from kaspar.storage.cleaning.errors import CleaningStopped, DamagedSegment
from kaspar.storage.file_names import CLEANER_OFFSET_CHECKPOINT
from kaspar.storage.files import DISK_FULL
from kaspar.storage.log import Log
from kaspar.storage.log_directory import LogDirectory
from kaspar.storage.log_manager import LogManager

log = get_log(__name__)


@dataclass(slots=True)
class _Directory:
    """Up to where the logs of a directory are clean, and which topics they were of."""

    directory: LogDirectory
    first_dirty_offsets: dict[TopicPartition, int]
    topic_ids: dict[TopicPartition, uuid.UUID | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Uncleanable:
    log: Log
    config: LogConfig
    reason: str


class CleanerBook:
    def __init__(self, logs: LogManager) -> None:
        self.max_dirty_ratio = 0.0
        self.max_compaction_delay_ms = 0
        self.last_run_ms = 0
        """When a log to clean was last looked for."""
        self._logs = logs
        self._lock = threading.RLock()
        self._directories: dict[str, _Directory] = {}
        # With how often each had been truncated when it was looked at.
        self._in_progress: dict[Log, int] = {}
        self._uncleanable: dict[TopicPartition, _Uncleanable] = {}

    # Which log is next

    def next_to_clean(self, last_stable_offsets: Mapping[TopicPartition, int], now_ms: int) -> tuple[Log, Dirt] | None:
        """The log that most needs it, which is the caller's until `done`, `failed` or `release`: first one that has
        waited longer than `max.compaction.lag.ms`, else the one with the largest dirty ratio.
        """
        with self._lock:
            self.last_run_ms = now_ms
            found = [
                (one, dirt)
                for partition, last_stable_offset in last_stable_offsets.items()
                if (one := self._logs.get(partition)) is not None
                and (dirt := self._dirt_of(one, last_stable_offset, now_ms)) is not None
            ]
            self.max_dirty_ratio = max((dirt.ratio for _, dirt in found), default=0.0)
            self.max_compaction_delay_ms = max((dirt.compaction_delay_ms for _, dirt in found), default=0)
            due = [(one, dirt) for one, dirt in found if dirt.is_due(one.config.min_cleanable_dirty_ratio)]
            due.sort(key=lambda entry: (entry[1].must_clean, entry[1].ratio), reverse=True)
        refusal: Refused | None = None
        for one, dirt in due:
            try:
                if self._take(one, dirt, last_stable_offsets[one.topic_partition]):
                    return one, dirt
            except Refused as refused:  # no space is left in its directory: another one may have some
                refusal = refused
        if refusal is not None:
            raise refusal
        return None

    def claim(self, one: Log, last_stable_offset: int, now_ms: int) -> Dirt | None:
        """A log to be cleaned whatever its ratio is. None if another thread cleans it, it cannot be cleaned, or all of
        it that could be is clean.
        """
        with self._lock:
            dirt = self._dirt_of(one, last_stable_offset, now_ms)
        taken = dirt is not None and dirt.dirty_bytes > 0 and self._take(one, dirt, last_stable_offset)
        return dirt if taken else None

    def _take(self, one: Log, dirt: Dirt, last_stable_offset: int) -> bool:
        """Make a log the caller's, unless it has become another's, and sync what cleaning goes by.

        A start must never look for gaps where cleaning has made some. And no power cut may take back the end of a
        transaction by which it is decided what goes: its marker may be in the active segment.
        """
        with self._lock:
            if one in self._in_progress:
                return False
            self._in_progress[one] = dirt.truncations
        try:
            self._logs.secure(one, dirt.first_uncleanable_offset)
            if one.recovery_point < last_stable_offset and one.producers.have_ended_transactions():
                one.flush()
        except BaseException:
            self.release(one)
            if one.deleted:
                return False
            raise
        return True

    def _dirt_of(self, one: Log, last_stable_offset: int, now_ms: int) -> Dirt | None:
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
            dirt = dirt_of(one, self._noted(one), last_stable_offset, now_ms)
        except (FileNotFoundError, CleaningStopped):
            return None  # a segment was deleted, or the log cut, meanwhile
        except DamagedSegment as damage:
            reason = str(damage)
            self.failed(one, reason)
            log.error("a partition cannot be cleaned, and is left as it is", partition=partition, reason=reason)
            return None
        except OSError as error:
            raise one.directory.fail(error, f"looking at {partition}") from error
        if dirt.was_reset:
            self._note(one, dirt.first_dirty_offset)
        return dirt

    # What became of it

    def done(self, one: Log, next_dirty_offset: int) -> None:
        """A pass has come to its end. Of a log that was truncated since it was looked at nothing is known."""
        with self._lock:
            was_cut = self._in_progress.pop(one, one.truncations) != one.truncations
            if not was_cut and not one.deleted and one.directory.offline is None:
                self._note(one, next_dirty_offset)

    def release(self, one: Log) -> None:
        """Nothing came of it: the log may be tried again."""
        with self._lock:
            self._in_progress.pop(one, None)

    def failed(self, one: Log, reason: str) -> None:
        """The log cannot be cleaned, today or tomorrow."""
        with self._lock:
            self._in_progress.pop(one, None)
            self._uncleanable[one.topic_partition] = _Uncleanable(one, one.config, reason)

    def truncated(self, one: Log, offset: int) -> None:
        """The log was cut: what is written from `offset` on is dirty."""
        with self._lock:
            noted = self._noted(one)
            if noted is not None and noted > offset:
                self._note(one, offset)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """They were deleted, or are another broker's."""
        with self._lock:
            for partition in partitions:
                self._uncleanable.pop(partition, None)
                for book in self._directories.values():
                    if book.first_dirty_offsets.pop(partition, None) is not None:
                        self._write(book)

    # What is known

    def first_dirty_offset(self, one: Log) -> int:
        """Up to where the log is clean; where it starts if it never was."""
        with self._lock:
            noted = self._noted(one)
        start = one.log_start_offset
        return noted if noted is not None and start <= noted <= one.log_end_offset else start

    def in_progress(self, one: Log) -> bool:
        """Never waits."""
        return one in self._in_progress

    def why_uncleanable(self, one: Log) -> str | None:
        """None if the log can be cleaned, as far as is known. Never waits."""
        found = self._uncleanable.get(one.topic_partition)
        return found.reason if found is not None and found.log is one and found.config is one.config else None

    def uncleanable(self) -> dict[str, list[Log]]:
        """The logs that cannot be cleaned, by the path of their directory."""
        found: dict[str, list[Log]] = {}
        with self._lock:
            for entry in self._uncleanable.values():
                if self.why_uncleanable(entry.log) is not None and not entry.log.deleted:
                    found.setdefault(entry.log.directory.path, []).append(entry.log)
        return found

    # The checkpoint

    def _noted(self, one: Log) -> int | None:
        book = self._book_of(one.directory)
        partition = one.topic_partition
        if book.topic_ids.setdefault(partition, one.topic_id) != one.topic_id:
            # Another topic has the name now.
            book.topic_ids[partition] = one.topic_id
            book.first_dirty_offsets.pop(partition, None)
        return book.first_dirty_offsets.get(partition)

    def _note(self, one: Log, first_dirty_offset: int) -> None:
        book = self._book_of(one.directory)
        book.topic_ids[one.topic_partition] = one.topic_id
        book.first_dirty_offsets[one.topic_partition] = first_dirty_offset
        self._write(book)

    def _book_of(self, directory: LogDirectory) -> _Directory:
        book = self._directories.get(directory.path)
        if book is None:
            book = self._directories[directory.path] = _Directory(directory, self._read(directory))
        return book

    @staticmethod
    def _read(directory: LogDirectory) -> dict[TopicPartition, int]:
        try:
            return dict(checkpoints.read_offsets(directory.files, directory.path, CLEANER_OFFSET_CHECKPOINT))
        except checkpoints.DamagedCheckpoint as error:
            log.warning("it is not known how far logs are clean: all of them count as dirty", error=error)
        except OSError as error:
            raise directory.fail(error, f"reading {CLEANER_OFFSET_CHECKPOINT}") from error
        return {}

    def _write(self, book: _Directory) -> None:
        directory = book.directory
        if directory.offline is not None:
            return
        here = {
            partition: offset
            for partition, offset in book.first_dirty_offsets.items()
            if (one := self._logs.get(partition)) is not None and one.directory is directory
        }
        try:
            checkpoints.write_offsets(directory.files, directory.path, CLEANER_OFFSET_CHECKPOINT, here)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise directory.fail(error, f"writing {CLEANER_OFFSET_CHECKPOINT}") from error
            log.warning("no space is left for the cleaner's checkpoint: the old one stays", directory=directory.path)
