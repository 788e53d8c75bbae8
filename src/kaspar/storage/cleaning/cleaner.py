"""Cleans one log: finds the last offset of each key of its dirty part, and rewrites its segments without older records.

One call is one pass, as in Kafka. The map of keys has a bounded size. If the dirty part has more keys, the pass cleans
as much as fits in the map, and the rest stays dirty for the next pass. Segments that have become small are merged, up
to the size of one segment. Each group of segments is replaced on its own: a pass that is stopped between two groups
keeps the finished groups, and one that is stopped within a group leaves that group unchanged.

Used by one thread at a time. It reads and writes files; steps that only the owner of the log may do are run by the
owner.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kaspar.base.errors import MalformedBytes
from kaspar.base.log import get_log
from kaspar.config import LogConfig
from kaspar.records.compaction import KeyMap
from kaspar.storage.cleaning import key_scan
from kaspar.storage.cleaning.errors import CleaningStopped, DamagedSegment
from kaspar.storage.cleaning.offsets_to_clean import OffsetsToClean
from kaspar.storage.cleaning.rewriting import rewrite
from kaspar.storage.cleaning.throttle import Pace, Spending
from kaspar.storage.cleaning.transactions import CleanedTransactions
from kaspar.storage.disk.file_names import CLEANED, LOG, OFFSET_INDEX, TIME_INDEX
from kaspar.storage.disk.files import unlink_if_there
from kaspar.storage.log import Log
from kaspar.storage.segments.segment import Segment
from kaspar.storage.swaps import Replacement

log = get_log(__name__)

LARGEST_RELATIVE_OFFSET = 0x7FFF_FFFF
MOST_SEGMENTS_IN_A_GROUP = 32
"""The owner renames the files of a group in one step, which takes a sixth of a millisecond for each segment on a disk
and blocks the event loop. The next pass merges segments that are still small."""

OnOwner = Callable[[Log, Callable[[], None]], None]
"""Runs a call in the thread that owns the log, waits for it, and raises what it raised."""


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """The settings of one thread: its share of the memory that is configured for all."""

    dedupe_buffer_size: int
    io_buffer_size: int
    io_buffer_load_factor: float


@dataclass(slots=True)
class CleaningStatistics:
    map_records_read: int = 0
    map_bytes_read: int = 0
    records_read: int = 0
    bytes_read: int = 0
    records_written: int = 0
    bytes_written: int = 0
    records_without_key: int = 0
    """Records from before the topic was compacted, since compacted topics refuse them. They are removed."""
    segments_before: int = 0
    segments_after: int = 0
    buffer_utilization: float = 0.0
    seconds: float = 0.0

    @property
    def records_removed(self) -> int:
        return self.records_read - self.records_written


@dataclass(frozen=True, slots=True)
class Cleaned:
    next_dirty_offset: int
    """The log is clean up to here."""
    statistics: CleaningStatistics = field(default_factory=CleaningStatistics)


class Cleaner:
    def __init__(self, settings: CleanerSettings, throttle: Spending) -> None:
        self._io_buffer_size = settings.io_buffer_size
        self._throttle = throttle
        self._keys = KeyMap(settings.dedupe_buffer_size, settings.io_buffer_load_factor)

    def clean(
        self,
        owner: Log,
        to_clean: OffsetsToClean,
        now_ms: int,
        *,
        on_owner: OnOwner,
        stopped: Callable[[], bool] = lambda: False,
        wall_ms: int | None = None,
    ) -> Cleaned:
        """Do one pass over a log. `wall_ms`: the wall clock's time, if `now_ms` does not believe it (see `rewrite`).

        Raises CleaningStopped (also if the log was deleted or truncated meanwhile), Uncleanable, Refused (the disk is
        full) or StorageFailure. The log is intact in any case.
        """
        try:
            return _Pass(self._keys, Pace(self._io_buffer_size, self._throttle, stopped), owner, on_owner).run(
                to_clean, now_ms, wall_ms
            )
        except OSError as error:
            if owner.deleted or (isinstance(error, FileNotFoundError) and not _is_missing(owner, error)):
                raise CleaningStopped(f"files of {owner.topic_partition} were deleted in the meantime") from error
            raise owner.directory.fail(error, f"cleaning {owner.topic_partition}") from error
        except (DamagedSegment, MalformedBytes) as damage:
            if owner.local.truncations != to_clean.truncations:  # the bytes being read were cut off
                raise CleaningStopped(f"{owner.topic_partition} was truncated in the meantime") from damage
            raise


def _is_missing(owner: Log, error: FileNotFoundError) -> bool:
    """Whether a file that should exist is missing. Retention may delete files that were about to be read."""
    return any(error.filename == one.path(LOG) and owner.local.has_segment(one) for one in owner.segments.all)


class _Pass:
    def __init__(self, keys: KeyMap, pace: Pace, owner: Log, on_owner: OnOwner) -> None:
        self._keys = keys
        self._pace = pace
        self._owner = owner
        self._on_owner = on_owner
        self._truncations = owner.local.truncations
        self._segments = owner.segments
        self._statistics = CleaningStatistics()

    def run(self, to_clean: OffsetsToClean, now_ms: int, wall_ms: int | None) -> Cleaned:
        started = time.monotonic()
        owner, keys, statistics = self._owner, self._keys, self._statistics
        self._remove_leftovers()
        scan = key_scan.fill(keys, owner, to_clean.first_dirty_offset, to_clean.first_uncleanable_offset, self._pace)
        statistics.map_records_read, statistics.map_bytes_read = scan.records_read, scan.bytes_read
        statistics.buffer_utilization = len(keys) / keys.capacity
        next_dirty_offset = keys.latest_offset + 1 if keys.is_full else to_clean.first_uncleanable_offset
        segments = [one for one in self._segments.all[:-1] if one.base_offset < next_dirty_offset]
        transactions = CleanedTransactions()
        for group in self._groups(segments, to_clean.first_uncleanable_offset):
            self._pace.check()
            self._clean_group(group, transactions, now_ms, wall_ms)
        statistics.seconds = time.monotonic() - started
        return Cleaned(next_dirty_offset, statistics)

    def _remove_leftovers(self) -> None:
        """Remove the files of a failed cleaning: while `.cleaned` files exist, a start would not finish a later
        swap.
        """
        folder, files = self._owner.folder, self._owner.directory.files
        for name in files.listdir(folder):
            if name.endswith(CLEANED):
                unlink_if_there(files, os.path.join(folder, name))

    def _groups(self, segments: list[Segment], first_uncleanable_offset: int) -> list[tuple[Segment, ...]]:
        sizes = [
            SegmentSize(one.base_offset, one.size, self._size(one, OFFSET_INDEX), self._size(one, TIME_INDEX))
            for one in segments
        ]
        counts = group_sizes(sizes, self._owner.config, first_uncleanable_offset)
        groups = []
        for count in counts:
            groups.append(tuple(segments[:count]))
            segments = segments[count:]
        return groups

    def _size(self, segment: Segment, suffix: str) -> int:
        try:
            return self._owner.directory.files.size(segment.path(suffix))
        except FileNotFoundError:
            return 0  # the old segment works without it, and the new one gets its own

    def _clean_group(
        self, group: tuple[Segment, ...], transactions: CleanedTransactions, now_ms: int, wall_ms: int | None
    ) -> None:
        owner, statistics = self._owner, self._statistics
        result = rewrite(owner, group, self._keys, transactions, self._pace, now_ms=now_ms, wall_ms=wall_ms)
        statistics.records_read += result.records_read
        statistics.bytes_read += result.bytes_read
        statistics.records_written += result.records_kept
        statistics.bytes_written += result.bytes_kept
        statistics.records_without_key += result.records_without_key
        replacement = Replacement(group, result.segment, self._truncations)
        try:
            self._keep_modification_time(replacement)
            self._on_owner(owner, lambda: owner.swaps.begin(replacement))
        except BaseException:
            owner.swaps.discard(result.segment)
            raise
        # From here on a start would finish the swap.
        owner.swaps.sync_names()
        self._on_owner(owner, lambda: owner.swaps.complete(replacement))
        owner.swaps.sync_names()
        statistics.segments_before += len(group)
        statistics.segments_after += 1

    def _keep_modification_time(self, replacement: Replacement) -> None:
        """Copy the modification time of the last old segment: retention uses it if records have no timestamps."""
        files = self._owner.directory.files
        files.set_modified_ms(replacement.new.path(LOG) + CLEANED, files.modified_ms(replacement.old[-1].path(LOG)))


@dataclass(frozen=True, slots=True)
class SegmentSize:
    base_offset: int
    size: int
    index_size: int
    time_index_size: int


def group_sizes(sizes: list[SegmentSize], config: LogConfig, first_uncleanable_offset: int) -> list[int]:
    """How many consecutive segments form each group (Kafka's groupSegmentsBySize): at most as many as fit in one
    segment if nothing is removed, considering its size, its indexes, and the 31 bits that an index has for an offset.
    """
    ends = [*(one.base_offset for one in sizes[1:]), first_uncleanable_offset]
    counts: list[int] = []
    base_offset = size = index_size = time_index_size = 0
    for one, end in zip(sizes, ends, strict=False):
        if (
            counts
            and counts[-1] < MOST_SEGMENTS_IN_A_GROUP
            and size + one.size <= config.segment_bytes
            and index_size + one.index_size <= config.segment_index_bytes
            and time_index_size + one.time_index_size <= config.segment_index_bytes
            # An empty segment adds no offset.
            and (one.size == 0 or end - 1 - base_offset <= LARGEST_RELATIVE_OFFSET)
        ):
            counts[-1] += 1
            size += one.size
            index_size += one.index_size
            time_index_size += one.time_index_size
        else:
            counts.append(1)
            base_offset, size = one.base_offset, one.size
            index_size, time_index_size = one.index_size, one.time_index_size
    return counts
