"""Checks the batches of one segment after a crash, and rebuilds its two sparse indexes.

Synced data need not be read again: `start_of_check` finds where to begin, as far as the indexes can be trusted.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kaspar.base.log import get_log
from kaspar.records import BatchHeader
from kaspar.storage.disk.file_names import LOG, OFFSET_INDEX, TIME_INDEX
from kaspar.storage.disk.files import DISK_FULL, Files
from kaspar.storage.segments.batch_scan import BatchScan
from kaspar.storage.segments.indexes import OffsetIndex, TimeIndex, create_index_file
from kaspar.storage.segments.segment import Segment

log = get_log(__name__)

Progress = Callable[[int], None]
"""Called with the number of bytes that were checked since the last call."""

_REPORT_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class CheckStart:
    """Where the check of a segment begins."""

    position: int
    offset: int
    """The base offset of the batch at `position`."""
    entries: tuple[tuple[int, int], ...] = ()
    """The entries of the offset index before `position`, which are kept."""

    @staticmethod
    def of(segment: Segment) -> "CheckStart":
        return CheckStart(0, segment.base_offset)


@dataclass(frozen=True, slots=True)
class CheckedSegment:
    end_offset: int
    end_position: int
    """The position at which the valid batches end."""
    problem: str | None
    """What is wrong at `end_position`, unless it is the end of the segment."""
    offsets: OffsetIndex
    times: TimeIndex
    max_timestamp: int
    offset_of_max_timestamp: int


class SegmentChecker:
    def __init__(self, files: Files, index_interval_bytes: int, progress: Progress | None) -> None:
        self._files = files
        self._index_interval_bytes = index_interval_bytes
        self._progress = progress

    def start_of_check(self, segment: Segment, recovery_point: int) -> CheckStart:
        """Find where to begin the check of a segment that is synced below the recovery point.

        The index is used only if its last entry below the recovery point refers to a valid batch, and only as far as
        the time index reaches: timestamps that are missing there are found by reading the batches.
        """
        try:
            index = OffsetIndex.load(self._files, segment.path(OFFSET_INDEX))
        except FileNotFoundError:
            return CheckStart.of(segment)
        timed = [relative for _, relative in self._sound_times(segment)]
        index = index.kept_below(min(recovery_point - segment.base_offset, timed[-1] + 1 if timed else 0))
        if not len(index) or not index.is_sound(segment.size):
            return CheckStart.of(segment)
        position, relative = index.positions[-1], index.offsets[-1]
        fd = self._files.open(segment.path(LOG))
        try:
            for _, header, _ in BatchScan(self._files, fd, position, segment.size, check=True):
                if header.last_offset == segment.base_offset + relative:
                    kept = tuple(zip(index.offsets[:-1], index.positions[:-1], strict=True))
                    return CheckStart(position, header.base_offset, kept)
                break
        finally:
            self._files.close(fd)
        return CheckStart.of(segment)

    def run(
        self, segment: Segment, start: CheckStart, on_batch: Callable[[BatchHeader, memoryview], None]
    ) -> CheckedSegment:
        """Check every batch from `start` on, up to the first that is not whole and valid."""
        offsets, times = OffsetIndex(), TimeIndex()
        for relative, at in start.entries:
            offsets.append(relative, at)
        max_timestamp, offset_of_max = -1, segment.base_offset
        if start.position:
            max_timestamp, offset_of_max = self._known_times(segment, start.offset - segment.base_offset, times)
        last_entry = start.entries[-1][1] if start.entries else 0
        end = segment.base_offset
        unreported = 0
        fd = self._files.open(segment.path(LOG))
        try:
            scan = BatchScan(self._files, fd, start.position, segment.size, check=True)
            for at, header, batch in scan:
                if header.base_offset < end:
                    scan.problem, scan.position = "offsets go back", at
                    break
                end = header.next_offset
                if header.max_timestamp > max_timestamp:
                    max_timestamp, offset_of_max = header.max_timestamp, header.last_offset
                if at - last_entry > self._index_interval_bytes:
                    offsets.append(header.last_offset - segment.base_offset, at)
                    times.maybe_append(max_timestamp, offset_of_max - segment.base_offset)
                    last_entry = at
                on_batch(header, batch)
                unreported += header.size
                if unreported >= _REPORT_BYTES:
                    self._report(unreported)
                    unreported = 0
            self._report(unreported)
        finally:
            self._files.close(fd)
        problem = None if scan.position == segment.size else scan.problem or "the file is longer than its batches"
        return CheckedSegment(end, scan.position, problem, offsets, times, max_timestamp, offset_of_max)

    def _report(self, checked_bytes: int) -> None:
        if self._progress is not None:
            self._progress(checked_bytes)

    def index_is_sound(self, segment: Segment) -> bool:
        """Check the indexes of a rolled segment: no record may be younger than the last entry of the time index."""
        index, times = OffsetIndex.load(self._files, segment.path(OFFSET_INDEX)), self._sound_times(segment)
        if not times or not index.is_sound(segment.size):
            return False
        youngest, relative = times[-1]
        fd = self._files.open(segment.path(LOG))
        try:
            scan = BatchScan(self._files, fd, index.lookup(relative), segment.size)
            return all(header.max_timestamp <= youngest for _, header, _ in scan) and scan.position == segment.size
        finally:
            self._files.close(fd)

    def _known_times(self, segment: Segment, first_checked: int, times: TimeIndex) -> tuple[int, int]:
        """Copy the time index up to where the check begins, and return the largest timestamp so far with its offset.
        The check begins at a batch of the offset index, with whose entry one for the largest timestamp so far was
        added.
        """
        max_timestamp, offset_of_max = -1, segment.base_offset
        for timestamp, relative in self._sound_times(segment):
            if relative < first_checked:
                max_timestamp, offset_of_max = timestamp, segment.base_offset + relative
                times.maybe_append(timestamp, relative)
        return max_timestamp, offset_of_max

    def _sound_times(self, segment: Segment) -> list[tuple[int, int]]:
        """The entries of a time index before the first that is out of order."""
        sound: list[tuple[int, int]] = []
        try:
            entries = TimeIndex().entries(self._files, segment.path(TIME_INDEX))
        except FileNotFoundError:
            return sound
        for timestamp, relative in entries:
            if sound and (timestamp <= sound[-1][0] or relative <= sound[-1][1]):
                break
            sound.append((timestamp, relative))
        return sound

    def replace_indexes(self, segment: Segment, checked: CheckedSegment) -> None:
        """Write the rebuilt indexes. On a full disk the entries stay in memory until the segment is closed."""
        files, times = self._files, checked.times
        segment.max_timestamp = checked.max_timestamp
        segment.offset_of_max_timestamp = checked.offset_of_max_timestamp
        create_index_file(files, segment.path(OFFSET_INDEX))
        create_index_file(files, segment.path(TIME_INDEX))
        times.maybe_append(segment.max_timestamp, segment.offset_of_max_timestamp - segment.base_offset)
        segment.time_index = times
        try:
            checked.offsets.write(files, segment.path(OFFSET_INDEX), everything=True)
            times.write(files, segment.path(TIME_INDEX), everything=True)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            segment.index = checked.offsets
            log.warning("no space is left for an index", file=segment.path(OFFSET_INDEX))
