"""How a log loses records: at its end (truncation), at its beginning (retention, DeleteRecords), in between (cleaning).

What goes with them is kept right here too: where the log starts, leader epochs, the producers' state and its snapshots.
All of it is the owner's, but for `retention_start_offset`, `sync_names` and `discard`.

A cleaned segment takes the place of the segments that it was made from in four steps, so that a crash at any moment
leaves either all of the old ones or the new one:

1. a cleaner's thread has written and synced the new segment's files, whose names end in `.cleaned`;
2. `begin_swap`: the owner renames them to `.swap`; `sync_names`: the thread makes that durable;
3. `replace_segments`: the owner renames the old files to `.deleted`, publishes the new list of segments, and takes
   `.swap` off the new names; reads that have an old file open finish;
4. `sync_names` once more.

A start finds `.cleaned` and throws it away, or `.swap` and finishes the third step (storage/leftovers.py). What cuts
the log or drops one of the old segments between the second step and the third takes the `.swap` files away first: they
would bring back what is gone.
"""

import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import Offset, TopicPartition
from kaspar.base.log import get_log
from kaspar.config import LogConfig
from kaspar.storage import producer_replay, retention
from kaspar.storage.cleaning.errors import CleaningStopped
from kaspar.storage.file_names import CLEANED, SWAP
from kaspar.storage.files import DISK_FULL
from kaspar.storage.leader_epochs import LeaderEpochCache
from kaspar.storage.local_log import LocalLog
from kaspar.storage.log_directory import LogDirectory
from kaspar.storage.producer_state import ProducerState
from kaspar.storage.segment import Segment
from kaspar.storage.taken_snapshots import TakenSnapshots

log = get_log(__name__)


@dataclass(frozen=True, slots=True)
class Replacement:
    """`new` holds what is left of `old`, as they were when the log had been truncated `truncations` times."""

    old: tuple[Segment, ...]
    new: Segment
    truncations: int


