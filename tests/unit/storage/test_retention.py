"""What retention takes away, what it leaves, and that it does not come back."""

import os
from pathlib import Path

import pytest

from kaspar.base.errors import StorageFailure
from kaspar.config import LogConfig
from kaspar.storage import Log
from kaspar.storage.disk.file_names import LOG, TIME_INDEX
from tests.unit.storage.logs import NOW_MS, LogFolder, append, append_values, log_config, make_batch, read_values

DAY_MS = 86_400_000
NO_TIMESTAMP = -1


def config(**settings: str | int) -> LogConfig:
    return log_config(segment_bytes=100, retention_ms=DAY_MS, message_timestamp_after_max_ms=1000 * DAY_MS, **settings)


def aged(folder: LogFolder, *days: int) -> Log:
    """A segment for each record."""
    for day in days:
        append_values(folder.log, b"day %d" % day, timestamp=NOW_MS + day * DAY_MS)
    return folder.log


def retain(log: Log, now_ms: int) -> int:
    start = log.retention_start_offset(now_ms, log.log_end_offset)
    log.delete_old_segments(start, now_ms=now_ms)
    return log.log_start_offset


def test_compact_and_delete_together_give_up_old_segments(tmp_path: Path) -> None:
    log = aged(LogFolder(tmp_path, config(cleanup_policy="compact,delete")), 0, 1, 2)
    assert retain(log, NOW_MS + 2 * DAY_MS) == 1


def test_a_compacted_topic_gives_up_what_lies_below_its_start(tmp_path: Path) -> None:
    """After a start, too, when the segments are still there that a crash kept from being renamed."""
    folder = LogFolder(tmp_path, config(cleanup_policy="compact"))
    log = aged(folder, 0, 1, 2)
    assert retain(log, NOW_MS + 100 * DAY_MS) == 0
    log.log_start_offset = 2
    log = folder.reopen(clean=False)
    assert log.segment_count == 3
    assert retain(log, NOW_MS) == 2
    assert log.segments.base_offsets == (2,)


def test_a_segment_is_as_young_as_its_largest_timestamp(tmp_path: Path) -> None:
    log = LogFolder(tmp_path, log_config(retention_ms=DAY_MS, message_timestamp_after_max_ms=1000 * DAY_MS)).log
    append_values(log, b"young", timestamp=NOW_MS + 5 * DAY_MS)
    append_values(log, b"old", timestamp=NOW_MS)
    log.roll(now_ms=NOW_MS)
    assert retain(log, NOW_MS + 6 * DAY_MS) == 0
    assert retain(log, NOW_MS + 6 * DAY_MS + 1) == 2


def test_records_from_the_future_keep_their_segment_and_what_follows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = aged(LogFolder(tmp_path, config()), 0, 900, 1)
    assert retain(log, NOW_MS + 100 * DAY_MS) == 1
    for _ in range(3):
        assert retain(log, NOW_MS + 100 * DAY_MS) == 1
    assert caplog.text.count("timestamps in the future keep a segment") == 1


def test_records_without_a_timestamp_are_as_old_as_their_file(tmp_path: Path) -> None:
    log = LogFolder(tmp_path, config()).log
    for _ in range(2):
        append(log, make_batch(timestamp=NO_TIMESTAMP))
    path = log.segments.all[0].path(LOG)
    os.utime(path, (NOW_MS / 1000, NOW_MS / 1000))
    assert retain(log, NOW_MS + DAY_MS) == 0
    assert retain(log, NOW_MS + DAY_MS + 1) == 1


def test_log_append_time_counts_from_when_records_came(tmp_path: Path) -> None:
    log = LogFolder(tmp_path, config(message_timestamp_type="LogAppendTime")).log
    for day in (10, 11):
        append(log, make_batch(timestamp=NOW_MS + 500 * DAY_MS), now_ms=NOW_MS + day * DAY_MS)
    assert retain(log, NOW_MS + 11 * DAY_MS) == 0
    assert retain(log, NOW_MS + 11 * DAY_MS + 1) == 1


