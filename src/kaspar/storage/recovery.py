"""Opens a partition's folder: what is in it becomes a Log.

After a clean stop nothing but names, sizes, three small files and the indexes of aborted transactions is read. After
any other end:

- everything below the recovery point is on the disk and is taken as it is;
- from there on every batch is checked; at the first that is not whole and valid the segment is cut, and the segments
  after it are set aside (see set_aside). So is a later segment that does not go on where the one before it ends: a
  power cut took what was between, and a log must be a first part of what it was, or transactions lose their ends.
  Where the topic is compacted, or the recovery point is not known, the gap may be the cleaner's work, and it stays;
- the indexes of what was checked are made anew, leader epochs found on the way are added, and the state of the
  producers is brought up to date from the newest snapshot at or below the recovery point. Aborted transactions that
  are decided on the way are added to their index. Newer snapshots go, for they may know of batches that are lost, and
  are made anew.

Files that an unfinished deletion, cleaning or swap left are dealt with first, as Kafka does it.
"""

import contextlib
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.config import LogConfig
from kaspar.records import BatchHeader
from kaspar.storage import producer_replay
from kaspar.storage.aborted_recovery import AbortedRecovery
from kaspar.storage.batch_scan import BatchScan
from kaspar.storage.file_names import LOG, OFFSET_INDEX, SNAPSHOT, TIME_INDEX, numbered
from kaspar.storage.files import DISK_FULL, Files, unlink_if_there
from kaspar.storage.indexes import OffsetIndex, TimeIndex, create_index_file
from kaspar.storage.leader_epochs import LeaderEpochCache
from kaspar.storage.leftovers import FolderContent, settle_leftovers
from kaspar.storage.local_log import jitter_ms
from kaspar.storage.log import Log
from kaspar.storage.log_directory import LogDirectory
from kaspar.storage.producer_snapshot import write_snapshot
from kaspar.storage.producer_state import ProducerState
from kaspar.storage.segment import Segment
from kaspar.storage.set_aside import keep_tail, set_segment_aside
from kaspar.storage.transaction_index import TransactionIndex

log = get_log(__name__)

Progress = Callable[[int], None]
"""Called with the number of bytes that were checked since the last call."""


