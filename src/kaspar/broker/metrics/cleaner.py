"""The metrics of the log cleaner."""

from collections.abc import Callable
from typing import Final

from kaspar.base.exposition import Kind, labels
from kaspar.broker.metrics.families import BrokerFamily, Scrape, many, one, own
from kaspar.broker.metrics.view import CleanerView, UncleanableView


def _cleaner_family(kafka_name: str, text: str, read: Callable[[CleanerView], float]) -> BrokerFamily:
    return one(f"kafka.log:type=LogCleaner,name={kafka_name}", text, lambda scrape: read(scrape.cleaner))


def _manager_family(kafka_name: str, text: str, read: Callable[[CleanerView], float]) -> BrokerFamily:
    return one(f"kafka.log:type=LogCleanerManager,name={kafka_name}", text, lambda scrape: read(scrape.cleaner))


def _directory_family(kafka_name: str, text: str, read: Callable[[UncleanableView], int]) -> BrokerFamily:
    return many(
        f"kafka.log:type=LogCleanerManager,name={kafka_name},logDirectory=*",
        text,
        ("logDirectory",),
        lambda scrape: [(labels(logDirectory=each.path), read(each)) for each in scrape.cleaner.uncleanable],
    )


def _total(name: str, text: str, read: Callable[[Scrape], int]) -> BrokerFamily:
    return own(f"kaspar_log_cleaner_{name}_total", Kind.COUNTER, text, read)


CLEANER: Final[tuple[BrokerFamily, ...]] = (
    _cleaner_family(
        "cleaner-recopy-percent",
        "The share of the bytes read by the last cleanings that was written back, in percent.",
        lambda cleaner: cleaner.recopy_percent,
    ),
    _cleaner_family(
        "max-buffer-utilization-percent",
        "How full the key map was in the last cleaning, in percent; the maximum over all threads.",
        lambda cleaner: cleaner.max_buffer_utilization_percent,
    ),
    _cleaner_family(
        "max-clean-time-secs",
        "The duration of the last cleaning, in seconds; the maximum over all threads.",
        lambda cleaner: cleaner.max_clean_time_secs,
    ),
    _cleaner_family(
        "max-compaction-delay-secs",
        "By how much the most overdue log exceeded max.compaction.lag.ms at the last check.",
        lambda cleaner: cleaner.max_compaction_delay_secs,
    ),
    _cleaner_family(
        "DeadThreadCount",
        "Cleaner threads that died. Always 0 unless the cleaner has a bug.",
        lambda cleaner: cleaner.dead_thread_count,
    ),
    _manager_family(
        "max-dirty-percent",
        "The dirty ratio of the dirtiest log at the last check, in percent.",
        lambda cleaner: cleaner.max_dirty_percent,
    ),
    _manager_family(
        "time-since-last-run-ms",
        "Time since the cleaner last checked for a log to clean, in ms.",
        lambda cleaner: cleaner.time_since_last_run_ms,
    ),
    _directory_family(
        "uncleanable-partitions-count",
        "Partitions that cannot be cleaned because they are damaged; the broker's log has the reason.",
        lambda directory: directory.partition_count,
    ),
    _directory_family(
        "uncleanable-bytes",
        "The bytes of those partitions that should have been cleaned.",
        lambda directory: directory.dirty_bytes,
    ),
    _total("runs", "Logs that were cleaned.", lambda scrape: scrape.cleaner.totals.runs),
    _total("read_bytes", "Bytes that cleanings read.", lambda scrape: scrape.cleaner.totals.bytes_read),
    _total("written_bytes", "Bytes that cleanings wrote.", lambda scrape: scrape.cleaner.totals.bytes_written),
    _total("removed_records", "Records that cleanings removed.", lambda scrape: scrape.cleaner.totals.records_removed),
)
