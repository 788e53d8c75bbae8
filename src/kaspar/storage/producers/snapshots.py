"""The producer snapshots of one log: those in its folder, and those that were taken and are yet to be written.

A snapshot of tens of thousands of producers takes a tenth of a second to write, and a segment is rolled by the event
loop, in the middle of an append. So a roll only takes the snapshot, which is the list of entries at that moment
(`ProducerState.taken`: they never change again), and writes it if it is small. Otherwise a thread does so within
seconds. A crash in between costs the same as any lost snapshot: recovery begins at the one before and reads more of the
log. So segments before a snapshot that is not written yet are not deleted: their producers are known from nowhere else.

Rules:
- The owner takes and drops; any thread may write, one at a time.
- A snapshot that is dropped while it is being written is removed by the writing thread. Nobody waits for that where the
  snapshot is merely useless.
- When the log is truncated, or its folder is about to become another log's, nothing that was taken before may be
  written afterwards: that waits for a write that is under way (`drop_above`, `stop`).
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
"""A snapshot of this many producers is written in a millisecond."""


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
        """The offsets of those in the folder."""
        with self._changing:
            return list(self._written)

    @property
    def all(self) -> list[int]:
        with self._changing:
            return [*self._written, *(offset for offset in self._taken if offset not in self._written)]

    def waits(self, offset: int) -> bool:
        """Whether the snapshot at `offset` is yet to be written."""
        with self._changing:
            return offset in self._taken

    def take(self, offset: int, entries: list[ProducerEntry]) -> None:
        """A snapshot to write. Nobody changes the entries from now on."""
        with self._changing:
            self._taken[offset] = entries

    def write(self) -> None:
        """Write what was taken. In a thread. What fails is tried again by the next call, with the rest."""
        with self._writing:
            self._write_taken()

    def write_if_small(self) -> None:
        """The same for the owner, if it takes no longer than a millisecond."""
        with self._changing:
            entries = sum(map(len, self._taken.values()))
        if entries <= SMALL and self._writing.acquire(blocking=False):
            try:
                self._write_taken()
            finally:
                self._writing.release()

    def _write_taken(self) -> None:
        """On a full disk snapshots are left out: recovery then reads more of the log."""
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
        """Without waiting for a write that is under way."""
        with self._changing:
            self._taken.pop(offset, None)
            was_written = offset in self._written
            self._written.discard(offset)
        if was_written:
            self._unlink(offset)

    def drop_below(self, start: int) -> None:
        """The first segment begins at `start` now."""
        for offset in self.all:
            if offset < start:
                self.drop(offset)

    def drop_above(self, end: int) -> None:
        """The log ends at `end` now: no later snapshot exists, or is written, from now on."""
        with self._writing:
            for offset in self.all:
                if offset > end:
                    self.drop(offset)

    def folder_renamed(self, folder: str) -> None:
        """While nobody writes."""
        self._folder = folder

    def stop(self) -> None:
        """Nothing is written from now on. The log is deleted, so a write that fails meanwhile does not matter."""
        self._stopped = True
        with self._writing:
            pass

    def _path(self, offset: int) -> str:
        return os.path.join(self._folder, numbered(offset, SNAPSHOT))

    def _unlink(self, offset: int) -> None:
        unlink_if_there(self._directory.files, self._path(offset))
