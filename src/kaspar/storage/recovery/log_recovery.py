"""Opens a partition's folder as a Log.

After a clean shutdown only names, sizes, three small files and the indexes of aborted transactions are read. Otherwise:

- everything below the recovery point was synced and is trusted;
- from there on every batch is checked. At the first that is not whole and valid the segment is truncated, and the
  segments after it are set aside (see set_aside). So is a later segment that does not begin where the one before it
  ends: a power failure lost the records in between, and the rest of a log must be a prefix of it, or transactions lose
  their markers. If the topic is compacted, or the recovery point is unknown, the cleaner may have left the gap, and the
  segment stays;
- the indexes of the checked part are rebuilt, leader epochs found on the way are added, and the state of the producers
  is rebuilt from the newest snapshot at or below the recovery point. Aborted transactions that are decided on the way
  are added to their index. Newer snapshots may include lost batches: they are removed and written again.

Files of an unfinished deletion, cleaning or swap are handled first, as in Kafka's LogLoader.
"""

import contextlib
import os
import uuid
from dataclasses import dataclass

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.config import LogConfig
from kaspar.records import BatchHeader
from kaspar.storage.derived_state import DerivedState
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.file_names import LOG, OFFSET_INDEX, SNAPSHOT, numbered
from kaspar.storage.disk.files import DISK_FULL, Files, unlink_if_there
from kaspar.storage.leader_epochs import LeaderEpochCache
from kaspar.storage.local_log import LocalLog
from kaspar.storage.log import Log
from kaspar.storage.producers import replay
from kaspar.storage.producers.snapshot_file import write_snapshot
from kaspar.storage.producers.state import ProducerState
from kaspar.storage.recovery.aborted_transactions import AbortedRecovery
from kaspar.storage.recovery.leftovers import FolderContent, settle_leftovers
from kaspar.storage.recovery.segment_check import CheckedSegment, CheckStart, Progress, SegmentChecker
from kaspar.storage.recovery.set_aside import keep_tail, set_segment_aside
from kaspar.storage.rolling import jitter_ms
from kaspar.storage.segments.batch_scan import BatchScan
from kaspar.storage.segments.indexes import OffsetIndex
from kaspar.storage.segments.segment import Segment
from kaspar.storage.segments.transaction_index import TransactionIndex

log = get_log(__name__)


@dataclass(frozen=True, slots=True)
class KnownOffsets:
    """The entries for one partition in the checkpoint files of a log directory; None for a missing entry.

    `has_points` is False if the file of recovery points is missing or damaged: any part of the log may have been
    synced.
    """

    recovery_point: int | None
    log_start_offset: int | None
    clean: bool
    has_points: bool = True


def load_log(
    directory: LogDirectory,
    folder: str,
    topic_partition: TopicPartition,
    topic_id: uuid.UUID | None,
    config: LogConfig,
    known: KnownOffsets,
    *,
    now_ms: int,
    progress: Progress | None = None,
) -> Log:
    """Load the log in `folder`. May block on disk I/O: call it in a thread. The caller, which knows the directory,
    handles OSError. `now_ms` is the wall clock's time. Idle producers are expired later, so that one that missed the
    last response can retry first.
    """
    loading = _Loading(directory.files, folder, topic_partition, config, known, now_ms, progress)
    loading.run()
    local = LocalLog(
        directory,
        folder,
        topic_partition,
        config,
        segments=loading.segments,
        log_end_offset=loading.log_end_offset,
        recovery_point=loading.recovery_point,
    )
    local.unsynced.add_rebuilt(loading.rebuilt, names=not known.clean)
    state = DerivedState(
        directory, folder, topic_partition, loading.leader_epochs, loading.producers, loading.content.snapshots
    )
    loaded = Log(local, topic_id, log_start_offset=loading.log_start_offset, state=state)
    if loading.kept_gap:
        # With the recovery point above it, the next start accepts the gap without checking it again.
        with contextlib.suppress(Refused):  # the disk is full: the next start decides again
            loaded.flush()
    return loaded


