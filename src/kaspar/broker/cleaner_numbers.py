"""The log cleaner as the metrics page sees it. Called from another thread: everything is a copy made in one step."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kaspar.broker.cleaning import CleanerTotals
from kaspar.storage import Log

if TYPE_CHECKING:
    from kaspar.broker.server import Broker
    from kaspar.storage.cleaning.book import CleanerBook


@dataclass(frozen=True, slots=True)
class Uncleanable:
    """What cannot be cleaned of one log directory."""

    path: str
    partition_count: int = 0
    dirty_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CleanerNumbers:
    """`metrics.view.CleanerView`. All zero while nobody has needed the cleaner."""

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
    def of(cls, broker: "Broker") -> "CleanerNumbers":
        cleaning, paths = broker.cleaning, [directory.path for directory in broker.logs.directories]
        book = cleaning.book
        if book is None:
            return cls(uncleanable=tuple(map(Uncleanable, paths)))
        threads = list(cleaning.threads)
        last = [thread.last for thread in threads if thread.last is not None]
        bytes_read = sum(each.bytes_read for each in last)
        bytes_written = sum(each.bytes_written for each in last)
        return cls(
            recopy_percent=100 * bytes_written // max(1, bytes_read),
            max_buffer_utilization_percent=int(100 * max((each.buffer_utilization for each in last), default=0.0)),
            max_clean_time_secs=int(max((each.seconds for each in last), default=0.0)),
            max_compaction_delay_secs=book.max_compaction_delay_ms // 1000,
            dead_thread_count=sum(thread.is_dead for thread in threads),
            max_dirty_percent=int(100 * book.max_dirty_ratio),
            time_since_last_run_ms=max(0, cleaning.now_ms() - book.last_run_ms) if book.last_run_ms else 0,
            uncleanable=tuple(_uncleanable(path, book) for path in paths),
            totals=cleaning.totals,
        )


def _uncleanable(path: str, book: "CleanerBook") -> Uncleanable:
    logs = book.uncleanable().get(path, [])
    return Uncleanable(path, len(logs), sum(_dirty_bytes(one, book.first_dirty_offset(one)) for one in logs))


def _dirty_bytes(one: Log, first_dirty_offset: int) -> int:
    """Of the segments that a cleaning would read, without the active one."""
    segments = one.segments
    ends = segments.base_offsets[1:]
    return sum(segment.size for segment, end in zip(segments.all, ends, strict=False) if end > first_dirty_offset)
