"""How dirty a log is: from where, up to where, how much, and whether it must be cleaned now."""

import os
from pathlib import Path

import pytest

from kaspar.base.errors import Refused
from kaspar.storage import Log
from kaspar.storage.cleaning.offsets_to_clean import OffsetsToClean, offsets_to_clean
from kaspar.storage.disk.file_names import LOG
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import NOW_MS, LogFolder, append_values, damage_header, log_config

MINUTE_MS = 60_000
NOTHING_LATER = 1 << 40


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Five segments of one batch of one record, a minute apart; the last is the active one."""
    log = LogFolder(tmp_path, log_config(cleanup_policy="compact", segment_bytes=100)).log
    for minute in range(5):
        append_values(log, b"v%d" % minute, timestamp=NOW_MS + minute * MINUTE_MS)
    return log


def look(
    log: Log, first_dirty: int | None, *, stable: int = NOTHING_LATER, now_ms: int = NOW_MS + 5 * MINUTE_MS
) -> OffsetsToClean:
    return offsets_to_clean(log, first_dirty, stable, now_ms)


def range_of(to_clean: OffsetsToClean) -> tuple[int, int]:
    return to_clean.first_dirty_offset, to_clean.first_uncleanable_offset


def test_a_log_that_was_never_cleaned_is_dirty_from_its_start_up_to_the_active_segment(log: Log) -> None:
    to_clean = look(log, None)
    assert range_of(to_clean) == (0, 4)
    assert (to_clean.clean_bytes, to_clean.dirty_bytes, to_clean.dirty_ratio) == (0, 4 * log.segments.all[0].size, 1.0)


def test_what_lies_below_the_first_dirty_offset_counts_as_clean(log: Log) -> None:
    to_clean = look(log, 3)
    size = log.segments.all[0].size
    assert (to_clean.clean_bytes, to_clean.dirty_bytes, to_clean.dirty_ratio) == (3 * size, size, 0.25)


def test_nothing_is_cleaned_at_or_behind_the_last_stable_offset(log: Log) -> None:
    assert range_of(look(log, 1, stable=3)) == (1, 3)
    assert range_of(look(log, 3, stable=1)) == (3, 3)


def test_only_whole_segments_are_cleaned(tmp_path: Path) -> None:
    log = LogFolder(tmp_path, log_config(cleanup_policy="compact")).log
    append_values(log, b"a", b"b")
    append_values(log, b"c", b"d")
    log.roll(now_ms=NOW_MS)
    to_clean = look(log, None, stable=2)
    assert range_of(to_clean) == (0, 0)
    assert to_clean.dirty_bytes == 0
    assert range_of(look(log, 2)) == (2, 4)
    assert look(log, 2).dirty_bytes == log.segments.all[0].size


def test_an_empty_active_segment_keeps_nothing_from_being_cleaned(log: Log) -> None:
    log.roll(now_ms=NOW_MS)
    assert range_of(look(log, None)) == (0, 5)


def test_a_segment_with_a_record_younger_than_min_compaction_lag_is_not_cleaned_nor_what_follows(log: Log) -> None:
    log.reconfigure(log_config(cleanup_policy="compact", segment_bytes=100, min_compaction_lag_ms=3 * MINUTE_MS))
    assert range_of(look(log, None)) == (0, 3)
    assert range_of(look(log, None, now_ms=NOW_MS + 6 * MINUTE_MS)) == (0, 4)
    assert range_of(look(log, None, now_ms=NOW_MS)) == (0, 0)


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_must_be_cleaned_when_its_oldest_dirty_segment_is_older_than_max_compaction_lag(
    tmp_path: Path, clean: bool
) -> None:
    """Also after a start, when nothing is known yet but what the files say."""
    config = log_config(cleanup_policy="compact", segment_bytes=100, max_compaction_lag_ms=4 * MINUTE_MS)
    folder = LogFolder(tmp_path, config)
    for minute in range(5):
        append_values(folder.log, b"v%d" % minute, timestamp=NOW_MS + minute * MINUTE_MS)
    log = folder.reopen(clean=clean)
    overdue = look(log, None)
    assert (overdue.must_clean, overdue.compaction_delay_ms) == (True, MINUTE_MS)
    assert overdue.is_due(1.0)
    assert not look(log, 1).must_clean
    assert not look(log, None, now_ms=NOW_MS + 4 * MINUTE_MS).must_clean
    assert not look(log, None, stable=0).must_clean, "there is nothing that may be cleaned"


def test_a_log_is_due_when_its_dirty_ratio_is_above_the_setting(log: Log) -> None:
    to_clean = look(log, 2)
    assert to_clean.dirty_ratio == 0.5
    assert to_clean.is_due(0.49)
    assert not to_clean.is_due(0.5)


def test_a_first_dirty_offset_below_the_start_is_reset_to_it(log: Log) -> None:
    log.advance_log_start_offset(2)
    to_clean = look(log, 1)
    assert (range_of(to_clean), to_clean.was_reset) == ((2, 4), True)


def test_a_first_dirty_offset_above_the_end_makes_all_of_the_log_dirty(log: Log) -> None:
    to_clean = look(log, 6)
    assert (range_of(to_clean), to_clean.was_reset) == ((0, 4), True)
    to_clean = look(log, 5)
    assert (to_clean.first_dirty_offset, to_clean.dirty_bytes, to_clean.was_reset) == (5, 0, False)


def test_an_empty_log_is_not_dirty(tmp_path: Path) -> None:
    to_clean = look(LogFolder(tmp_path).log, None)
    assert (to_clean.dirty_ratio, to_clean.must_clean) == (0.0, False)


# When the active segment ends, so that it can be cleaned


def lagging(tmp_path: Path, **settings: int | str) -> Log:
    return LogFolder(tmp_path, log_config(cleanup_policy="compact", max_compaction_lag_ms=MINUTE_MS, **settings)).log


def test_an_append_ends_a_segment_that_is_older_than_max_compaction_lag(tmp_path: Path) -> None:
    log = lagging(tmp_path)
    for at_ms in (0, MINUTE_MS, MINUTE_MS + 1):
        append_values(log, b"v", timestamp=NOW_MS + at_ms)
    assert log.segments.base_offsets == (0, 2)


def test_without_appends_upkeep_ends_it(tmp_path: Path) -> None:
    log = lagging(tmp_path)
    append_values(log, b"v")
    assert not log.roll_if_overdue(now_ms=NOW_MS + MINUTE_MS)
    assert log.roll_if_overdue(now_ms=NOW_MS + MINUTE_MS + 1)
    assert log.segments.base_offsets == (0, 1)
    assert not log.roll_if_overdue(now_ms=NOW_MS + 10 * MINUTE_MS), "the new one is empty"


def test_the_lag_means_nothing_where_the_topic_is_not_compacted(tmp_path: Path) -> None:
    log = LogFolder(tmp_path, log_config(cleanup_policy="delete", max_compaction_lag_ms=MINUTE_MS)).log
    append_values(log, b"v")
    append_values(log, b"v", timestamp=NOW_MS + MINUTE_MS + 1)
    assert not log.roll_if_overdue(now_ms=NOW_MS + 10 * MINUTE_MS)
    assert log.segments.base_offsets == (0,)


def test_old_timestamps_that_come_in_end_no_segment_that_has_only_begun(tmp_path: Path) -> None:
    log = lagging(tmp_path)
    append_values(log, b"v", timestamp=NOW_MS - 1000 * MINUTE_MS)
    assert not log.roll_if_overdue(now_ms=NOW_MS + MINUTE_MS)
    assert log.roll_if_overdue(now_ms=NOW_MS + MINUTE_MS + 1)


def test_a_restart_does_not_make_an_idle_segment_young(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(cleanup_policy="compact", max_compaction_lag_ms=MINUTE_MS))
    append_values(folder.log, b"v")
    path = folder.log.segments.all[0].path(LOG)
    folder.manager.close()
    os.utime(path, (NOW_MS / 1000, NOW_MS / 1000))
    folder.clock.jump(5 * MINUTE_MS)
    assert folder.open_again().roll_if_overdue(now_ms=NOW_MS + 5 * MINUTE_MS)


def test_a_look_at_an_idle_segment_whose_age_is_known_opens_no_file(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = LogFolder(tmp_path, log_config(cleanup_policy="compact", max_compaction_lag_ms=MINUTE_MS), files).log
    append_values(log, b"v")
    log.local.close_writer()
    before = files.calls["open"]
    assert not log.roll_if_overdue(now_ms=NOW_MS)
    assert files.calls["open"] == before


def test_an_active_segment_with_a_damaged_beginning_is_refused(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(cleanup_policy="compact", max_compaction_lag_ms=MINUTE_MS))
    append_values(folder.log, b"v")
    log = folder.reopen(clean=True)
    damage_header(log.segments.all[0])
    with pytest.raises(Refused, match="does not begin with a record batch"):
        log.roll_if_overdue(now_ms=NOW_MS)
    assert log.directory.online
