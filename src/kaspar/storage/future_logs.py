"""Logs that are being moved to another log directory of the broker (KIP-113).

The copy is a log of its own, in a folder that ends in `-future`. At all times it is a beginning of the current log: it
is copied from it, and truncated with it. When it has everything, it takes the current log's place in four steps, such
that a crash at any moment, also of the machine, leaves one folder that is the log:

1. `prepare`, in a thread: the copy is synced, and gets a mark (`moved-here`), durably;
2. `swap`, by the owner: the copy's folder gets the partition's name, and all appends from now on. No append is synced
   before that name is (`UnsyncedFiles`), and nothing that was synced in the old log is not in the new one;
3. `retire`, in a thread: the name is made durable, and the old folder is marked for deletion;
4. the mark is removed.

A start that finds two folders of a partition takes the one with the mark (`placement.choose_folder`). One that finds a
current log and a copy truncates the copy to where both agree, and the move can continue.

The owner (the event loop) appends to copies and swaps. Everything else waits for the disk: in a thread.
"""

import contextlib
import os
import threading
from collections.abc import Collection, Iterable, Mapping

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.storage import truncation
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.directories.retired_folders import RetiredFolders
from kaspar.storage.disk.file_names import MOVED_HERE, future_folder
from kaspar.storage.disk.files import unlink_if_there, write_file
from kaspar.storage.log import Log
from kaspar.storage.recovery.directory_loader import DirectoryLoader

log = get_log(__name__)


