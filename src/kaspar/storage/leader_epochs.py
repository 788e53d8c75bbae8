"""Which leader epoch wrote which offsets of a partition, kept in its `leader-epoch-checkpoint`.

An entry is an epoch and its start offset; both only grow. Changes are made in memory; the file is written when the log
is flushed or closed, always before the recovery point passes a batch of a new epoch. So after a crash recovery finds
the entries that the file lacks in the batches that it reads. Only the log's owner changes the cache; `persist` and the
lookups may run in any thread.
"""

import bisect
import os
import threading
from typing import NamedTuple

from kaspar.base.ids import NO_EPOCH, LeaderEpoch, Offset
from kaspar.base.log import get_log
from kaspar.storage.disk.checkpoints import DamagedCheckpoint, read_lines, write_lines
from kaspar.storage.disk.file_names import LEADER_EPOCH_CHECKPOINT
from kaspar.storage.disk.files import Files

log = get_log(__name__)


class EpochEntry(NamedTuple):
    epoch: LeaderEpoch
    start_offset: Offset


class EpochEnd(NamedTuple):
    """The response to OffsetForLeaderEpoch: the epoch found, and the offset after its last record."""

    epoch: LeaderEpoch
    end_offset: Offset


class LeaderEpochCache:
    __slots__ = ("_entries", "_persisting", "dirty", "latest_epoch")

    def __init__(self, entries: tuple[EpochEntry, ...] = ()) -> None:
        self._entries = entries
        self.latest_epoch = entries[-1].epoch if entries else -1
        self.dirty = False
        self._persisting = threading.Lock()

    @staticmethod
    def load(files: Files, folder: str) -> "LeaderEpochCache":
        """Load the folder's checkpoint. A damaged one counts as empty: recovery finds what it can in the log."""
        cache = LeaderEpochCache()
        try:
            for fields in read_lines(files, os.path.join(folder, LEADER_EPOCH_CHECKPOINT)):
                epoch, start_offset = (int(field) for field in fields)
                cache.assign(epoch, start_offset)
        except (DamagedCheckpoint, ValueError) as error:
            log.warning("a leader epoch checkpoint is damaged and is rebuilt", folder=folder, error=error)
            cache = LeaderEpochCache()
            cache.dirty = True
            return cache
        cache.dirty = False
        return cache

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return self._entries

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` begins at `start_offset`. Entries that contradict this are of truncated records: remove
        them.
        """
        latest = self._entries[-1] if self._entries else None
        if latest is not None and latest.epoch == epoch and start_offset >= latest.start_offset:
            return
        kept = tuple(entry for entry in self._entries if entry.epoch < epoch and entry.start_offset < start_offset)
        self._replace((*kept, EpochEntry(LeaderEpoch(epoch), Offset(start_offset))))

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd | None:
        """The end offset of the largest epoch not above `epoch`; None if that is unknown."""
        entries = self._entries
        if epoch == NO_EPOCH or not entries or epoch > entries[-1].epoch:
            return None
        if epoch == entries[-1].epoch:
            return EpochEnd(LeaderEpoch(epoch), Offset(log_end_offset))
        higher = bisect.bisect_right([entry.epoch for entry in entries], epoch)
        # The epoch is older than all known ones: its records are deleted, and a follower begins at the log start.
        found = entries[higher - 1].epoch if higher else epoch
        return EpochEnd(LeaderEpoch(found), entries[higher].start_offset)

    def epoch_for_offset(self, offset: int) -> LeaderEpoch | None:
        entries = self._entries
        slot = bisect.bisect_right([entry.start_offset for entry in entries], offset)
        return entries[slot - 1].epoch if slot else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or after `end_offset`."""
        kept = tuple(entry for entry in self._entries if entry.start_offset < end_offset)
        if len(kept) != len(self._entries):
            self._replace(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that end before `start_offset`; the epoch that contains it now begins there."""
        entries = self._entries
        slot = bisect.bisect_right([entry.start_offset for entry in entries], start_offset) - 1
        if slot > 0 or (slot == 0 and entries[0].start_offset != start_offset):
            self._replace((EpochEntry(entries[slot].epoch, Offset(start_offset)), *entries[slot + 1 :]))

    def take_over(self, other: "LeaderEpochCache") -> None:
        """Copy the entries of another cache."""
        if self._entries != other.entries:
            self._replace(other.entries)

    def clear(self) -> None:
        if self._entries:
            self._replace(())

    def persist(self, files: Files, folder: str) -> None:
        """Write the file if the cache has changed since the last write. A concurrent change leaves the cache dirty. A
        lock serializes a sync and a truncation, which would use the same temporary file.
        """
        with self._persisting:
            if not self.dirty:
                return
            self.dirty = False
            entries = (f"{entry.epoch} {entry.start_offset}" for entry in self._entries)
            try:
                write_lines(files, os.path.join(folder, LEADER_EPOCH_CHECKPOINT), entries)
            except OSError:
                self.dirty = True
                raise

    def _replace(self, entries: tuple[EpochEntry, ...]) -> None:
        # The tuple is replaced in one step, so that a thread sees either the old state or the new one.
        self._entries = entries
        self.latest_epoch = entries[-1].epoch if entries else -1
        self.dirty = True
