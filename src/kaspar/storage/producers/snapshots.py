"""The producer snapshots of one log: those in its folder, and those that were taken but are not written yet.

Writing a snapshot of tens of thousands of producers takes a tenth of a second, and a segment is rolled by the event
loop, in the middle of an append. So a roll only takes the snapshot, which is the list of entries at that moment
(`ProducerState.taken`: they never change again), and writes it if it is small. Otherwise a thread writes it within
seconds. A crash in between costs the same as any lost snapshot: recovery begins at the one before and reads more of the
log. For that reason segments before an unwritten snapshot are not deleted: their producers are known from nowhere else.

Rules:
- The owner takes and drops snapshots; any thread may write them, one at a time.
- A snapshot that is dropped while it is being written is removed by the writing thread. Nobody waits for that if the
  snapshot is merely useless.
- When the log is truncated, or its folder is about to become another log's, no snapshot that was taken before may be
  written afterwards: `drop_above` and `stop` wait for a write that is under way.
"""

import os
import threading
from collections.abc import Iterable
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.file_names import SNAPSHOT, numbered
from kaspar.storage.disk.files import DISK_FULL, sync_file, unlink_if_there
from kaspar.storage.producers.entry import ProducerEntry
from kaspar.storage.producers.snapshot_file import write_snapshot

log = get_log(__name__)

SMALL: Final = 250
"""Writing a snapshot of this many producers takes a millisecond."""


class ProducerSnapshots:
    __slots__ = (
        "_changing",
        "_directory",
        "_folder",
        "_stopped",
        "_taken",
        "_topic_partition",
        "_writing",
        "_written",
    )

    def __init__(
        self, directory: LogDirectory, folder: str, topic_partition: TopicPartition, written: Iterable[int]
    ) -> None:
        self._directory = directory
        self._folder = folder
        self._topic_partition = topic_partition
        self._written = set(written)
        self._taken: dict[int, list[ProducerEntry]] = {}
        self._stopped = False
        self._changing = threading.Lock()
        self._writing = threading.Lock()

    @property
    def written(self) -> list[int]:
        """The offsets of the snapshots in the folder."""
        with self._changing:
            return list(self._written)

    @property
    def all(self) -> list[int]:
        with self._changing:
            return [*self._written, *(offset for offset in self._taken if offset not in self._written)]

    def waits(self, offset: int) -> bool:
        """Whether the snapshot at `offset` is not written yet."""
        with self._changing:
            return offset in self._taken

    def take(self, offset: int, entries: list[ProducerEntry]) -> None:
        """Add a snapshot to write. The entries must not change from now on."""
        with self._changing:
            self._taken[offset] = entries

    def write(self) -> None:
        """Write the snapshots that were taken. Call it in a thread. After a failure the next call tries the rest
        again.
        """
        with self._writing:
            self._write_taken()

    def write_if_small(self) -> None:
        """Write the snapshots if that takes no longer than a millisecond. For the owner."""
        with self._changing:
            entries = sum(map(len, self._taken.values()))
        if entries <= SMALL and self._writing.acquire(blocking=False):
            try:
                self._write_taken()
            finally:
                self._writing.release()

    def _write_taken(self) -> None:
        """Write the snapshots. On a full disk they are left out: recovery then reads more of the log."""
        try:
            while (next_one := self._next()) is not None:
                self._write(*next_one)
        except OSError as error:
            if self._stopped:
                return  # the log is deleted
            if error.errno not in DISK_FULL:
                doing = f"writing a producer snapshot of {self._topic_partition}"
                raise self._directory.fail(error, doing) from error
            with self._changing:
                offsets = list(self._taken)
                self._taken.clear()
            log.warning("no space is left for producer snapshots", partition=self._topic_partition, offsets=offsets)

    def _next(self) -> tuple[int, list[ProducerEntry]] | None:
        with self._changing:
            return None if self._stopped else next(iter(self._taken.items()), None)

    def _write(self, offset: int, entries: list[ProducerEntry]) -> None:
        write_snapshot(self._directory.files, self._folder, offset, entries)
        with self._changing:
            wanted = self._taken.get(offset) is entries
            if wanted:
                del self._taken[offset]
                self._written.add(offset)
        if not wanted:
            self._unlink(offset)

    def sync(self, offset: int) -> None:
        """Make the snapshot at `offset` durable, if it is written."""
        if offset in self.written:
            sync_file(self._directory.files, self._path(offset))

    def drop(self, offset: int) -> None:
        """Remove a snapshot, without waiting for a write that is under way."""
        with self._changing:
            self._taken.pop(offset, None)
            was_written = offset in self._written
            self._written.discard(offset)
        if was_written:
            self._unlink(offset)

    def drop_below(self, start: int) -> None:
        """Remove the snapshots below the new beginning of the first segment."""
        for offset in self.all:
            if offset < start:
                self.drop(offset)

    def drop_above(self, end: int) -> None:
        """Remove the snapshots above the new end of the log, and wait until none is being written."""
        with self._writing:
            for offset in self.all:
                if offset > end:
                    self.drop(offset)

    def folder_renamed(self, folder: str) -> None:
        """Use the folder's new name. Must not run during a write."""
        self._folder = folder

    def stop(self) -> None:
        """Stop writing, since the log is deleted. A write that fails meanwhile does not matter."""
        self._stopped = True
        with self._writing:
            pass

    def _path(self, offset: int) -> str:
        return os.path.join(self._folder, numbered(offset, SNAPSHOT))

    def _unlink(self, offset: int) -> None:
        unlink_if_there(self._directory.files, self._path(offset))
