"""How a cleaned segment replaces the segments that it was made from, as in Kafka's replaceSegments.

There are four steps, so that a crash at any moment leaves either all of the old segments or the new one:

1. a cleaner's thread has written and synced the new segment's files, whose names end in `.cleaned`;
2. `begin`: the owner renames them to `.swap`; `sync_names`: the thread makes that durable;
3. `complete`: the owner renames the old files to `.deleted`, publishes the new list of segments, and removes `.swap`
   from the new names; reads that have an old file open can finish;
4. `sync_names` once more.

A start deletes `.cleaned` files, and finishes the third step for `.swap` files (storage/recovery/leftovers.py). An
operation that truncates the log or deletes one of the old segments between the second step and the third calls
`give_up` first: otherwise the `.swap` files would bring back removed records.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kaspar.base.errors import KasparError
from kaspar.storage.disk.file_names import CLEANED, SWAP
from kaspar.storage.local_log import LocalLog
from kaspar.storage.producers.snapshots import ProducerSnapshots
from kaspar.storage.segments.segment import Segment


class CleaningStopped(KasparError):
    """The log has changed or is needed elsewhere, or the broker stops. Nothing is lost; a later pass cleans the log."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """`new` contains what remains of `old`, as of the time when the log had been truncated `truncations` times."""

    old: tuple[Segment, ...]
    new: Segment
    truncations: int


class SegmentSwaps:
    __slots__ = ("_begun", "_local", "_snapshots")

    def __init__(self, local: LocalLog, snapshots: ProducerSnapshots) -> None:
        self._local = local
        self._snapshots = snapshots
        self._begun: Replacement | None = None

    def begin(self, replacement: Replacement) -> None:
        """Second step. Owner only. Raises CleaningStopped if the log is no longer the one that was cleaned."""
        self._check(replacement)
        try:
            replacement.new.move_files(self._local.directory.files, CLEANED, SWAP)
        except OSError as error:
            raise self._failed(error) from error
        self._begun = replacement

    def sync_names(self) -> None:
        """Make renames durable. Blocks on disk I/O, so it runs in the cleaner's thread."""
        local = self._local
        try:
            local.directory.files.fsync_dir(local.folder)
        except OSError as error:
            if not local.deleted:
                raise local.directory.take_offline(f"{error} while syncing {local.topic_partition}") from error

    def complete(self, replacement: Replacement) -> None:
        """Third step. Owner only. Raises CleaningStopped if `begin` no longer holds."""
        self._check(replacement)
        if self._begun is not replacement:
            raise self._changed()
        try:
            self._local.swap(replacement.old, replacement.new)
            self._begun = None
            for merged in replacement.old[1:]:  # a snapshot belongs to the base offset of one segment
                self._snapshots.drop(merged.base_offset)
        except OSError as error:
            raise self._failed(error) from error

    def discard(self, new: Segment) -> None:
        """Remove the files of a cleaned segment that is not used. For the cleaner's thread, or the owner."""
        local = self._local
        try:
            new.remove_files(local.directory.files, CLEANED)
            new.remove_files(local.directory.files, SWAP)
        except OSError as error:
            # While `.cleaned` files exist, a start would not finish a later swap.
            raise local.directory.take_offline(f"{error} while removing cleaned files of {local.folder}") from error

    def give_up(self, segments: Iterable[Segment]) -> bool:
        """Cancel a swap that was to replace one of these segments, which are about to change. Returns whether there was
        one, whose files were removed.
        """
        begun = self._begun
        if begun is None or set(begun.old).isdisjoint(segments):
            return False
        self._begun = None
        self.discard(begun.new)
        return True

    def _check(self, replacement: Replacement) -> None:
        local = self._local
        local.directory.check_online()
        segments = local.segments.all
        old = replacement.old
        slot = segments.index(old[0]) if old[0] in segments else len(segments)
        if (
            local.deleted
            or local.truncations != replacement.truncations
            or segments[slot : slot + len(old)] != old
            or slot + len(old) == len(segments)
        ):
            raise self._changed()

    def _changed(self) -> CleaningStopped:
        return CleaningStopped(f"segments of {self._local.topic_partition} changed while they were cleaned")

    def _failed(self, error: OSError) -> KasparError:
        local = self._local
        if local.deleted:
            return CleaningStopped(f"{local.topic_partition} was deleted")
        # The next start repairs the names.
        return local.directory.take_offline(f"{error} while swapping segments of {local.topic_partition}")
