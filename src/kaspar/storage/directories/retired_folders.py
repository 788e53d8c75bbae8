"""Folders of partitions that are no longer in use: those to be deleted, and those that are set aside and kept.

A folder to delete is renamed first, so that no start uses it as a log, and removed later, when nobody reads its files
any more. A rename that fails because the disk is full is retried: until then the folder blocks a new log of that name,
and the topic must not be forgotten. Safe in any thread.
"""

import os
import threading

from kaspar.base.errors import Refused, StorageFailure
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.file_names import folder_to_delete, stray_folder
from kaspar.storage.disk.files import remove_folder

log = get_log(__name__)


class RetiredFolders:
    __slots__ = ("_lock", "_to_remove", "_to_rename")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._to_rename: dict[str, tuple[LogDirectory, TopicPartition]] = {}
        self._to_remove: list[tuple[int | None, LogDirectory, str]] = []

    def add_renamed(self, directory: LogDirectory, folder: str) -> None:
        """Add a folder that is already marked for deletion."""
        with self._lock:
            self._to_remove.append((None, directory, folder))

    def add(self, directory: LogDirectory, folder: str, partition: TopicPartition) -> None:
        with self._lock:
            self._to_rename[folder] = directory, partition

    def retire(self, directory: LogDirectory, folder: str, partition: TopicPartition) -> str:
        """Mark one folder for deletion now; returns its new path. A failure is retried like a folder passed to
        `add`.
        """
        with self._lock:
            self._to_rename[folder] = directory, partition
            return self._mark(folder)

    def rename_all(self) -> StorageFailure | Refused | None:
        """Mark all added folders for deletion. A failure does not stop the others; returns the first one."""
        failure: StorageFailure | Refused | None = None
        with self._lock:
            for folder in list(self._to_rename):
                try:
                    self._mark(folder)
                except (StorageFailure, Refused) as problem:
                    failure = failure or problem
        return failure

    def clear_the_way(self, directory: LogDirectory, folder: str, partition: TopicPartition) -> None:
        """Move away what an earlier log left in `folder`, before a new log gets this name."""
        with self._lock:
            if folder in self._to_rename:
                self._mark(folder)
        try:
            is_used = bool(directory.files.listdir(folder))
        except FileNotFoundError:
            return
        except OSError as error:
            raise directory.fail(error, f"looking into {folder}") from error
        if is_used:
            self.set_aside(directory, folder, partition, "a new log takes its place")

    def set_aside(self, directory: LogDirectory, folder: str, partition: TopicPartition, reason: str) -> None:
        """Keep a folder under a name that no start uses as a log."""
        renamed = _rename(directory, folder, stray_folder(partition), f"setting {folder} aside")
        log.error("moved an unused folder aside", folder=folder, reason=reason, kept_as=renamed)

    def remove_due(self, now_ms: int, delay_ms: int) -> None:
        """Remove folders whose delay has passed. The delay of new ones begins now."""
        with self._lock:
            marked, self._to_remove = self._to_remove, []
        waiting = [
            (now_ms + delay_ms if due_ms is None else due_ms, directory, folder) for due_ms, directory, folder in marked
        ]
        with self._lock:
            self._to_remove += [entry for entry in waiting if entry[0] > now_ms]
        for due_ms, directory, folder in waiting:
            if due_ms <= now_ms and directory.offline is None:
                try:
                    remove_folder(directory.files, folder)
                except OSError as error:
                    log.warning("a deleted partition could not be removed", folder=folder, error=error)

    def _mark(self, folder: str) -> str:
        directory, partition = self._to_rename[folder]
        renamed = folder
        if directory.offline is None:
            renamed = _rename(directory, folder, folder_to_delete(partition), f"deleting {partition}")
            self._to_remove.append((None, directory, renamed))
        # If the directory is offline, the next start finds the folder: the topic is not forgotten until then.
        del self._to_rename[folder]
        return renamed


def _rename(directory: LogDirectory, folder: str, name: str, doing: str) -> str:
    """Rename a folder, durably; returns its new path."""
    renamed = os.path.join(directory.path, name)
    try:
        directory.files.rename(folder, renamed)
        directory.files.fsync_dir(directory.path)
    except OSError as error:
        raise directory.fail(error, doing) from error
    return renamed
