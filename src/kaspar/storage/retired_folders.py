"""Folders of partitions that are no longer in use: those to be removed, and those that are kept and set aside.

A folder that is to go is renamed first, so that no start takes it for a log; it is removed later, when nobody reads
its files any more. A rename that a full disk refuses is tried again: until then the folder is in the way of a new log
of that name, and the topic must not be forgotten. Any thread may call this.
"""

import os
import threading

from kaspar.base.errors import Refused, StorageFailure
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.storage.file_names import folder_to_delete, stray_folder
from kaspar.storage.files import remove_folder
from kaspar.storage.log_directory import LogDirectory

log = get_log(__name__)


class RetiredFolders:
    __slots__ = ("_lock", "_to_remove", "_to_rename")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._to_rename: dict[str, tuple[LogDirectory, TopicPartition]] = {}
        self._to_remove: list[tuple[int | None, LogDirectory, str]] = []

    def add_renamed(self, directory: LogDirectory, folder: str) -> None:
        """A folder that has the mark of a deletion already."""
        with self._lock:
            self._to_remove.append((None, directory, folder))

    def add(self, directory: LogDirectory, folder: str, partition: TopicPartition) -> None:
        with self._lock:
            self._to_rename[folder] = directory, partition

    def rename_all(self) -> StorageFailure | Refused | None:
        """Mark what was added. One that fails keeps no other from it; the first failure."""
        failure: StorageFailure | Refused | None = None
        with self._lock:
            for folder in list(self._to_rename):
                try:
                    self._rename(folder)
                except (StorageFailure, Refused) as problem:
                    failure = failure or problem
        return failure

    def clear_the_way(self, directory: LogDirectory, folder: str, partition: TopicPartition) -> None:
        """Before a new log gets the name: nothing that lies there may become a part of it."""
        with self._lock:
            if folder in self._to_rename:
                self._rename(folder)
        try:
            is_used = bool(directory.files.listdir(folder))
        except FileNotFoundError:
            return
        except OSError as error:
            raise directory.fail(error, f"looking into {folder}") from error
        if is_used:
            self.set_aside(directory, folder, partition, "a new log takes its place")

    def set_aside(self, directory: LogDirectory, folder: str, partition: TopicPartition, reason: str) -> None:
        """Keep a folder, under a name that is no partition's."""
        renamed = os.path.join(directory.path, stray_folder(partition))
        try:
            directory.files.rename(folder, renamed)
            directory.files.fsync_dir(directory.path)
        except OSError as error:
            raise directory.fail(error, f"setting {folder} aside") from error
        log.error("set a folder aside that is not in use", folder=folder, reason=reason, kept_as=renamed)

    def remove_due(self, now_ms: int, delay_ms: int) -> None:
        """Remove folders whose time to wait is over. That of new ones begins now."""
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

    def _rename(self, folder: str) -> None:
        directory, partition = self._to_rename[folder]
        if directory.offline is not None:
            del self._to_rename[folder]  # the next start finds it, for the topic is not forgotten until then
            return
        renamed = os.path.join(directory.path, folder_to_delete(partition))
        try:
            directory.files.rename(folder, renamed)
            directory.files.fsync_dir(directory.path)
        except OSError as error:
            raise directory.fail(error, f"deleting {partition}") from error
        del self._to_rename[folder]
        self._to_remove.append((None, directory, renamed))