@dataclass(frozen=True, slots=True)
class KnownOffsets:
    """What the checkpoint files of a log directory say about one partition; None where they say nothing.

    `has_points` is False where the file of recovery points is missing or damaged: any of the log may have been synced.
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
    """May wait for the disk: in a thread. OSError is for the caller, who knows which directory fails. `now_ms` is the
    wall clock's time. Idle producers are forgotten later: one that has not heard the last response tries again first.
    """
    loading = _Loading(directory.files, folder, topic_partition, config, known, now_ms, progress)
    loading.run()
    loaded = Log(
        directory,
        folder,
        topic_partition,
        topic_id,
        config,
        segments=loading.segments,
        log_start_offset=loading.log_start_offset,
        log_end_offset=loading.log_end_offset,
        recovery_point=loading.recovery_point,
        leader_epochs=loading.leader_epochs,
        producers=loading.producers,
        snapshots=loading.content.snapshots,
    )
    loaded.sync_with_next_flush(loading.rebuilt, names=not known.clean)
    if loading.kept_gap:
        # Below the recovery point nobody asks again where a gap comes from.
        with contextlib.suppress(Refused):  # no space: it stays to be asked, as before
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
        self.progress = progress
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
            self._begin_anew(self.log_start_offset)
            return
        if self.known.clean:
            self._load_clean()
        else:
            synced = max(recovery_point, self.segments[0].base_offset)
            self._remove_snapshots_above(synced)
            self._recover(synced)
        if self.log_end_offset < self.log_start_offset:
            log.warning(
                "the log ends before its start, for files are missing: it begins anew",
                partition=self.topic_partition,
                log_end_offset=self.log_end_offset,
                log_start_offset=self.log_start_offset,
            )
            for segment in self.segments:
                set_segment_aside(self.files, segment, "it ends before the start of the log")
            self._begin_anew(self.log_start_offset)
            return
        self.recovery_point = self.log_end_offset if self.known.clean else min(recovery_point, self.log_end_offset)
        self.leader_epochs.truncate_from_end(self.log_end_offset)
        self.leader_epochs.truncate_from_start(self.log_start_offset)
        self._remove_stray_snapshots()

    def _segment(self, base_offset: int) -> Segment:
        size = self.files.size(os.path.join(self.folder, numbered(base_offset, LOG)))
        return Segment(self.folder, base_offset, size, created_ms=self.now_ms, jitter_ms=jitter_ms(self.config))

    def _begin_anew(self, offset: int) -> None:
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

    # After a clean stop

    def _load_clean(self) -> None:
        for segment in self.segments:
            if segment.base_offset not in self.content.indexes:
                log.warning("an index is missing and is made anew", file=segment.path(OFFSET_INDEX))
                self._scan(segment, 0, segment.base_offset, [])
        end = self.known.recovery_point
        active = self.segments[-1]
        # A clean stop leaves a snapshot at the end of the log. Without it, the checkpoint may be of another folder.
        trusted = end is not None and end >= active.base_offset and end == max(self.content.snapshots, default=0)
        if end is None or not trusted or (active.size == 0) != (end == active.base_offset):
            end = self._read_end(active)
        self.log_end_offset = end
        begin = self._load_snapshot(end)
        if begin < end:
            producer_replay.replay(self.files, self.segments, begin, end, self.producers)
        for slot in range(len(self.segments)):
            self._repair_aborted(slot, end)

    def _repair_aborted(self, slot: int, end: int) -> None:
        segments = self.segments
        if self.aborted.repair(slot, segments[slot + 1].base_offset if slot + 1 < len(segments) else end):
            self.rebuilt.append(segments[slot])

    def _read_end(self, segment: Segment) -> int:
        """Where the log ends, from the last batch itself."""
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
        return producer_replay.load_newest_snapshot(
            self.files, self.folder, self.content.snapshots, up_to, self.producers, begin
        )

    # After a crash

    def _recover(self, recovery_point: int) -> None:
        segments = self.segments
        first = max(slot for slot, segment in enumerate(segments) if slot == 0 or segment.base_offset <= recovery_point)
        for slot in range(first):
            # A segment that was rolled just before the crash may lack an index that its last sync was to bring.
            rolled_last = slot == first - 1 and segments[first].base_offset >= recovery_point
            if segments[slot].base_offset not in self.content.indexes or (
                rolled_last and not self._index_is_sound(segments[slot])
            ):
                log.info("an index is made anew", file=segments[slot].path(OFFSET_INDEX))
                self._scan(segments[slot], 0, segments[slot].base_offset, [])
            elif rolled_last:
                self.rebuilt.append(segments[slot])  # it is sound, but perhaps not on the disk yet
            self._repair_aborted(slot, segments[slot + 1].base_offset)
        position, checked_from, kept = self._known_part(segments[first], recovery_point)
        # A snapshot above the place where the check begins, but not above the recovery point, saves reading to there.
        self.remembered_up_to = self._load_snapshot(max(checked_from, recovery_point))
        producer_replay.replay(self.files, segments, self.remembered_up_to, checked_from, self.producers)
        aborted = self.aborted.kept(first, max(checked_from, self.remembered_up_to))

        end = segments[first].base_offset
        for slot in range(first, len(segments)):
            segment = segments[slot]
            problem = self._why_unusable(segment, end)
            if problem is not None:
                self._set_aside_from(segment, problem)
                break
            if slot > first:
                self._write_snapshot(segment.base_offset)
                position, checked_from = 0, segment.base_offset
                kept, aborted = [], self.aborted.kept(slot, segment.base_offset)
            end, sound = self._scan(segment, position, checked_from, kept, aborted)
            if not sound:
                break
        self.log_end_offset = end
        if end < self.remembered_up_to:
            # Even synced records are gone, so the snapshot knows of batches that are no more.
            begin = self._load_snapshot(end)
            producer_replay.replay(self.files, self.segments, begin, end, self.producers)
            self.segments[-1].drop_aborted(self.files, end)

    def _why_unusable(self, segment: Segment, end: int) -> str | None:
        """Why a segment cannot follow what ends at `end`, if it cannot."""
        if segment.base_offset == end:
            return None
        if segment.base_offset < end:
            return f"the log goes to {end} before it"
        if "compact" not in self.config.cleanup_policy and self.known.has_points:
            return f"the log ends at {end} before it"
        if not self.kept_gap:
            log.info("a gap in the offsets is taken for the cleaner's work", partition=self.topic_partition, offset=end)
        self.kept_gap = True
        return None

    def _set_aside_from(self, first: Segment, problem: str) -> None:
        """That segment and all after it, the last one first: where this ends halfway, what is left is a first part of
        the log, and the next start finds the same problem.
        """
        while self.segments and self.segments[-1].base_offset >= first.base_offset:
            set_segment_aside(self.files, self.segments[-1], problem)
            self.segments = self.segments[:-1]

    def _index_is_sound(self, segment: Segment) -> bool:
        """Of a segment that was rolled: nothing in it is then younger than the last entry of its time index."""
        index, times = OffsetIndex.load(self.files, segment.path(OFFSET_INDEX)), self._sound_times(segment)
        if not times or not index.is_sound(segment.size):
            return False
        youngest, relative = times[-1]
        fd = self.files.open(segment.path(LOG))
        try:
            scan = BatchScan(self.files, fd, index.lookup(relative), segment.size)
            return all(header.max_timestamp <= youngest for _, header, _ in scan) and scan.position == segment.size
        finally:
            self.files.close(fd)

    def _known_part(self, segment: Segment, recovery_point: int) -> tuple[int, int, list[tuple[int, int]]]:
        """Where to begin to check a segment: position, offset, and the index entries before it, which may be kept.

        The index helps to find the place only if its last entry below the recovery point names a valid batch, and only
        as far as the time index reaches: what that lacks is found by reading the batches.
        """
        try:
            index = OffsetIndex.load(self.files, segment.path(OFFSET_INDEX))
        except FileNotFoundError:
            return 0, segment.base_offset, []
        timed = [relative for _, relative in self._sound_times(segment)]
        index = index.kept_below(min(recovery_point - segment.base_offset, timed[-1] + 1 if timed else 0))
        if not len(index) or not index.is_sound(segment.size):
            return 0, segment.base_offset, []
        position, relative = index.positions[-1], index.offsets[-1]
        fd = self.files.open(segment.path(LOG))
        try:
            for _, header, _ in BatchScan(self.files, fd, position, segment.size, check=True):
                if header.last_offset == segment.base_offset + relative:
                    kept = list(zip(index.offsets[:-1], index.positions[:-1], strict=True))
                    return position, header.base_offset, kept
                break
        finally:
            self.files.close(fd)
        return 0, segment.base_offset, []

    def _scan(
        self,
        segment: Segment,
        position: int,
        checked_from: int,
        kept: list[tuple[int, int]],
        aborted: TransactionIndex | None = None,
    ) -> tuple[int, bool]:
        """Check a segment from `position` on, where the batch at `checked_from` begins, and make its indexes anew. With
        `aborted`, what is known of those so far, cut what is not valid; without, the segment was synced and stays as it
        is.

        The offset where its batches end, and whether all of it was valid.
        """
        files = self.files
        offsets, times = OffsetIndex(), TimeIndex()
        for relative, at in kept:
            offsets.append(relative, at)
        max_timestamp, offset_of_max = -1, segment.base_offset
        if position:
            max_timestamp, offset_of_max = self._known_times(segment, checked_from - segment.base_offset, times)
        last_entry = kept[-1][1] if kept else 0
        end = segment.base_offset
        fd = files.open(segment.path(LOG), write=True)
        try:
            scan = BatchScan(files, fd, position, segment.size, check=True)
            unreported = 0
            for at, header, batch in scan:
                if header.base_offset < end:
                    scan.problem, scan.position = "offsets go back", at
                    break
                end = header.next_offset
                if header.max_timestamp > max_timestamp:
                    max_timestamp, offset_of_max = header.max_timestamp, header.last_offset
                if at - last_entry > self.config.index_interval_bytes:
                    offsets.append(header.last_offset - segment.base_offset, at)
                    times.maybe_append(max_timestamp, offset_of_max - segment.base_offset)
                    last_entry = at
                if aborted is not None:
                    self._take_in(header, batch, aborted)
                unreported += header.size
                if self.progress is not None and unreported >= 16 << 20:
                    self.progress(unreported)
                    unreported = 0
            if self.progress is not None:
                self.progress(unreported)
            sound = scan.position == segment.size
            if not sound:
                self._cut_tail(segment, fd, scan, cut=aborted is not None)
        finally:
            files.close(fd)
        segment.max_timestamp, segment.offset_of_max_timestamp = max_timestamp, offset_of_max
        self._replace_indexes(segment, offsets, times)
        if aborted is not None:
            self.aborted.finish(segment, aborted)
        return end, sound

    def _take_in(self, header: BatchHeader, batch: memoryview, aborted: TransactionIndex) -> None:
        """A batch that was not known to be in the log."""
        if header.leader_epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(header.leader_epoch, header.base_offset)
        if header.base_offset >= self.remembered_up_to:
            decided = producer_replay.remember_batch(self.producers, header, batch)
            if decided is not None and (entry := decided.index_entry) is not None:
                aborted.append(entry)

    def _known_times(self, segment: Segment, first_checked: int, times: TimeIndex) -> tuple[int, int]:
        """Take over the time index up to where the check begins, which is at a batch of the offset index: it got the
        largest timestamp before that batch when the batch was indexed.
        """
        max_timestamp, offset_of_max = -1, segment.base_offset
        for timestamp, relative in self._sound_times(segment):
            if relative < first_checked:
                max_timestamp, offset_of_max = timestamp, segment.base_offset + relative
                times.maybe_append(timestamp, relative)
        return max_timestamp, offset_of_max

    def _sound_times(self, segment: Segment) -> list[tuple[int, int]]:
        """The entries of a time index up to one that cannot follow those before it."""
        sound: list[tuple[int, int]] = []
        try:
            entries = TimeIndex().entries(self.files, segment.path(TIME_INDEX))
        except FileNotFoundError:
            return sound
        for timestamp, relative in entries:
            if sound and (timestamp <= sound[-1][0] or relative <= sound[-1][1]):
                break
            sound.append((timestamp, relative))
        return sound

    def _cut_tail(self, segment: Segment, fd: int, scan: BatchScan, *, cut: bool) -> None:
        log.warning(
            "cut what is no valid batch off the end of a segment" if cut else "a segment holds what is no valid batch",
            file=segment.path(LOG),
            position=scan.position,
            bytes=segment.size - scan.position,
            problem=scan.problem,
        )
        if cut:
            later = [one for one in self.segments if one.base_offset > segment.base_offset]
            if later or not self.known.has_points:
                keep_tail(self.files, segment, fd, scan.position)
            if later:
                # Before the cut: afterwards a start would find a sound segment and a gap, which it may take for the
                # cleaner's work.
                self._set_aside_from(later[0], f"the segment before it, {segment.base_offset}, is damaged")
            self.files.truncate(fd, scan.position)
            self.files.fsync(fd)
            segment.size = scan.position

    def _replace_indexes(self, segment: Segment, offsets: OffsetIndex, times: TimeIndex) -> None:
        create_index_file(self.files, segment.path(OFFSET_INDEX))
        create_index_file(self.files, segment.path(TIME_INDEX))
        times.maybe_append(segment.max_timestamp, segment.offset_of_max_timestamp - segment.base_offset)
        segment.time_index = times
        try:
            offsets.write(self.files, segment.path(OFFSET_INDEX), everything=True)
            times.write(self.files, segment.path(TIME_INDEX), everything=True)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            # As with appends to a full disk: the entries stay in memory, and are written when the segment is closed.
            segment.index = offsets
            log.warning("no space is left for an index", file=segment.path(OFFSET_INDEX))
        self.rebuilt.append(segment)

    def _remove_snapshots_above(self, synced: int) -> None:
        """They were taken before the crash, and what came before them may have gone with it, even where the log goes on
        behind them. The recovery point must not pass them: from then on they would be believed.
        """
        for offset in [offset for offset in self.content.snapshots if offset > synced]:
            self._remove_snapshot(offset)

    def _write_snapshot(self, offset: int) -> None:
        """The state of the producers where a segment begins: when those before it are deleted, nothing else tells of
        theirs. On a full disk there is none.
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
        """A snapshot belongs to a segment's base offset or to the end of the log; others are of no use."""
        wanted = {segment.base_offset for segment in self.segments} | {self.log_end_offset}
        for offset in [offset for offset in self.content.snapshots if offset not in wanted]:
            self._remove_snapshot(offset)

    def _remove_snapshot(self, offset: int) -> None:
        unlink_if_there(self.files, os.path.join(self.folder, numbered(offset, SNAPSHOT)))
        self.content.snapshots.discard(offset)
