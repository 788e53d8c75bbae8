"""Time look-ups, retention, truncation and the start of the log."""

import os
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.records import Codec
from kaspar.storage import Log
from kaspar.storage.reading import time_lookup
from kaspar.storage.truncation import truncate_fully_and_start_at, truncate_to
from tests.unit.storage.logs import (
    NOW_MS,
    LogFolder,
    append,
    append_transactional,
    append_values,
    end_transaction,
    log_config,
    make_batch,
    read_values,
)

DAY_MS = 86_400_000


@pytest.fixture(params=[60, 300, 5_000], ids=lambda size: f"segments of {size}")
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> LogFolder:
    """Sixteen batches of two records, with times that mostly grow, of every codec."""
    folder = LogFolder(tmp_path, log_config(segment_bytes=max(request.param, 300), index_interval_bytes=request.param))
    times = [0, 10, 5, 20, 20, 30, 15, 40, 50, 45, 60, 70, 80, 75, 90, 100]
    for number, at in enumerate(times):
        batch = make_batch([b"a", b"b"], timestamp=NOW_MS + at, codec=list(Codec)[number % 5])
        append(folder.log, batch, leader_epoch=number // 8)
    return folder


@pytest.mark.parametrize(
    ("at", "found"),
    [(-5, (0, 0, 0)), (0, (0, 0, 0)), (1, (10, 2, 0)), (16, (20, 6, 0)), (45, (50, 16, 1)), (100, (100, 30, 1))],
)
@pytest.mark.parametrize("reopened", [False, True])
def test_the_first_record_at_or_after_a_time(
    folder: LogFolder, at: int, found: tuple[int, int, int], reopened: bool
) -> None:
    log = folder.reopen(clean=True) if reopened else folder.log
    timestamp, offset, epoch = found
    assert log.offset_for_timestamp(NOW_MS + at) == (NOW_MS + timestamp, offset, epoch)


def test_no_record_is_that_late(folder: LogFolder) -> None:
    assert folder.log.offset_for_timestamp(NOW_MS + 101) is None


def test_records_below_the_start_are_not_found(folder: LogFolder) -> None:
    folder.log.advance_log_start_offset(9)
    assert folder.log.offset_for_timestamp(0) == (NOW_MS + 20, 9, 0)


def test_the_record_with_the_largest_timestamp(folder: LogFolder) -> None:
    assert folder.log.offset_of_max_timestamp() == (NOW_MS + 100, 30, 1)
    append(folder.log, make_batch([b"older"], timestamp=NOW_MS + 1), leader_epoch=2)
    assert folder.reopen(clean=True).offset_of_max_timestamp() == (NOW_MS + 100, 30, 1)


def test_an_empty_log_has_no_times(tmp_path: Path) -> None:
    log = LogFolder(tmp_path).log
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None


@pytest.mark.parametrize(("offset", "at"), [(0, 0), (1, 0), (2, 10), (5, 5), (16, 50), (31, 100)])
@pytest.mark.parametrize("reopened", [False, True])
def test_the_time_of_an_offset_is_that_of_its_batch(folder: LogFolder, offset: int, at: int, reopened: bool) -> None:
    log = folder.reopen(clean=True) if reopened else folder.log
    found = log.first_data_batch(offset)
    assert found.is_known
    assert found.batch == (NOW_MS + at, offset, offset // 16)


def test_below_the_start_the_first_record_counts(folder: LogFolder) -> None:
    folder.log.advance_log_start_offset(9)
    assert folder.log.first_data_batch(2).batch == (NOW_MS + 20, 9, 0)


def test_behind_the_last_record_there_is_no_batch(folder: LogFolder) -> None:
    assert folder.log.first_data_batch(32) == (True, None)


def test_markers_of_transactions_are_no_data(tmp_path: Path) -> None:
    log = LogFolder(tmp_path).log
    append_transactional(log, 7, 0)
    end_transaction(log, 7, committed=True)
    marker = log.log_end_offset - 1
    assert log.first_data_batch(marker) == (True, None)
    append_values(log, b"next", timestamp=NOW_MS + 5)
    found = log.first_data_batch(marker)
    assert found.batch is not None
    assert (found.batch.timestamp, found.batch.offset) == (NOW_MS + 5, marker + 1)


def test_a_search_along_too_many_markers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_lookup, "_MOST_HEADERS", 3)
    log = LogFolder(tmp_path).log
    append_transactional(log, 7, 0)
    for _ in range(2):
        end_transaction(log, 7, committed=True)
    assert log.first_data_batch(1) == (True, None)
    end_transaction(log, 7, committed=True)
    assert log.first_data_batch(1) == (False, None)


@pytest.fixture
def aged(tmp_path: Path) -> Log:
    """Five segments of one batch, a day apart; the last is the active one."""
    config = log_config(
        segment_bytes=100,
        retention_ms=DAY_MS,
        file_delete_delay_ms=1000,
        message_timestamp_after_max_ms=10 * DAY_MS,
    )
    folder = LogFolder(tmp_path, config)
    for day in range(5):
        append_values(folder.log, b"day %d" % day, timestamp=NOW_MS + day * DAY_MS)
    return folder.log


def test_retention_by_time_takes_whole_segments_from_the_start(aged: Log) -> None:
    now_ms = NOW_MS + 4 * DAY_MS
    start = aged.retention_start_offset(now_ms, high_watermark=5)
    assert start == 3
    assert aged.delete_old_segments(start, now_ms=now_ms) == 3
    assert (aged.log_start_offset, aged.segments.base_offsets) == (3, (3, 4))
    assert len([name for name in os.listdir(aged.folder) if name.endswith(".deleted")]) == 9
    aged.maintain(now_ms)
    aged.maintain(now_ms + 1000)
    assert not [name for name in os.listdir(aged.folder) if name.endswith(".deleted")]


def test_retention_never_passes_the_high_watermark(aged: Log) -> None:
    assert aged.retention_start_offset(NOW_MS + 100 * DAY_MS, high_watermark=2) == 2


def test_when_every_segment_is_outlived_an_empty_one_takes_their_place(aged: Log) -> None:
    now_ms = NOW_MS + 100 * DAY_MS
    start = aged.retention_start_offset(now_ms, high_watermark=5)
    assert start == 5
    assert aged.delete_old_segments(start, now_ms=now_ms) == 5
    assert (aged.log_start_offset, aged.log_end_offset, aged.size) == (5, 5, 0)
    assert aged.retention_start_offset(now_ms, high_watermark=5) == 5
    assert append_values(aged, b"next").base_offset == 5


def test_retention_by_bytes_keeps_at_least_that_much(aged: Log) -> None:
    size = aged.segments.all[0].size
    aged.reconfigure(log_config(segment_bytes=100, retention_ms=-1, retention_bytes=2 * size + 1))
    assert aged.retention_start_offset(NOW_MS, high_watermark=5) == 2
    aged.reconfigure(log_config(segment_bytes=100, retention_ms=-1, retention_bytes=-1))
    assert aged.retention_start_offset(NOW_MS, high_watermark=5) == 0


def test_a_compacted_topic_is_not_cut_by_retention(aged: Log) -> None:
    aged.reconfigure(log_config(segment_bytes=100, cleanup_policy="compact", retention_ms=1))
    assert aged.retention_start_offset(NOW_MS + 100 * DAY_MS, high_watermark=5) == 0


def test_delete_records_moves_the_start_and_drops_whole_segments(aged: Log) -> None:
    append_values(aged, b"x", b"y", timestamp=NOW_MS + 5 * DAY_MS)
    assert aged.advance_log_start_offset(6)
    assert not aged.advance_log_start_offset(6)
    assert aged.segments.base_offsets == (5,)
    assert read_values(aged) == [(6, b"y")]
    with pytest.raises(Refused) as refused:
        aged.read(5, 100, 7)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(Refused) as refused:
        aged.advance_log_start_offset(8)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("offset", range(6))
def test_truncation_drops_what_is_at_or_above_the_offset(aged: Log, offset: int) -> None:
    assert truncate_to(aged, offset, now_ms=NOW_MS) == (offset < 5)
    assert aged.log_end_offset == min(offset, 5)
    assert [number for number, _ in read_values(aged)] == list(range(min(offset, 5)))
    found = aged.offset_of_max_timestamp()
    assert (found.offset if found else -1) == min(offset, 5) - 1
    assert append_values(aged, b"new", timestamp=NOW_MS + offset * DAY_MS).base_offset == min(offset, 5)
    assert read_values(aged)[-1] == (min(offset, 5), b"new")


def test_truncation_within_a_batch_drops_the_whole_batch(tmp_path: Path) -> None:
    log = LogFolder(tmp_path).log
    append_values(log, b"a", b"b")
    append_values(log, b"c", b"d")
    truncate_to(log, 3, now_ms=NOW_MS)
    assert log.log_end_offset == 3
    assert read_values(log) == [(0, b"a"), (1, b"b")]
    assert append_values(log, b"new").base_offset == 3
    assert read_values(log) == [(0, b"a"), (1, b"b"), (3, b"new")]
    assert log.read(2, 100, 4) == log.read(3, 100, 4)


def test_a_log_can_continue_empty_at_any_offset(aged: Log) -> None:
    truncate_fully_and_start_at(aged, 100, now_ms=NOW_MS)
    assert (aged.log_start_offset, aged.log_end_offset, aged.recovery_point) == (100, 100, 100)
    assert append_values(aged, b"new").base_offset == 100
    assert read_values(aged) == [(100, b"new")]
    assert aged.end_offset_for_epoch(0) == (0, 101)
