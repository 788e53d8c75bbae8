"""How much of a log there is to clean: what the dirty ratio and both compaction lags say of it, as in Kafka.

A log is clean up to its first dirty offset: every key occurs once there. From there on it may be cleaned up to the
first uncleanable offset, which is the least of

- the last stable offset: what is behind it may yet be aborted;
- the base offset of the active segment;
- the base offset of the first segment with a record that is younger than `min.compaction.lag.ms`.

It must be cleaned, whatever its ratio is, if a segment of the dirty part was begun `max.compaction.lag.ms` ago.
Reads time indexes and first batches: for a thread.
"""

from dataclasses import dataclass

from kaspar.base.errors import MalformedBytes
from kaspar.base.log import get_log
from kaspar.config.kinds import MAX_LONG
from kaspar.records import HEADER_SIZE, read_header
from kaspar.storage.cleaning.errors import CleaningStopped, DamagedSegment
from kaspar.storage.file_names import LOG
from kaspar.storage.log import Log
from kaspar.storage.log_reader import Segments
from kaspar.storage.segment import NOT_LOADED, Segment

log = get_log(__name__)


@dataclass(frozen=True, slots=True)
class Dirt:
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    """Those that may be cleaned now."""
    compaction_delay_ms: int
    """For how long the oldest dirty segment has been waiting beyond `max.compaction.lag.ms`."""
    was_reset: bool
    """The offset that was written down can no longer be right."""
    truncations: int
    """How often the log had been truncated by then. What is said here does not hold after the next time."""

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def must_clean(self) -> bool:
        return self.compaction_delay_ms > 0 and self.dirty_bytes > 0

    def is_due(self, min_cleanable_dirty_ratio: float) -> bool:
        return self.must_clean or self.ratio > min_cleanable_dirty_ratio


def dirt_of(owner: Log, first_dirty_offset: int | None, last_stable_offset: int, now_ms: int) -> Dirt:
    """`first_dirty_offset` is what was written down after the log was cleaned last; None if it never was.

    Raises DamagedSegment, CleaningStopped (the log has changed meanwhile) or OSError.
    """
    truncations = owner.truncations
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
    return Dirt(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=first_uncleanable,
        clean_bytes=sum(one.size for one in segments.all if one.base_offset < first_dirty),
        dirty_bytes=_size_between(segments, first_dirty, first_uncleanable),
        compaction_delay_ms=_compaction_delay_ms(owner, dirty, now_ms),
        was_reset=was_reset,
        truncations=truncations,
    )


def _first_dirty(owner: Log, noted: int | None) -> tuple[int, bool]:
    start = owner.log_start_offset
    if noted is None:
        return start, False
    if noted < start:
        if "delete" not in owner.config.cleanup_policy:
            log.warning(
                "the log begins above what is cleaned: all of it counts as dirty",
                partition=owner.topic_partition,
                first_dirty_offset=noted,
                log_start_offset=start,
            )
        return start, True
    if noted > owner.log_end_offset:
        log.warning(
            "the log ends below what is cleaned: all of it counts as dirty",
            partition=owner.topic_partition,
            first_dirty_offset=noted,
            log_end_offset=owner.log_end_offset,
        )
        return start, True
    return noted, False


def _size_between(segments: Segments, begin: int, end: int) -> int:
    """The bytes of whole segments from the one that holds `begin` up to the one that holds `end`, without that."""
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
        truncations = owner.truncations
        handle = readers.acquire(segment, segment.path(LOG))
        try:
            head = owner.directory.files.pread(handle.fd, HEADER_SIZE, 0)
        finally:
            readers.release(handle)
        try:
            segment.rolling_timestamp = read_header(head, 0).max_timestamp
        except MalformedBytes as problem:
            if owner.truncations != truncations or not owner.has_segment(segment):
                raise CleaningStopped(f"{owner.topic_partition} has changed meanwhile") from problem
            raise DamagedSegment(segment.path(LOG), 0, str(problem)) from problem
    return segment.rolling_timestamp
