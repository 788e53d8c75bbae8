"""Logs that are being moved to another log directory of the broker (KIP-113).

The copy is a log of its own, in a folder that ends in `-future`. It is always a prefix of the current log: it is copied
from it, and truncated with it. When it has caught up, it replaces the current log in four steps, so that a crash at any
moment, also of the machine, leaves one folder that is the log:

1. `prepare`, in a thread: sync the copy, and durably mark it (`moved-here`);
2. `swap`, by the owner: give the copy's folder the partition's name. It takes all appends from now on. No append is
   synced before that name is (`UnsyncedFiles`), and everything that was synced in the old log is also synced in the new
   one;
3. `retire`, in a thread: make the name durable, and mark the old folder for deletion;
4. remove the mark.

If a start finds two folders of a partition, it uses the one with the mark (`placement.choose_folder`). If it finds a
current log and a copy, it truncates the copy to the offset up to which both agree, and the move can continue.

The owner (the event loop) appends to copies and swaps. Everything else may block on disk I/O and runs in a thread.
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
        """Copies whose current log is not here, perhaps because its directory is offline. They are left alone."""
        self._truncating = threading.Lock()

    def get(self, partition: TopicPartition) -> Log | None:
        return self._logs.get(partition)

    @property
    def all(self) -> list[Log]:
        return list(self._logs.values())

    def add(self, future: Log) -> None:
        self._logs[future.topic_partition] = future

    def release(self) -> list[Log]:
        """Return all copies and forget them: the caller owns them from now on."""
        logs, self._logs = self._logs, {}
        return list(logs.values())

    # Starting

    def load(self, loader: DirectoryLoader, current: Mapping[TopicPartition, Log], *, now_ms: int) -> None:
        """Load the copies in one directory, after all current logs. Useless copies are marked for deletion."""
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
            topic_id is None  # its creation was not finished
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
        """Truncate the copies of current logs that were truncated to these offsets, since a copy must not have more
        records. A copy that cannot be truncated is discarded.
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
        """Empty a copy and continue it at this offset."""
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
        """Drop copies whose directory, or whose current log (`gone`), went offline."""
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
        """First step of the move. May be repeated."""
        files = future.directory.files
        self._retired.clear_the_way(future.directory, _name_of(future), future.topic_partition)
        future.write_snapshots()
        future.flush()
        try:  # the mark of an earlier move: its removal must be durable as well
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
        """Second step, for the owner: the copy becomes the current log."""
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
        """Last steps. If the old folder cannot be renamed now, the mark stays, and the next start decides by it."""
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
    """The folder name that a copy gets when it becomes the current log."""
    return os.path.join(future.directory.path, str(future.topic_partition))


def _common_end(current: Log, future: Log) -> int:
    """The offset up to which a copy agrees with the log. Its directory may have been offline while the log was
    truncated and appended to by another leader, so the leader epochs decide, as between two brokers.
    """
    begin = max(current.log_start_offset, future.log_start_offset)
    end = min(current.log_end_offset, future.log_end_offset)
    starts = {entry.start_offset for one in (current, future) for entry in one.leader_epochs.entries}
    for offset in sorted({begin, *(start for start in starts if start > begin)}):
        if offset < end and current.epoch_for_offset(offset) != future.epoch_for_offset(offset):
            return offset
    return end
