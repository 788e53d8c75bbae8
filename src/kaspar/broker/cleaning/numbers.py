"""The log cleaner as the metrics page sees it. Read by another thread, so everything is copied in one step."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kaspar.broker.cleaning.log_cleaner import CleanerTotals, Cleaning
from kaspar.storage import Log, LogManager

if TYPE_CHECKING:
    from kaspar.storage.cleaning.manager import LogCleanerManager


@dataclass(frozen=True, slots=True)
class Uncleanable:
    """The logs of one log directory that cannot be cleaned."""

    path: str
    partition_count: int = 0
    dirty_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CleanerNumbers:
    """Implements `metrics.view.CleanerView`. All zero until the cleaner is needed."""

    recopy_percent: int = 0
    max_buffer_utilization_percent: int = 0
    max_clean_time_secs: int = 0
    max_compaction_delay_secs: int = 0
    dead_thread_count: int = 0
    max_dirty_percent: int = 0
    time_since_last_run_ms: int = 0
    uncleanable: tuple[Uncleanable, ...] = ()
    totals: CleanerTotals = field(default_factory=CleanerTotals)

    @classmethod
    def of(cls, cleaning: Cleaning, logs: LogManager) -> "CleanerNumbers":
        paths, manager = [directory.path for directory in logs.directories], cleaning.manager
        if manager is None:
            return cls(uncleanable=tuple(map(Uncleanable, paths)))
        threads = list(cleaning.cleaner_threads)
        last = [thread.last for thread in threads if thread.last is not None]
        bytes_read = sum(each.bytes_read for each in last)
        bytes_written = sum(each.bytes_written for each in last)
        return cls(
            recopy_percent=100 * bytes_written // max(1, bytes_read),
            max_buffer_utilization_percent=int(100 * max((each.buffer_utilization for each in last), default=0.0)),
            max_clean_time_secs=int(max((each.seconds for each in last), default=0.0)),
            max_compaction_delay_secs=manager.max_compaction_delay_ms // 1000,
            dead_thread_count=sum(thread.is_dead for thread in threads),
            max_dirty_percent=int(100 * manager.max_dirty_ratio),
            time_since_last_run_ms=max(0, cleaning.now_ms() - manager.last_run_ms) if manager.last_run_ms else 0,
            uncleanable=tuple(_uncleanable(path, manager) for path in paths),
            totals=cleaning.totals,
        )


def _uncleanable(path: str, manager: "LogCleanerManager") -> Uncleanable:
    logs = manager.uncleanable().get(path, [])
    return Uncleanable(path, len(logs), sum(_dirty_bytes(one, manager.first_dirty_offset(one)) for one in logs))


def _dirty_bytes(one: Log, first_dirty_offset: int) -> int:
    """The size of the segments that a cleaning would read. The active segment is never cleaned."""
    segments = one.segments
    ends = segments.base_offsets[1:]
    return sum(segment.size for segment, end in zip(segments.all, ends, strict=False) if end > first_dirty_offset)
