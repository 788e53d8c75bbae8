"""What the next flush of a log has to sync besides its records: indexes, aborted transactions, and file names."""

import contextlib
import os
from collections.abc import Iterable

from kaspar.base.ids import TopicPartition
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.file_names import OFFSET_INDEX, PARTITION_METADATA, TIME_INDEX, TRANSACTION_INDEX
from kaspar.storage.disk.files import DISK_FULL, sync_file
from kaspar.storage.segments.segment import Segment


class UnsyncedFiles:
    """The owner of the log adds files; a flush, one at a time and in any thread, syncs them."""

    __slots__ = ("_aborted", "_directory", "_folder", "_folder_is_new", "_indexes", "_topic_partition", "names")

    def __init__(self, directory: LogDirectory, folder: str, topic_partition: TopicPartition) -> None:
        self._directory = directory
        self._folder = folder
        self._topic_partition = topic_partition
        self._folder_is_new = False
        self._indexes: list[Segment] = []
        self._aborted: set[Segment] = set()
        self.names = False
        """Whether there are files in the folder whose names are not durable yet."""

    def __bool__(self) -> bool:
        return bool(self._indexes or self._aborted or self.names)

    def add_indexes(self, segment: Segment) -> None:
        """Add the indexes of a segment that takes no more appends, so that its index files are complete."""
        self._indexes.append(segment)

    def add_aborted(self, segment: Segment) -> None:
        """Add a segment whose index got an aborted transaction, and whose marker may be synced at any moment."""
        self._aborted.add(segment)

    def add_rebuilt(self, segments: Iterable[Segment], *, names: bool) -> None:
        """Add indexes that recovery has rebuilt. With `names`, also the names of all files and of the folder itself."""
        for segment in segments:
            self._indexes.append(segment)
            if segment.aborted_count:
                self._aborted.add(segment)
        self.names = self._folder_is_new = names

    def folder_renamed(self, folder: str) -> None:
        """Have the next flush make the folder's new name durable."""
        self._folder = folder
        self.names = self._folder_is_new = True

    def sync(self) -> None:
        files = self._directory.files
        self._sync_aborted()
        rolled, self._indexes = self._indexes, []
        for segment in rolled:
            for suffix in (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX):
                with contextlib.suppress(FileNotFoundError):
                    sync_file(files, segment.path(suffix))
        if self._folder_is_new:
            with contextlib.suppress(FileNotFoundError):
                sync_file(files, os.path.join(self._folder, PARTITION_METADATA))
            files.fsync_dir(self._directory.path)
            self._folder_is_new = False
        if self.names:
            self.names = False
            files.fsync_dir(self._folder)

    def _sync_aborted(self) -> None:
        """Write and sync the indexes of aborted transactions. If a full disk cannot take all entries, the flush fails:
        the recovery point must not pass their markers.
        """
        files = self._directory.files
        while self._aborted:
            segment = self._aborted.pop()
            path = segment.path(TRANSACTION_INDEX)
            try:
                aborted = segment.aborted
                if aborted is not None:
                    aborted.write(files, path)
                with contextlib.suppress(FileNotFoundError):  # the segment was deleted, or the marker never written
                    sync_file(files, path)
            except OSError as error:
                self._aborted.add(segment)
                if error.errno not in DISK_FULL:
                    raise
                raise self._directory.fail(error, f"writing an index of {self._topic_partition}") from error
