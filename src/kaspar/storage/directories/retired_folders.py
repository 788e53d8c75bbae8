"""Folders of partitions that are no longer in use: those to be deleted, and those that are set aside and kept.

A folder to delete is renamed first, so that no start takes it for a log, and removed later, when nobody reads its files
any more. A rename that a full disk refuses is retried: until then the folder blocks a new log of that name, and the
topic must not be forgotten. For any thread.
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
        """A folder that is marked for deletion already."""
        with self._lock:
            self._to_remove.append((None, directory, folder))

    def add(self, directory: LogDirectory, folder: str, partition: TopicPartition) -> None:
        with self._lock:
            self._to_rename[folder] = directory, partition

    def retire(self, directory: LogDirectory, folder: str, partition: TopicPartition) -> str:
        """Mark one folder for deletion now: its new path. If that fails, it is tried again as if it had been added."""
        with self._lock:
            self._to_rename[folder] = directory, partition
            return self._mark(folder)

    def rename_all(self) -> StorageFailure | Refused | None:
        """Mark for deletion what was added. One that fails does not stop the others; returns the first failure."""
        failure: StorageFailure | Refused | None = None
        with self._lock:
            for folder in list(self._to_rename):
                try:
                    self._mark(folder)
                except (StorageFailure, Refused) as problem:
                    failure = failure or problem
        return failure

    def clear_the_way(self, directory: LogDirectory, folder: str, partition: TopicPartition) -> None:
        """Before a new log gets the name: no file that is there may become part of it."""
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
        """Keep a folder under a name that no start takes for a log."""
        renamed = _rename(directory, folder, stray_folder(partition), f"setting {folder} aside")
        log.error("moved an unused folder aside", folder=folder, reason=reason, kept_as=renamed)

    def remove_due(self, now_ms: int, delay_ms: int) -> None:
        """Remove folders whose delay is over. The delay of new ones begins now."""
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
        # In an offline directory the next start finds it: the topic is not forgotten until then.
        del self._to_rename[folder]
        return renamed


def _rename(directory: LogDirectory, folder: str, name: str, doing: str) -> str:
    """Give a folder another name, durably: its new path."""
    renamed = os.path.join(directory.path, name)
    try:
        directory.files.rename(folder, renamed)
        directory.files.fsync_dir(directory.path)
    except OSError as error:
        raise directory.fail(error, doing) from error
    return renamed
