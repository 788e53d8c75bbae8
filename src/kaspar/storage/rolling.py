"""When the active segment is rolled: by its size, its indexes, and the age of its records."""

import random

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.config import LogConfig
from kaspar.config.kinds import MAX_LONG
from kaspar.records import HEADER_SIZE, read_header
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.file_names import LOG
from kaspar.storage.segments.segment import NOT_LOADED, Segment


def max_segment_ms(config: LogConfig) -> int:
    """The largest age of a segment: one of a compacted topic is rolled early enough for `max.compaction.lag.ms`."""
    if "compact" in config.cleanup_policy and config.max_compaction_lag_ms > 0:
        return min(config.max_compaction_lag_ms, config.segment_ms)
    return config.segment_ms


def jitter_ms(config: LogConfig) -> int:
    """A random part of `segment.jitter.ms`, so that partitions that were created together do not all roll together."""
    most = min(config.segment_jitter_ms, max_segment_ms(config))
    return random.randrange(most) if most > 0 else 0


class RollPolicy:
    """Owner only. All segments passed to it are open."""

    __slots__ = ("_config", "_directory", "_max_segment_ms")

    def __init__(self, directory: LogDirectory, config: LogConfig) -> None:
        self._directory = directory
        self._config = config
        self._max_segment_ms = max_segment_ms(config)

    def must_roll(self, segment: Segment, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether a batch needs a new segment."""
        if segment.size == 0:
            # The base offset of an empty segment may be too low for the batches that a follower fetches.
            return last_offset > segment.largest_offset
        return (
            self._age_ms(segment, max_timestamp, now_ms) > self._max_segment_ms - segment.jitter_ms
            or segment.size + size > self._config.segment_bytes
            or last_offset > segment.largest_offset
            or segment.index_is_full(self._config.segment_index_bytes)
        )

    def _age_ms(self, segment: Segment, max_timestamp: int, now_ms: int) -> int:
        """The age of a segment by the timestamps of its records, or by the clock if its first batch has none."""
        if segment.rolling_timestamp == NOT_LOADED:
            self._load_rolling_timestamp(segment)
        if segment.rolling_timestamp >= 0:
            return max_timestamp - segment.rolling_timestamp
        return now_ms - segment.created_ms

    def _load_rolling_timestamp(self, segment: Segment) -> None:
        first = read_header(self._directory.files.pread(segment.fd, HEADER_SIZE, 0), 0)
        self.first_batch_at(segment, first.max_timestamp)

    def first_batch_at(self, segment: Segment, max_timestamp: int) -> None:
        segment.first_batch_at(max_timestamp, self._max_segment_ms)

    def update(self, segment: Segment) -> None:
        """Apply the settings to a segment that was filled under other settings."""
        segment.segment_ms_changed(self._max_segment_ms)

    @property
    def compacts_in_time(self) -> bool:
        """Whether a segment must be rolled for `max.compaction.lag.ms`, even without appends."""
        return "compact" in self._config.cleanup_policy and self._config.max_compaction_lag_ms < MAX_LONG

    def is_overdue(self, segment: Segment, now_ms: int) -> bool:
        """Whether a segment is older than `max.compaction.lag.ms`.

        Its age counts from its first record, but not from before the segment was created: otherwise old records that
        arrive one by one would each fill a segment, and start a cleaning each time.
        """
        if segment.rolling_timestamp == NOT_LOADED:
            self._load_found(segment)
        age_ms = now_ms - max(segment.rolling_timestamp, segment.created_ms)
        return age_ms > self._config.max_compaction_lag_ms

    def _load_found(self, segment: Segment) -> None:
        """Load the age of a segment that existed at startup: it is at least as old as the last write to it."""
        path = segment.path(LOG)
        try:
            self._load_rolling_timestamp(segment)
            segment.created_ms = min(segment.created_ms, self._directory.files.modified_ms(path))
        except MalformedBytes as problem:
            raise Refused(
                ErrorCode.CORRUPT_MESSAGE, f"{path} does not begin with a record batch: {problem}"
            ) from problem
        except OSError as error:
            raise self._directory.fail(error, f"reading {path}") from error
