"""The checkpoint files of all log directories: recovery points, log start offsets and high watermarks of their logs.

Startup relies on these files, so an operation that depends on them asks here what was actually written: on a full disk
the old files stay in place.
"""

import contextlib
import os
import threading
from collections.abc import Collection, Iterable, Mapping

from kaspar.base.errors import Refused, StorageFailure
from kaspar.base.ids import Offset, TopicPartition
from kaspar.base.log import get_log
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk import checkpoints
from kaspar.storage.disk.file_names import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
)
from kaspar.storage.disk.files import DISK_FULL
from kaspar.storage.log import Log

log = get_log(__name__)


class OffsetCheckpoints:
    """Safe in any thread. Methods that write block on disk I/O, and on another write."""

    def __init__(self) -> None:
        self._writing = threading.Lock()
        self._closed = False
        # Both are keyed by the path of the directory.
        self._recovery_points: dict[str, Mapping[TopicPartition, int]] = {}
        self._log_start_offsets: dict[str, Mapping[TopicPartition, int]] = {}

    def found(
        self,
        directory: LogDirectory,
        recovery_points: Mapping[TopicPartition, int],
        log_start_offsets: Mapping[TopicPartition, int],
    ) -> None:
        """Remember what the files contained at startup."""
        self._recovery_points[directory.path] = dict(recovery_points)
        self._log_start_offsets[directory.path] = dict(log_start_offsets)

    def close(self) -> None:
        """Wait for a write that is under way, and allow no others except `write_at_shutdown`."""
        with self._writing:
            self._closed = True

    # What is written

    def name(self, directory: LogDirectory, partition: TopicPartition) -> bool:
        """Whether the files of a directory have an entry for a partition."""
        written = (self._recovery_points, self._log_start_offsets)
        return any(partition in offsets.get(directory.path, {}) for offsets in written)

    def recovery_point(self, one: Log) -> int:
        """The written recovery point; -1 if there is none."""
        return self._recovery_points.get(one.directory.path, {}).get(one.topic_partition, -1)

    def log_start_offset(self, one: Log) -> int:
        return self._log_start_offsets.get(one.directory.path, {}).get(one.topic_partition, 0)

    def are_valid_for(self, one: Log) -> bool:
        """Whether a start from these files would trust only synced offsets, and keep every record of the log."""
        return (
            0 <= self.recovery_point(one) <= one.recovery_point and self.log_start_offset(one) <= one.log_start_offset
        )

    @staticmethod
    def last_written_ms(directories: Iterable[LogDirectory]) -> int | None:
        """When a broker last wrote recovery points, by the clock that it believed."""
        found = []
        for directory in directories:
            with contextlib.suppress(OSError):
                found.append(directory.files.modified_ms(os.path.join(directory.path, RECOVERY_POINT_CHECKPOINT)))
        return max(found, default=None)

    # Recovery points and log start offsets

    def write(self, directories: Iterable[LogDirectory], logs: Collection[Log], *, now_ms: int) -> None:
        """Write the files of these directories. One that fails does not keep the others from being written; the first
        failure is raised at the end. On a full disk the old files stay, with a warning.
        """
        failure: StorageFailure | Refused | None = None
        with self._writing:
            for directory in self._writable(directories):
                try:
                    self._write(directory, _logs_in(directory, logs), now_ms)
                except OSError as error:
                    if error.errno in DISK_FULL:
                        log.warning("no space is left for checkpoints: the old ones stay", directory=directory.path)
                    else:
                        problem = directory.fail(error, "writing checkpoints")
                        failure = failure or problem
        if failure is not None:
            raise failure

    def write_at_shutdown(self, directory: LogDirectory, logs: Collection[Log], *, now_ms: int) -> None:
        """Write the last checkpoints. The caller handles OSError."""
        self._write(directory, logs, now_ms)

    def _write(self, directory: LogDirectory, logs: Collection[Log], now_ms: int) -> None:
        files = directory.files
        recovery_points = {one.topic_partition: one.recovery_point for one in logs}
        # Also written if the first segment begins at the same offset: its name may not be durable yet.
        starts = {one.topic_partition: one.log_start_offset for one in logs if one.log_start_offset > 0}
        checkpoints.write_offsets(files, directory.path, RECOVERY_POINT_CHECKPOINT, recovery_points)
        # The next start reads the file's modification time. The system would set its own, which may not be believed.
        files.set_modified_ms(os.path.join(directory.path, RECOVERY_POINT_CHECKPOINT), now_ms)
        self._recovery_points[directory.path] = recovery_points
        checkpoints.write_offsets(files, directory.path, LOG_START_OFFSET_CHECKPOINT, starts)
        self._log_start_offsets[directory.path] = starts

    def _writable(self, directories: Iterable[LogDirectory]) -> list[LogDirectory]:
        return [] if self._closed else [directory for directory in directories if directory.offline is None]

    # High watermarks

    @staticmethod
    def read_high_watermarks(directories: Iterable[LogDirectory]) -> dict[TopicPartition, Offset]:
        found: dict[TopicPartition, Offset] = {}
        for directory in directories:
            if directory.offline is None:
                try:
                    found |= checkpoints.read_offsets(directory.files, directory.path, REPLICATION_OFFSET_CHECKPOINT)
                except checkpoints.DamagedCheckpoint as error:
                    log.warning("high watermarks are not known", directory=directory.path, error=error)
        return found

    def write_high_watermarks(
        self, directories: Iterable[LogDirectory], logs: Collection[Log], offsets: Mapping[TopicPartition, int]
    ) -> None:
        """Write the high watermarks of these directories. One that fails, perhaps because it is full, does not keep the
        others from being written; the first failure is raised at the end.
        """
        failure: StorageFailure | Refused | None = None
        with self._writing:
            for directory in self._writable(directories):
                here = {
                    one.topic_partition: offsets[one.topic_partition]
                    for one in _logs_in(directory, logs)
                    if one.topic_partition in offsets
                }
                try:
                    checkpoints.write_offsets(directory.files, directory.path, REPLICATION_OFFSET_CHECKPOINT, here)
                except OSError as error:
                    problem = directory.fail(error, "writing high watermarks")
                    failure = failure or problem
        if failure is not None:
            raise failure


def _logs_in(directory: LogDirectory, logs: Collection[Log]) -> list[Log]:
    return [one for one in logs if one.directory is directory]
