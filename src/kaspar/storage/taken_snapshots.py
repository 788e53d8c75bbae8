"""The producer snapshots of one log: those in its folder, and those that were taken and have yet to be written.

A snapshot of tens of thousands of producers takes a tenth of a second to write, and a segment is rolled by the event
loop, in the middle of an append. So a roll takes the snapshot, which is the entries as they are then and which nobody
changes any more (`ProducerState.taken`), and writes it only if it is small. Otherwise a thread does so within seconds.
A crash in between costs what any lost snapshot does: recovery begins at the one before it and reads more of the log.
So what lies before a snapshot that has yet to be written is not deleted: nothing else tells of its producers.

Rules:
- The owner takes and drops; any thread may write, one at a time.
- A snapshot that is dropped while it is being written is removed by whoever writes it. Nobody waits for that where the
  snapshot is merely of no use any more.
- Where the log is cut, or its folder is about to become another log's, nothing may be written afterwards that was taken
  before: that waits for a write that is under way (`drop_above`, `stop`).
"""

import os
import threading
from collections.abc import Iterable
from typing import Final

from kaspar.storage.file_names import SNAPSHOT, numbered
from kaspar.storage.files import Files, unlink_if_there
from kaspar.storage.producer_snapshot import write_snapshot
from kaspar.storage.producer_state import ProducerEntry

SMALL: Final = 250
"""So many producers are written to a file in a millisecond."""


class TakenSnapshots:
    __slots__ = ("_changing", "_files", "_folder", "_stopped", "_taken", "_writing", "_written")

    def __init__(self, files: Files, folder: str, written: Iterable[int]) -> None:
        self._files = files
        self._folder = folder
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
        """Whether the one of that offset has yet to be written."""
        with self._changing:
            return offset in self._taken

    def take(self, offset: int, entries: list[ProducerEntry]) -> None:
        """To be written. The entries are not changed from now on."""
        with self._changing:
            self._taken[offset] = entries

    def write(self) -> None:
        """Write what was taken. In a thread. OSError: the rest waits for the next call, and so does what failed."""
        with self._writing:
            self._write_taken()

    def write_if_small(self) -> None:
        """The same for the owner, if that is a matter of a millisecond."""
        with self._changing:
            entries = sum(map(len, self._taken.values()))
        if entries <= SMALL and self._writing.acquire(blocking=False):
            try:
                self._write_taken()
            finally:
                self._writing.release()

    def _write_taken(self) -> None:
        while (next_one := self._next()) is not None:
            offset, entries = next_one
            write_snapshot(self._files, self._folder, offset, entries)
            with self._changing:
                wanted = self._taken.get(offset) is entries
                if wanted:
                    del self._taken[offset]
                    self._written.add(offset)
            if not wanted:
                self._unlink(offset)

    def _next(self) -> tuple[int, list[ProducerEntry]] | None:
        with self._changing:
            return None if self._stopped else next(iter(self._taken.items()), None)

    def give_up(self) -> list[int]:
        """Forget what was taken and cannot be written: their offsets."""
        with self._changing:
            offsets = list(self._taken)
            self._taken.clear()
        return offsets

    def drop(self, offset: int) -> None:
        """Without waiting for a write that is under way."""
        with self._changing:
            self._taken.pop(offset, None)
            was_written = offset in self._written
            self._written.discard(offset)
        if was_written:
            self._unlink(offset)

    def drop_above(self, end: int) -> None:
        """The log ends there now: no later snapshot is there, or is written, from now on."""
        with self._writing:
            for offset in self.all:
                if offset > end:
                    self.drop(offset)

    def stop(self) -> None:
        """Nothing is written from now on."""
        with self._writing:
            self._stopped = True

    def _unlink(self, offset: int) -> None:
        unlink_if_there(self._files, os.path.join(self._folder, numbered(offset, SNAPSHOT)))
