"""Partitions with a folder in several log directories: one of the folders is the log, the others are set aside. If the
log is in a directory that is offline, the others are not used either.
"""

import contextlib
import uuid
from collections.abc import Callable, Iterable

from kaspar.base.errors import Refused, StorageFailure
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.directories.placement import Expected, FoundFolder, choose_folder
from kaspar.storage.directories.retired_folders import RetiredFolders
from kaspar.storage.disk.file_names import MOVED_HERE
from kaspar.storage.recovery.directory_loader import DirectoryLoader

log = get_log(__name__)

Found = dict[DirectoryLoader, list[TopicPartition]]
DirectoryId = Callable[[str], uuid.UUID | None]


def set_duplicates_aside(found: Found, expected: Expected, directory_id: DirectoryId, retired: RetiredFolders) -> None:
    """Remove duplicates from `found`, before anything is loaded. KasparError if it is unclear which one is the log."""
    loaders_of: dict[TopicPartition, list[DirectoryLoader]] = {}
    for loader, partitions in found.items():
        for partition in partitions:
            loaders_of.setdefault(partition, []).append(loader)
    for partition, loaders in loaders_of.items():
        if len(loaders) > 1:
            folders = _folders_of(partition, loaders, expected, directory_id)
            if len(folders) > 1:
                chosen = choose_folder(partition, list(folders), expected)
                for folder, loader in folders.items():
                    if folder is not chosen:
                        found[loader].remove(partition)
                        # A folder that cannot be renamed stays, and is not loaded.
                        with contextlib.suppress(Refused, StorageFailure):
                            if chosen.was_moved_here and folder.topic_id == chosen.topic_id:
                                retired.retire(loader.directory, folder.path, partition)
                            else:
                                reason = f"its log is {chosen.path}"
                                retired.set_aside(loader.directory, folder.path, partition, reason)


def leave_out_of_date_folders(
    found: Found, expected: Expected, directories: Iterable[LogDirectory], directory_id: DirectoryId
) -> None:
    """Remove folders from `found` that a log left behind when it was moved: the old folder was not marked for deletion
    (a full disk, a crash), and the directory that the log was moved to is offline now. Such a folder may lack records
    that were committed since, so it is left alone, and the partition is offline with its directory.
    """
    offline = {directory.path for directory in directories if directory.offline is not None}
    unread = {one for one, path in expected.away.items() if path in offline}
    unread.update(one for path in offline if (one := directory_id(path)) is not None)
    elsewhere = {partition for partition, directory in expected.directories.items() if directory in unread}
    for loader, partitions in found.items():
        for partition in elsewhere.intersection(partitions):
            try:
                topic_id, names = (
                    loader.topic_id(partition),
                    loader.directory.files.listdir(loader.folder_of(partition)),
                )
            except OSError as error:
                loader.fail(error, f"reading {loader.folder_of(partition)}")
                break
            if MOVED_HERE not in names and topic_id not in expected.deleted:
                partitions.remove(partition)
                log.error(
                    "a folder is not used: the partition's log is in a log directory that is offline",
                    folder=loader.folder_of(partition),
                )


def _folders_of(
    partition: TopicPartition, loaders: list[DirectoryLoader], expected: Expected, directory_id: DirectoryId
) -> dict[FoundFolder, DirectoryLoader]:
    """The folders that can be read and are not of a deleted topic. The loader removes those of deleted topics."""
    folders = {}
    for loader in loaders:
        try:
            topic_id = loader.topic_id(partition)
            was_moved_here = MOVED_HERE in loader.directory.files.listdir(loader.folder_of(partition))
        except OSError as error:
            loader.fail(error, f"reading {loader.folder_of(partition)}")
            continue
        if topic_id is None or topic_id not in expected.deleted:
            path, directory = loader.folder_of(partition), directory_id(loader.directory.path)
            folders[FoundFolder(path, topic_id, directory, was_moved_here)] = loader
    return folders