class ShrinkingLog(LocalLog):
    __slots__ = (
        "_future_told",
        "_swapping",
        "leader_epochs",
        "log_start_offset",
        "producers",
        "snapshots",
        "swaps",
        "topic_id",
    )

    def __init__(
        self,
        directory: LogDirectory,
        folder: str,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID | None,
        config: LogConfig,
        *,
        segments: list[Segment],
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        leader_epochs: LeaderEpochCache,
        producers: ProducerState,
        snapshots: set[int],
    ) -> None:
        super().__init__(directory, folder, topic_partition, config, segments, log_end_offset, recovery_point)
        self.topic_id = topic_id
        self.log_start_offset = log_start_offset
        self.leader_epochs = leader_epochs
        self.producers = producers
        self.snapshots = TakenSnapshots(directory.files, folder, snapshots)
        # The replacement that is under way between `begin_swap` and `replace_segments`, and how many there were.
        self._swapping: Replacement | None = None
        # The segment that was last complained about for its timestamps.
        self._future_told = -1
        self.swaps = 0

    @property
    def truncations(self) -> int:
        """How often the end of the log was cut."""
        return self._truncations

    # What belongs to the log beside its segments

    def _roll(self, base_offset: int, now_ms: int) -> None:
        super()._roll(base_offset, now_ms)
        self.snapshots.take(base_offset, self.producers.taken())
        self._write_snapshots(self.snapshots.write_if_small)

    @property
    def waits_for_snapshots(self) -> bool:
        """Whether segments below the log start offset stay until a snapshot is written."""
        slot = self._first_kept(self.log_start_offset)
        return slot > 0 and self.snapshots.waits(self.segments.base_offsets[slot])

    def write_snapshots(self) -> None:
        """Write the producer snapshots that were taken. In a thread."""
        self._write_snapshots(self.snapshots.write)

    def _write_snapshots(self, write: Callable[[], None]) -> None:
        """On a full disk they are left out: recovery then reads more of the log."""
        try:
            write()
        except OSError as error:
            if self.deleted:
                return
            if error.errno not in DISK_FULL:
                raise self.directory.fail(error, f"writing a producer snapshot of {self.topic_partition}") from error
            offsets = self.snapshots.give_up()
            log.warning("no space is left for producer snapshots", partition=self.topic_partition, offsets=offsets)

    def maintain(self, now_ms: int) -> int:
        """Write what waits to be written, and remove files whose `file.delete.delay.ms` is over, by the steady clock:
        how many. Any thread.
        """
        if not self.deleted:
            self.write_snapshots()
        return super().maintain(now_ms)

    def delete(self) -> None:
        self.deleted = True
        self.snapshots.stop()  # the folder's name may be another log's in a moment
        super().delete()

    def _persist_leader_epochs(self) -> None:
        try:
            self.leader_epochs.persist(self.directory.files, self.folder)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            raise self.directory.fail(error, f"writing the leader epochs of {self.topic_partition}") from error

    # Truncation and deletion

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Drop every record at or above `offset`, durably. False if there is none. For LogManager.truncate_to, which
        also writes down that the offsets from there on are not synced any more.
        """
        if offset >= self.log_end_offset:
            return False
        if offset < self.segments.base_offsets[0]:
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return True
        try:
            self._before_cut()
            self._cut(offset)
            self._truncate_state(min(self.log_start_offset, offset))
        except OSError as error:
            raise self.directory.fail(error, f"truncating {self.topic_partition}") from error
        return True

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Drop every record, durably; the log goes on, empty, at `offset`."""
        try:
            self._before_cut()
            self._cut_all(offset, now_ms)
            self._truncate_state(offset)
        except OSError as error:
            raise self.directory.fail(error, f"truncating {self.topic_partition}") from error

    def _before_cut(self) -> None:
        if self._give_up_swap(self.segments.all):
            self.directory.files.fsync_dir(self.folder)

    def _truncate_state(self, log_start_offset: int) -> None:
        """Epochs and producers as they were when the log ended where it ends now."""
        files = self.directory.files
        end = self.log_end_offset
        self.log_start_offset = log_start_offset
        self.leader_epochs.truncate_from_end(end)
        self._persist_leader_epochs()
        self.snapshots.drop_above(end)
        self.write_snapshots()
        begin = producer_replay.load_newest_snapshot(
            files, self.folder, self.snapshots.written, end, self.producers, self.segments.base_offsets[0]
        )
        producer_replay.replay(files, self.segments.all, begin, end, self.producers)

    def advance_log_start_offset(self, offset: int) -> bool:
        """Records below `offset` are no longer there for anyone, and segments that hold nothing else go.

        False if nothing changes. Beyond the end it is refused; beyond the high watermark it must be by the caller.
        """
        moved = self.move_log_start_offset(offset)
        if moved:
            self._drop_old_files(offset)
        return moved

    def move_log_start_offset(self, offset: int) -> bool:
        """The same, but the segments stay until `drop_old_segments`: many of them take a while."""
        if offset > self.log_end_offset:
            raise Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.topic_partition} since it is "
                f"larger than the log end offset {self.log_end_offset}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        return True

    def drop_old_segments(self, most: int) -> int:
        """Drop segments that hold nothing from the log start offset on, the oldest first: how many. One whose successor
        has a producer snapshot that is not written yet has to wait, and so have those after it.
        """
        before = len(self.segments.all)
        later = self.segments.base_offsets[most:]
        self._drop_old_files(min(self.log_start_offset, later[0]) if later else self.log_start_offset)
        return before - len(self.segments.all)

    def retention_start_offset(self, now_ms: int, high_watermark: int) -> Offset:
        """Where `retention.ms` and `retention.bytes` want the log to begin. Reads indexes: in a thread."""
        swaps = self.swaps
        try:
            start_offset, from_the_future = retention.retained(self, now_ms, high_watermark)
        except FileNotFoundError:
            return Offset(self.log_start_offset)  # segments were deleted or cleaned meanwhile: another time
        except OSError as error:
            raise self.directory.fail(error, f"looking for old segments of {self.topic_partition}") from error
        if self.completed_swaps() != swaps:
            return Offset(self.log_start_offset)  # what was read may be of two segments with one name
        if from_the_future is not None and from_the_future.base_offset != self._future_told:
            self._future_told = from_the_future.base_offset
            log.warning(
                "records from the future keep a segment, and what follows it, from being deleted by time",
                partition=self.topic_partition,
                base_offset=from_the_future.base_offset,
                max_timestamp=from_the_future.max_timestamp,
                now_ms=now_ms,
            )
        return Offset(start_offset)

    def delete_old_segments(self, start_offset: int, *, now_ms: int) -> int:
        """Apply what `retention_start_offset` found: how many segments went. If all do, an empty one follows them."""
        before = len(self.segments.all)
        if start_offset >= self.log_end_offset and self._active.size:
            self.roll(now_ms=now_ms)
            before += 1
        start_offset = min(start_offset, self.log_end_offset)
        self.move_log_start_offset(start_offset)
        self._drop_old_files(start_offset)
        return before - len(self.segments.all)

    def _drop_old_files(self, below_offset: int) -> None:
        below_offset = self._droppable(below_offset)
        try:
            self._give_up_swap(self._segments_below(below_offset))
            self._drop_segments_below(below_offset)
            for snapshot in self.snapshots.all:
                if snapshot < self.segments.base_offsets[0]:
                    self.snapshots.drop(snapshot)
        except OSError as error:
            raise self.directory.fail(error, f"deleting segments of {self.topic_partition}") from error

    def _droppable(self, below_offset: int) -> int:
        """Up to where segments may go now: the snapshot at the beginning of the first that stays is all that a start
        would know of the producers of those before it.
        """
        base_offsets = self.segments.base_offsets
        slot = self._first_kept(below_offset)
        while slot > 0 and self.snapshots.waits(base_offsets[slot]):
            slot -= 1
        return base_offsets[slot]

    def _first_kept(self, below_offset: int) -> int:
        return max(0, bisect_right(self.segments.base_offsets, below_offset) - 1)

    # Cleaning

    def begin_swap(self, replacement: Replacement) -> None:
        """Rename the files of the new segment to `.swap`. CleaningStopped if the log is not what was cleaned."""
        self._check_replaceable(replacement)
        try:
            replacement.new.move_files(self.directory.files, CLEANED, SWAP)
        except OSError as error:
            raise self._swap_failed(error) from error
        self._swapping = replacement

    def sync_names(self) -> None:
        """Make renames durable. Waits for the disk: for the cleaner's thread."""
        try:
            self.directory.files.fsync_dir(self.folder)
        except OSError as error:
            if not self.deleted:
                raise self.directory.take_offline(f"{error} while syncing {self.topic_partition}") from error

    def replace_segments(self, replacement: Replacement) -> None:
        """The new segment takes the place of the old ones. CleaningStopped if `begin_swap` no longer holds."""
        self._check_replaceable(replacement)
        if self._swapping is not replacement:
            raise CleaningStopped(f"what was cleaned of {self.topic_partition} has changed meanwhile")
        files = self.directory.files
        old, new = replacement.old, replacement.new
        segments = self.segments.all
        slot = segments.index(old[0])
        with self._renaming:
            try:
                for segment in old:
                    self._doom(segment)
                new.move_files(files, SWAP, "")
            except OSError as error:
                raise self._swap_failed(error) from error
            self._publish([*segments[:slot], new, *segments[slot + len(old) :]])
            self.swaps += 1
        self._swapping = None
        self._drop_old_snapshots(old[1:])

    def completed_swaps(self) -> int:
        """How many replacements there were, counting one that is under way in this moment. Any thread."""
        with self._renaming:
            return self.swaps

    def _swap_failed(self, error: OSError) -> KasparError:
        if self.deleted:
            return CleaningStopped(f"{self.topic_partition} was deleted")
        # The names are in disorder: a start puts them right.
        return self.directory.take_offline(f"{error} while swapping segments of {self.topic_partition}")

    def discard(self, new: Segment) -> None:
        """Remove the files of a cleaned segment that takes no other's place. For the cleaner's thread, or the owner."""
        try:
            new.remove_files(self.directory.files, CLEANED)
            new.remove_files(self.directory.files, SWAP)
        except OSError as error:
            # With `.cleaned` files about, a start would not finish a later swap.
            raise self.directory.take_offline(f"{error} while removing cleaned files of {self.folder}") from error

    def _drop_old_snapshots(self, merged: Iterable[Segment]) -> None:
        """A snapshot belongs to the beginning of a segment."""
        try:
            for segment in merged:
                self.snapshots.drop(segment.base_offset)
        except OSError as error:
            raise self._swap_failed(error) from error

    def _check_replaceable(self, replacement: Replacement) -> None:
        self.directory.check_online()
        segments = self.segments.all
        old = replacement.old
        slot = segments.index(old[0]) if old[0] in segments else len(segments)
        if (
            self.deleted
            or self._truncations != replacement.truncations
            or segments[slot : slot + len(old)] != old
            or slot + len(old) == len(segments)
        ):
            raise CleaningStopped(f"what was cleaned of {self.topic_partition} has changed meanwhile")

    def _give_up_swap(self, segments: Iterable[Segment]) -> bool:
        """Some of these segments change: a swap that is to take their place must not be finished by the next start."""
        swapping = self._swapping
        if swapping is None or set(swapping.old).isdisjoint(segments):
            return False
        self._swapping = None
        self.discard(swapping.new)
        return True