class FutureLogs:
    def __init__(self, retired: RetiredFolders) -> None:
        self._retired = retired
        self._logs: dict[TopicPartition, Log] = {}
        self._without_current: dict[TopicPartition, list[tuple[LogDirectory, str]]] = {}
        """Copies of logs that are not here, perhaps because their directory is offline. They are left alone."""
        self._truncating = threading.Lock()

    def get(self, partition: TopicPartition) -> Log | None:
        return self._logs.get(partition)

    @property
    def all(self) -> list[Log]:
        return list(self._logs.values())

    def add(self, future: Log) -> None:
        self._logs[future.topic_partition] = future

    def release(self) -> list[Log]:
        """All of them, which are the caller's from now on."""
        logs, self._logs = self._logs, {}
        return list(logs.values())

    # Starting

    def load(self, loader: DirectoryLoader, current: Mapping[TopicPartition, Log], *, now_ms: int) -> None:
        """Load the copies in one directory, once all current logs are loaded. Copies of no use are marked for
        deletion.
        """
        for partition, folders in loader.futures.items():
            for folder in folders:
                if loader.directory.offline is None:
                    try:
                        self._load(loader, partition, folder, current.get(partition), now_ms)
                    except OSError as error:
                        loader.fail(error, f"loading {folder}")
                    except (StorageFailure, Refused) as problem:
                        log.warning("the copy of a log cannot be used now", folder=folder, reason=str(problem))

    def _load(
        self, loader: DirectoryLoader, partition: TopicPartition, folder: str, current: Log | None, now_ms: int
    ) -> None:
        topic_id = loader.topic_id(partition, folder)
        if topic_id is not None and loader.is_deleted(topic_id):
            self._retired.retire(loader.directory, folder, partition)
        elif current is None:
            log.warning("the copy of a log is left alone: there is no log", folder=folder)
            self._without_current.setdefault(partition, []).append((loader.directory, folder))
        elif (
            topic_id is None  # it was not finished being created
            or partition in self._logs
            or current.directory is loader.directory
            or current.topic_id != topic_id
        ):
            self._retired.retire(loader.directory, folder, partition)
        elif (future := loader.load_folder(partition, folder, topic_id)) is not None:
            truncation.truncate_to(future, _common_end(current, future), now_ms=now_ms)
            self._logs[partition] = future

    # Life of a copy

    def folder_for(self, directory: LogDirectory, partition: TopicPartition) -> str:
        name = future_folder(partition)
        if name is None:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        return os.path.join(directory.path, name)

    def truncate(self, offsets: Mapping[Log, int], *, now_ms: int) -> None:
        """Current logs were truncated to these offsets: a copy must not have more. One that cannot be truncated is of
        no use any more.
        """
        with self._truncating:
            for current, offset in offsets.items():
                future = self._logs.get(current.topic_partition)
                if future is not None and future is not current:
                    try:
                        truncation.truncate_to(future, offset, now_ms=now_ms)
                    except (StorageFailure, Refused) as problem:
                        log.warning("a move to another log directory ends", folder=future.folder, reason=str(problem))
                        self._discard(future)

    def restart_at(self, future: Log, offset: int, *, now_ms: int) -> None:
        """Have a copy begin, empty, at this offset."""
        with self._truncating:
            truncation.truncate_fully_and_start_at(future, offset, now_ms=now_ms)

    def delete(self, partitions: Iterable[TopicPartition]) -> None:
        """Mark the copies of these partitions for deletion. A folder that cannot be renamed now is retried later."""
        with self._truncating:
            for partition in partitions:
                future = self._logs.get(partition)
                if future is not None:
                    self._discard(future)
                for directory, folder in self._without_current.pop(partition, ()):
                    with contextlib.suppress(StorageFailure, Refused):
                        self._retired.retire(directory, folder, partition)

    def _discard(self, future: Log) -> None:
        self._logs.pop(future.topic_partition, None)
        future.delete()
        with contextlib.suppress(StorageFailure, Refused):
            self._retired.retire(future.directory, future.folder, future.topic_partition)

    def drop_offline(self, gone: Collection[Log]) -> None:
        """Directories went offline, and these current logs with them."""
        without = {one.topic_partition for one in gone}
        for future in self.all:
            partition = future.topic_partition
            if future.directory.offline is not None or partition in without:
                del self._logs[partition]
                future.abandon()
                if future.directory.offline is None:
                    self._without_current.setdefault(partition, []).append((future.directory, future.folder))

    # Taking the place of the current log

    def prepare(self, current: Log, future: Log) -> None:
        """The first step. It may be repeated."""
        files = future.directory.files
        self._retired.clear_the_way(future.directory, _name_of(future), future.topic_partition)
        future.write_snapshots()
        future.flush()
        try:  # of an earlier move: its removal has to be durable, too
            unlink_if_there(current.directory.files, os.path.join(current.folder, MOVED_HERE))
            current.directory.files.fsync_dir(current.folder)
        except OSError as error:
            raise current.directory.fail(error, f"moving {current.topic_partition}") from error
        mark = os.path.join(future.folder, MOVED_HERE)
        try:
            write_file(files, mark, f"{current.directory.path}\n".encode())
        except OSError as error:
            raise future.directory.fail(error, f"moving {future.topic_partition}") from error

    def swap(self, current: Log, future: Log) -> None:
        """The second step, for the owner: the copy is the log from now on."""
        assert future.log_end_offset == current.log_end_offset, (future.folder, current.folder)
        assert future.recovery_point >= current.recovery_point, (future.folder, current.folder)
        try:
            future.rename_folder(_name_of(future))
        except OSError as error:
            raise future.directory.fail(error, f"moving {future.topic_partition}") from error
        future.move_log_start_offset(current.log_start_offset)
        future.take_over(current)
        del self._logs[future.topic_partition]

    def retire(self, old: Log, new: Log) -> None:
        """The last steps. If the old folder cannot be renamed now, the mark stays, by which the next start decides."""
        try:
            new.directory.files.fsync_dir(new.directory.path)
        except OSError as error:
            raise new.directory.fail(error, f"moving {new.topic_partition}") from error
        old.delete()
        old.folder_renamed(self._retired.retire(old.directory, old.folder, old.topic_partition))
        if old.directory.offline is None:
            with contextlib.suppress(OSError):
                unlink_if_there(new.directory.files, os.path.join(new.folder, MOVED_HERE))


def _name_of(future: Log) -> str:
    """The folder that a copy becomes."""
    return os.path.join(future.directory.path, str(future.topic_partition))


def _common_end(current: Log, future: Log) -> int:
    """Up to where a copy is a beginning of the log. Its directory may have been offline while the log was truncated and
    appended to by another leader: by the leader epochs, as between two brokers.
    """
    begin = max(current.log_start_offset, future.log_start_offset)
    end = min(current.log_end_offset, future.log_end_offset)
    starts = {entry.start_offset for one in (current, future) for entry in one.leader_epochs.entries}
    for offset in sorted({begin, *(start for start in starts if start > begin)}):
        if offset < end and current.epoch_for_offset(offset) != future.epoch_for_offset(offset):
            return offset
    return end