def test_a_change_of_the_settings_counts_at_once(tmp_path: Path) -> None:
    log = aged(LogFolder(tmp_path, config()), 0, 1, 2, 3)
    assert retain(log, NOW_MS) == 0
    log.reconfigure(config(retention_bytes=log.segments.all[0].size))
    assert retain(log, NOW_MS) == 3


def test_an_empty_segment_that_cleaning_left_keeps_nothing_behind_it(tmp_path: Path) -> None:
    log = aged(LogFolder(tmp_path, config(cleanup_policy="compact,delete")), 0, 1, 2)
    Path(log.segments.all[0].path(LOG)).write_bytes(b"")
    Path(log.segments.all[0].path(TIME_INDEX)).write_bytes(b"")
    log.segments.all[0].size = 0
    log.segments.all[0].max_timestamp = -1
    os.utime(log.segments.all[0].path(LOG), (NOW_MS / 1000, NOW_MS / 1000))
    assert retain(log, NOW_MS + 2 * DAY_MS + 1) == 2


def test_an_open_read_finishes(tmp_path: Path) -> None:
    log = aged(LogFolder(tmp_path, config(file_delete_delay_ms=1000)), 0, 1, 2)
    first = log.segments.all[0]
    handle = log.directory.readers.acquire(first, first.path(LOG))
    retain(log, NOW_MS + 2 * DAY_MS)
    for now_ms in (NOW_MS, NOW_MS + 1000):
        log.maintain(now_ms)
    assert len(log.directory.files.pread(handle.fd, 1000, 0)) == first.size
    log.directory.readers.release(handle)


@pytest.mark.parametrize("clean", [True, False])
def test_the_start_of_the_log_survives_a_restart(tmp_path: Path, clean: bool) -> None:
    folder = LogFolder(tmp_path, config())
    log = aged(folder, 0, 1, 2, 3)
    append_values(log, b"a", b"b", b"c", timestamp=NOW_MS + 3 * DAY_MS)
    retain(log, NOW_MS + 3 * DAY_MS)
    assert log.log_start_offset == 2
    log.advance_log_start_offset(5)
    log = folder.reopen(clean=clean)
    assert log.log_start_offset == 5
    assert read_values(log) == [(5, b"b"), (6, b"c")]


def test_a_crash_in_the_middle_of_a_deletion_brings_no_record_back(tmp_path: Path) -> None:
    """A log begins with the first segment whose log file is there."""
    folder = LogFolder(tmp_path, config())
    log = aged(folder, 0, 1, 2)
    folder.manager.checkpoint()
    folder.manager.abandon()
    path = Path(log.segments.all[0].path(LOG))
    path.rename(path.with_name(path.name + ".deleted"))
    log = folder.open_again()
    assert (log.log_start_offset, log.segments.base_offsets) == (1, (1, 2))
    assert len(read_values(log)) == 2


def test_a_segment_that_goes_while_retention_looks_at_it_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = LogFolder(tmp_path, config())
    log = aged(folder, 0, 1, 2)
    log = folder.reopen(clean=True)
    segments = log.segments
    log.advance_log_start_offset(2)
    monkeypatch.setattr(log.local, "segments", segments)
    assert log.retention_start_offset(NOW_MS + 100 * DAY_MS, 3) == 2
    assert log.directory.online


def test_a_disk_that_cannot_be_read_takes_the_directory_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = aged(LogFolder(tmp_path, config()), 0, 1)
    files = log.directory.files

    def unreadable(path: str) -> int:
        raise OSError(5, "Input/output error")

    log.segments.all[0].max_timestamp = -1
    monkeypatch.setattr(files, "modified_ms", unreadable)
    with pytest.raises(StorageFailure):
        log.retention_start_offset(NOW_MS, 2)
