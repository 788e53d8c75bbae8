"""Which part of a log can be cleaned, and how urgently, as Kafka's LogCleanerManager.cleanableOffsets decides.

A log is clean up to its first dirty offset: every key occurs once below it. From there on it may be cleaned up to the
first uncleanable offset, which is the least of

- the last stable offset: records above it may yet be aborted;
- the base offset of the active segment;
- the base offset of the first segment with a record that is younger than `min.compaction.lag.ms`.

It must be cleaned, whatever its dirty ratio, if a segment of the dirty part was begun `max.compaction.lag.ms` ago. This
reads time indexes and first batches, so it runs in a thread.
"""

from dataclasses import dataclass

from kaspar.base.errors import MalformedBytes
from kaspar.base.log import get_log
from kaspar.config.kinds import MAX_LONG
from kaspar.records import HEADER_SIZE, read_header
from kaspar.storage.cleaning.errors import CleaningStopped, DamagedSegment
from kaspar.storage.disk.file_names import LOG
from kaspar.storage.log import Log
from kaspar.storage.segments.segment import NOT_LOADED, Segment
from kaspar.storage.segments.segment_list import Segments

log = get_log(__name__)


@dataclass(frozen=True, slots=True)
class OffsetsToClean:
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    """The size of the segments that may be cleaned now."""
    compaction_delay_ms: int
    """How long the oldest dirty segment has waited beyond `max.compaction.lag.ms`."""
    was_reset: bool
    """Whether the checkpointed offset is outside the log and must be replaced."""
    truncations: int
    """How often the log had been truncated at that time. The next truncation invalidates all of this."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def must_clean(self) -> bool:
        return self.compaction_delay_ms > 0 and self.dirty_bytes > 0

    def is_due(self, min_cleanable_dirty_ratio: float) -> bool:
        return self.must_clean or self.dirty_ratio > min_cleanable_dirty_ratio


def offsets_to_clean(
    owner: Log, first_dirty_offset: int | None, last_stable_offset: int, now_ms: int
) -> OffsetsToClean:
    """Compute the offsets. `first_dirty_offset` is the checkpointed one; None if the log was never cleaned.

    Raises DamagedSegment, CleaningStopped (the log has changed in the meantime) or OSError.
    """
    truncations = owner.local.truncations
    first_dirty, was_reset = _first_dirty(owner, first_dirty_offset)
    segments = owner.segments
    slots = range(segments.slot_of(first_dirty), len(segments.all) - 1)
    dirty = [segments.all[slot] for slot in slots]
    bounds = [last_stable_offset, segments.base_offsets[-1]]
    min_lag_ms = owner.config.min_compaction_lag_ms
    if min_lag_ms > 0:
        files = owner.directory.files
        young = (one.base_offset for one in dirty if one.largest_timestamp(files) > now_ms - min_lag_ms)
        bounds += [next(young, MAX_LONG)]
    # Only whole segments are cleaned.
    first_uncleanable = max(first_dirty, segments.base_offsets[segments.slot_of(min(bounds))])
    return OffsetsToClean(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=first_uncleanable,
        clean_bytes=sum(one.size for one in segments.all if one.base_offset < first_dirty),
        dirty_bytes=_size_between(segments, first_dirty, first_uncleanable),
        compaction_delay_ms=_compaction_delay_ms(owner, dirty, now_ms),
        was_reset=was_reset,
        truncations=truncations,
    )


def _first_dirty(owner: Log, checkpointed: int | None) -> tuple[int, bool]:
    start = owner.log_start_offset
    if checkpointed is None:
        return start, False
    if checkpointed < start:
        if "delete" not in owner.config.cleanup_policy:
            log.warning(
                "the log starts above its first dirty offset: all of it counts as dirty",
                partition=owner.topic_partition,
                first_dirty_offset=checkpointed,
                log_start_offset=start,
            )
        return start, True
    if checkpointed > owner.log_end_offset:
        log.warning(
            "the log ends below its first dirty offset: all of it counts as dirty",
            partition=owner.topic_partition,
            first_dirty_offset=checkpointed,
            log_end_offset=owner.log_end_offset,
        )
        return start, True
    return checkpointed, False


def _size_between(segments: Segments, begin: int, end: int) -> int:
    """The size of the segments from the one that contains `begin` up to, not including, the one that contains `end`."""
    last = segments.slot_of(end)
    return sum(segment.size for segment in segments.all[min(segments.slot_of(begin), last) : last])


def _compaction_delay_ms(owner: Log, dirty: list[Segment], now_ms: int) -> int:
    max_lag_ms = owner.config.max_compaction_lag_ms
    if max_lag_ms >= MAX_LONG:
        return 0
    begun = [at_ms for segment in dirty if (at_ms := _first_timestamp(owner, segment)) > 0]
    return max(0, now_ms - max_lag_ms - min(begun)) if begun else 0


def _first_timestamp(owner: Log, segment: Segment) -> int:
    """The largest timestamp of the first batch of a segment that is not the active one."""
    if segment.rolling_timestamp == NOT_LOADED and segment.size:
        readers = owner.directory.readers
        truncations = owner.local.truncations
        handle = readers.acquire(segment, segment.path(LOG))
        try:
            head = owner.directory.files.pread(handle.fd, HEADER_SIZE, 0)
        finally:
            readers.release(handle)
        try:
            segment.rolling_timestamp = read_header(head, 0).max_timestamp
        except MalformedBytes as problem:
            if owner.local.truncations != truncations or not owner.local.has_segment(segment):
                raise CleaningStopped(f"{owner.topic_partition} changed in the meantime") from problem
            raise DamagedSegment(segment.path(LOG), 0, str(problem)) from problem
    return segment.rolling_timestamp