class _Loading:
    def __init__(
        self,
        files: Files,
        folder: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        known: KnownOffsets,
        now_ms: int,
        progress: Progress | None,
    ) -> None:
        self.files = files
        self.folder = folder
        self.topic_partition = topic_partition
        self.config = config
        self.known = known
        self.now_ms = now_ms
        self.checker = SegmentChecker(files, config.index_interval_bytes, progress)
        self.content = FolderContent.empty()
        self.segments: list[Segment] = []
        self.aborted = AbortedRecovery(files, topic_partition, (), ())
        self.producers = ProducerState(topic_partition)
        self.leader_epochs = LeaderEpochCache()
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self.remembered_up_to = 0
        self.rebuilt: list[Segment] = []
        self.kept_gap = False

    def run(self) -> None:
        self.content = settle_leftovers(self.files, self.folder)
        self.leader_epochs = LeaderEpochCache.load(self.files, self.folder)
        self.segments = [self._segment(base_offset) for base_offset in sorted(self.content.logs)]
        self.aborted = AbortedRecovery(
            self.files, self.topic_partition, tuple(self.segments), frozenset(self.content.snapshots)
        )
        self.aborted.look_at(self.content.aborted)
        self.log_start_offset = max(
            self.known.log_start_offset or 0, self.segments[0].base_offset if self.segments else 0
        )
        recovery_point = self.known.recovery_point or 0
        if not self.segments:
            self._start_empty(self.log_start_offset)
            return
        if self.known.clean:
            self._load_clean()
        else:
            synced = max(recovery_point, self.segments[0].base_offset)
            self._remove_snapshots_above(synced)
            self._recover(synced)
        if self.log_end_offset < self.log_start_offset:
            log.warning(
                "the log ends before its start, since files are missing: it starts empty",
                partition=self.topic_partition,
                log_end_offset=self.log_end_offset,
                log_start_offset=self.log_start_offset,
            )
            for segment in self.segments:
                set_segment_aside(self.files, segment, "it ends before the start of the log")
            self._start_empty(self.log_start_offset)
            return
        self.recovery_point = self.log_end_offset if self.known.clean else min(recovery_point, self.log_end_offset)
        self.leader_epochs.truncate_from_end(self.log_end_offset)
        self.leader_epochs.truncate_from_start(self.log_start_offset)
        self._remove_stray_snapshots()

    def _segment(self, base_offset: int) -> Segment:
        size = self.files.size(os.path.join(self.folder, numbered(base_offset, LOG)))
        return Segment(self.folder, base_offset, size, created_ms=self.now_ms, jitter_ms=jitter_ms(self.config))

    def _start_empty(self, offset: int) -> None:
        for snapshot in list(self.content.snapshots):
            self._remove_snapshot(snapshot)
        self.producers.clear()
        self.leader_epochs.clear()
        segment = Segment.create(
            self.files, self.folder, offset, now_ms=self.now_ms, jitter_ms=jitter_ms(self.config), preallocate=0
        )
        segment.close(self.files)
        self.segments = [segment]
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset

    # After a clean shutdown

    def _load_clean(self) -> None:
        for segment in self.segments:
            if segment.base_offset not in self.content.indexes:
                log.warning("rebuilding a missing index", file=segment.path(OFFSET_INDEX))
                self._check(segment, CheckStart.of(segment))
        end = self.known.recovery_point
        active = self.segments[-1]
        # A clean shutdown leaves a snapshot at the end of the log. Without it, the checkpoint may be another folder's.
        trusted = end is not None and end >= active.base_offset and end == max(self.content.snapshots, default=0)
        if end is None or not trusted or (active.size == 0) != (end == active.base_offset):
            end = self._read_end(active)
        self.log_end_offset = end
        begin = self._load_snapshot(end)
        if begin < end:
            replay.replay(self.files, self.segments, begin, end, self.producers)
        for slot in range(len(self.segments)):
            self._repair_aborted(slot, end)

    def _repair_aborted(self, slot: int, end: int) -> None:
        segments = self.segments
        if self.aborted.repair(slot, segments[slot + 1].base_offset if slot + 1 < len(segments) else end):
            self.rebuilt.append(segments[slot])

    def _read_end(self, segment: Segment) -> int:
        """The end of the log, from its last batch."""
        index = OffsetIndex.load(self.files, segment.path(OFFSET_INDEX))
        position = index.positions[-1] if index.positions else 0
        end = segment.base_offset
        fd = self.files.open(segment.path(LOG))
        try:
            for _, header, _ in BatchScan(self.files, fd, position, segment.size):
                end = header.next_offset
        finally:
            self.files.close(fd)
        return end

    def _load_snapshot(self, up_to: int) -> int:
        begin = max(self.segments[0].base_offset, 0)
        return replay.load_newest_snapshot(
            self.files, self.folder, self.content.snapshots, up_to, self.producers, begin
        )

    # After a crash

    def _recover(self, recovery_point: int) -> None:
        segments = self.segments
        first = max(slot for slot, segment in enumerate(segments) if slot == 0 or segment.base_offset <= recovery_point)
        for slot in range(first):
            # The indexes of a segment that was rolled just before the crash may not have been synced.
            rolled_last = slot == first - 1 and segments[first].base_offset >= recovery_point
            if segments[slot].base_offset not in self.content.indexes or (
                rolled_last and not self.checker.index_is_sound(segments[slot])
            ):
                log.info("rebuilding an index", file=segments[slot].path(OFFSET_INDEX))
                self._check(segments[slot], CheckStart.of(segments[slot]))
            elif rolled_last:
                self.rebuilt.append(segments[slot])  # valid, but perhaps not synced
            self._repair_aborted(slot, segments[slot + 1].base_offset)
        start = self.checker.start_of_check(segments[first], recovery_point)
        # A snapshot between the start of the check and the recovery point saves replaying batches up to it.
        self.remembered_up_to = self._load_snapshot(max(start.offset, recovery_point))
        replay.replay(self.files, segments, self.remembered_up_to, start.offset, self.producers)
        aborted = self.aborted.kept(first, max(start.offset, self.remembered_up_to))

        end = segments[first].base_offset
        for slot in range(first, len(segments)):
            segment = segments[slot]
            problem = self._why_unusable(segment, end)
            if problem is not None:
                self._set_aside_from(segment, problem)
                break
            if slot > first:
                self._write_snapshot(segment.base_offset)
                start, aborted = CheckStart.of(segment), self.aborted.kept(slot, segment.base_offset)
            end, sound = self._check(segment, start, aborted)
            if not sound:
                break
        self.log_end_offset = end
        if end < self.remembered_up_to:
            # Even synced records are lost, so the snapshot includes lost batches.
            begin = self._load_snapshot(end)
            replay.replay(self.files, self.segments, begin, end, self.producers)
            self.segments[-1].drop_aborted(self.files, end)

    def _why_unusable(self, segment: Segment, end: int) -> str | None:
        """Return the reason why a segment cannot follow one that ends at `end`; None if it can."""
        if segment.base_offset == end:
            return None
        if segment.base_offset < end:
            return f"the segment before it ends at {end}"
        if "compact" not in self.config.cleanup_policy and self.known.has_points:
            return f"offsets from {end} on are missing before it"
        if not self.kept_gap:
            log.info("assuming that the cleaner left a gap in the offsets", partition=self.topic_partition, offset=end)
        self.kept_gap = True
        return None

    def _set_aside_from(self, first: Segment, problem: str) -> None:
        """Set aside `first` and all segments after it, in reverse order: if this stops halfway, the rest is a prefix of
        the log, and the next start finds the same problem.
        """
        while self.segments and self.segments[-1].base_offset >= first.base_offset:
            set_segment_aside(self.files, self.segments[-1], problem)
            self.segments = self.segments[:-1]

    def _check(self, segment: Segment, start: CheckStart, aborted: TransactionIndex | None = None) -> tuple[int, bool]:
        """Check a segment and rebuild its indexes. With `aborted`, the aborted transactions known so far, cut off what
        is not valid; without, the segment was synced and is not changed.

        Returns the offset at which its batches end, and whether all of it was valid.
        """

        def on_batch(header: BatchHeader, batch: memoryview) -> None:
            if aborted is not None:
                self._add_batch(header, batch, aborted)

        checked = self.checker.run(segment, start, on_batch)
        if checked.problem is not None:
            self._cut_tail(segment, checked, cut=aborted is not None)
        self.checker.replace_indexes(segment, checked)
        self.rebuilt.append(segment)
        if aborted is not None:
            self.aborted.finish(segment, aborted)
        return checked.end_offset, checked.problem is None

    def _cut_tail(self, segment: Segment, checked: CheckedSegment, *, cut: bool) -> None:
        log.warning(
            "cut invalid bytes off the end of a segment"
            if cut
            else "a segment contains bytes that are not a valid batch",
            file=segment.path(LOG),
            position=checked.end_position,
            bytes=segment.size - checked.end_position,
            problem=checked.problem,
        )
        if cut:
            fd = self.files.open(segment.path(LOG), write=True)
            try:
                self._cut(segment, fd, checked.end_position)
            finally:
                self.files.close(fd)

    def _cut(self, segment: Segment, fd: int, position: int) -> None:
        later = [one for one in self.segments if one.base_offset > segment.base_offset]
        if later or not self.known.has_points:
            keep_tail(self.files, segment, fd, position)
        if later:
            # Before the truncation: afterwards a start would find a valid segment and a gap, which the cleaner might
            # leave.
            self._set_aside_from(later[0], f"the segment before it, {segment.base_offset}, is damaged")
        self.files.truncate(fd, position)
        self.files.fsync(fd)
        segment.size = position

    def _add_batch(self, header: BatchHeader, batch: memoryview, aborted: TransactionIndex) -> None:
        """Apply a batch that was not known to be in the log."""
        if header.leader_epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(header.leader_epoch, header.base_offset)
        if header.base_offset >= self.remembered_up_to:
            decided = replay.remember_batch(self.producers, header, batch)
            if decided is not None and (entry := decided.index_entry) is not None:
                aborted.append(entry)

    def _remove_snapshots_above(self, synced: int) -> None:
        """Remove snapshots that may include batches lost in the crash, even if the log continues above them. They must
        be gone before the recovery point passes them, since from then on they would be trusted.
        """
        for offset in [offset for offset in self.content.snapshots if offset > synced]:
            self._remove_snapshot(offset)

    def _write_snapshot(self, offset: int) -> None:
        """Write the state of the producers at the base offset of a segment: once the segments before it are deleted, it
        is known from nowhere else. On a full disk it is left out.
        """
        try:
            write_snapshot(self.files, self.folder, offset, self.producers.entries.values())
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            log.warning("no space is left for a producer snapshot", partition=self.topic_partition, offset=offset)
        else:
            self.content.snapshots.add(offset)

    def _remove_stray_snapshots(self) -> None:
        """Remove the snapshots that belong neither to a segment's base offset nor to the end of the log."""
        wanted = {segment.base_offset for segment in self.segments} | {self.log_end_offset}
        for offset in [offset for offset in self.content.snapshots if offset not in wanted]:
            self._remove_snapshot(offset)

    def _remove_snapshot(self, offset: int) -> None:
        unlink_if_there(self.files, os.path.join(self.folder, numbered(offset, SNAPSHOT)))
        self.content.snapshots.discard(offset)
