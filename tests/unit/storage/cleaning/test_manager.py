"""What the cleaner knows of all logs: which is next, how far each is clean, which cannot be cleaned."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import TopicPartition, random_uuid
from kaspar.storage import Log, LogManager
from kaspar.storage.cleaning.manager import LogCleanerManager
from kaspar.storage.cleaning.offsets_to_clean import OffsetsToClean
from kaspar.storage.disk.checkpoints import UnknownVersion
from kaspar.storage.truncation import truncate_to
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import (
    NOW_MS,
    append_transactional,
    append_values,
    broker_config,
    damage_header,
    end_transaction,
    log_config,
    open_manager,
)

CHECKPOINT = "cleaner-offset-checkpoint"
COMPACTED = log_config(cleanup_policy="compact", segment_bytes=100, min_cleanable_dirty_ratio="0.3")
MINUTE_MS = 60_000


class Logs:
    """Compacted logs in data folders, and the state of their cleaning."""

    def __init__(self, *paths: Path, files: FaultyFiles | None = None) -> None:
        self.config = broker_config(*paths)
        self.manager: LogManager = open_manager(self.config, COMPACTED, files)
        self.cleaner_manager = LogCleanerManager(self.manager)

    def create(self, topic: str, segments: int) -> Log:
        """Of so many segments that may be cleaned."""
        log = self.manager.create(TopicPartition(topic, 0), random_uuid(), COMPACTED)
        for number in range(segments + 1):
            append_values(log, b"%d" % number)
        return log

    def next(self, now_ms: int = NOW_MS, *, leave_out: Iterable[Log] = ()) -> tuple[Log, OffsetsToClean] | None:
        stable = {one.topic_partition: one.log_end_offset for one in self.manager.logs.values() if one not in leave_out}
        return self.cleaner_manager.next_to_clean(stable, now_ms)

    def next_log(self, now_ms: int = NOW_MS) -> Log | None:
        found = self.next(now_ms)
        return None if found is None else found[0]

    def restart(self, *, clean: bool = True) -> None:
        (self.manager.close if clean else self.manager.abandon)()
        self.manager = open_manager(self.config, COMPACTED)
        self.cleaner_manager = LogCleanerManager(self.manager)

    def get(self, topic: str) -> Log:
        log = self.manager.get(TopicPartition(topic, 0))
        assert log is not None
        return log


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


def test_the_filthiest_log_is_next(logs: Logs) -> None:
    less, more = logs.create("less", 5), logs.create("more", 5)
    logs.cleaner_manager.done(less, 3)
    logs.cleaner_manager.done(more, 1)
    assert logs.next_log() is more
    assert logs.next_log() is less
    assert logs.cleaner_manager.max_dirty_ratio == 0.4
    assert logs.cleaner_manager.last_run_ms == NOW_MS


def test_a_log_is_given_to_one_thread_at_a_time(logs: Logs) -> None:
    log = logs.create("t", 2)
    assert logs.next_log() is log
    assert logs.cleaner_manager.in_progress(log)
    assert logs.next_log() is None
    assert logs.cleaner_manager.claim(log, log.log_end_offset, NOW_MS) is None
    logs.cleaner_manager.release(log)
    assert not logs.cleaner_manager.in_progress(log)
    assert logs.next_log() is log


def test_a_log_that_is_clean_enough_waits(logs: Logs) -> None:
    log = logs.create("t", 10)
    logs.cleaner_manager.done(log, 7)
    assert logs.next_log() is None
    assert logs.cleaner_manager.max_dirty_ratio == 0.3
    logs.cleaner_manager.done(log, 6)
    assert logs.next_log() is log


def test_a_log_that_has_waited_for_too_long_comes_before_filthier_ones(logs: Logs) -> None:
    logs.create("filthy", 4)
    waiting = logs.create("waiting", 4)
    waiting.reconfigure(log_config(cleanup_policy="compact", segment_bytes=100, max_compaction_lag_ms=MINUTE_MS))
    logs.cleaner_manager.done(waiting, 3)
    assert logs.next_log(NOW_MS + 3 * MINUTE_MS) is waiting
    assert logs.cleaner_manager.max_compaction_delay_ms == 2 * MINUTE_MS


def test_a_log_can_be_claimed_whatever_its_ratio_is(logs: Logs) -> None:
    log = logs.create("t", 10)
    logs.cleaner_manager.done(log, 9)
    assert logs.next_log() is None
    to_clean = logs.cleaner_manager.claim(log, log.log_end_offset, NOW_MS)
    assert to_clean is not None
    assert (to_clean.first_dirty_offset, to_clean.first_uncleanable_offset) == (9, 10)
    logs.cleaner_manager.done(log, 10)
    assert logs.cleaner_manager.claim(log, log.log_end_offset, NOW_MS) is None, "all of it is clean"


def test_only_compacted_topics_are_cleaned(logs: Logs) -> None:
    log = logs.create("t", 2)
    log.reconfigure(log_config(cleanup_policy="delete"))
    assert logs.next_log() is None
    log.reconfigure(log_config(cleanup_policy="compact,delete", segment_bytes=100))
    assert logs.next_log() is log


def test_a_log_is_synced_and_its_recovery_point_written_before_it_is_cleaned(logs: Logs, tmp_path: Path) -> None:
    log = logs.create("t", 3)
    assert log.recovery_point == 0
    logs.next()
    assert log.recovery_point >= 3
    assert f"t 0 {log.recovery_point}" in (tmp_path / "recovery-point-offset-checkpoint").read_text()


def test_so_is_the_end_of_a_transaction_that_decides_what_is_cleaned(logs: Logs) -> None:
    log = logs.create("t", 3)
    append_transactional(log, 7, 0)
    log.roll(now_ms=NOW_MS)
    end_transaction(log, 7, committed=True)
    logs.next()
    assert log.recovery_point == log.log_end_offset


def test_how_far_logs_are_clean_is_written_down_in_kafkas_format(logs: Logs, tmp_path: Path) -> None:
    log = logs.create("t", 4)
    logs.cleaner_manager.done(log, 4)
    assert (tmp_path / CHECKPOINT).read_text() == "0\n1\nt 0 4\n"
    assert logs.cleaner_manager.first_dirty_offset(log) == 4
    logs.restart()
    assert logs.cleaner_manager.first_dirty_offset(logs.get("t")) == 4
    assert logs.next_log() is None


def test_each_directory_has_a_file_of_its_own(tmp_path: Path) -> None:
    logs = Logs(tmp_path / "one", tmp_path / "two")
    first, second = logs.create("first", 2), logs.create("second", 2)
    logs.cleaner_manager.done(first, 1)
    logs.cleaner_manager.done(second, 2)
    texts = {(Path(log.directory.path) / CHECKPOINT).read_text() for log in (first, second)}
    assert texts == {"0\n1\nfirst 0 1\n", "0\n1\nsecond 0 2\n"}


@pytest.mark.parametrize("content", ["", "0\n2\nt 0 3\n", "0\n1\nt zero 3\n", "\0" * 20])
def test_a_damaged_file_counts_as_empty(logs: Logs, tmp_path: Path, content: str) -> None:
    logs.create("t", 4)
    logs.manager.close()
    (tmp_path / CHECKPOINT).write_text(content)
    logs.restart(clean=False)
    assert logs.cleaner_manager.first_dirty_offset(logs.get("t")) == 0
    assert logs.next_log() is logs.get("t")


def test_a_file_of_a_version_that_is_not_known_stops_the_start(logs: Logs, tmp_path: Path) -> None:
    logs.manager.close()
    (tmp_path / CHECKPOINT).write_text("1\n0\n")
    with pytest.raises(UnknownVersion, match="has version 1; only version 0 is supported"):
        logs.restart(clean=False)
    assert (tmp_path / CHECKPOINT).read_text() == "1\n0\n"


def test_an_offset_that_cannot_be_right_any_more_is_replaced_in_the_file(logs: Logs, tmp_path: Path) -> None:
    log = logs.create("t", 4)
    logs.cleaner_manager.done(log, 1)
    log.advance_log_start_offset(2)
    assert logs.cleaner_manager.first_dirty_offset(log) == 2
    logs.next()
    assert (tmp_path / CHECKPOINT).read_text() == "0\n1\nt 0 2\n"


def test_what_is_written_after_a_truncation_is_dirty(logs: Logs, tmp_path: Path) -> None:
    log = logs.create("t", 4)
    logs.cleaner_manager.done(log, 4)
    assert not logs.manager.truncate_to({log.topic_partition: 2}, now_ms=NOW_MS)
    append_values(log, b"other")
    append_values(log, b"others")
    append_values(log, b"another")
    assert logs.cleaner_manager.first_dirty_offset(log) == 2
    assert (tmp_path / CHECKPOINT).read_text() == "0\n1\nt 0 2\n"
    logs.cleaner_manager.truncated({log: 3})
    assert logs.cleaner_manager.first_dirty_offset(log) == 2


def test_a_deleted_partition_is_forgotten(logs: Logs, tmp_path: Path) -> None:
    log, other = logs.create("t", 4), logs.create("other", 4)
    logs.cleaner_manager.done(log, 4)
    logs.cleaner_manager.done(other, 1)
    logs.cleaner_manager.failed(log, "damaged")
    logs.manager.delete([log.topic_partition])
    logs.cleaner_manager.forget([log.topic_partition])
    assert (tmp_path / CHECKPOINT).read_text() == "0\n1\nother 0 1\n"
    assert logs.cleaner_manager.uncleanable() == {}


def test_a_topic_with_the_name_of_a_deleted_one_is_dirty_from_its_start(logs: Logs) -> None:
    """Also if nobody had the time to say so."""
    log = logs.create("t", 4)
    logs.cleaner_manager.done(log, 4)
    logs.manager.delete([log.topic_partition])
    assert logs.cleaner_manager.first_dirty_offset(logs.create("t", 4)) == 0


def test_a_log_that_is_deleted_while_it_is_cleaned_leaves_nothing_in_the_file(logs: Logs, tmp_path: Path) -> None:
    log, other = logs.create("t", 4), logs.create("other", 4)
    logs.next(leave_out=[other])
    logs.manager.delete([log.topic_partition])
    logs.cleaner_manager.done(log, 4)
    logs.cleaner_manager.done(other, 1)
    assert (tmp_path / CHECKPOINT).read_text() == "0\n1\nother 0 1\n"


# What cannot be cleaned


def test_a_log_that_cannot_be_cleaned_is_reported_and_not_retried(logs: Logs, tmp_path: Path) -> None:
    log = logs.create("t", 4)
    logs.next()
    logs.cleaner_manager.failed(log, "it is damaged at position 7")
    assert logs.next_log() is None
    assert logs.cleaner_manager.claim(log, log.log_end_offset, NOW_MS) is None
    assert logs.cleaner_manager.why_uncleanable(log) == "it is damaged at position 7"
    assert logs.cleaner_manager.uncleanable() == {str(tmp_path): [log]}


def test_it_is_tried_again_after_a_restart_or_a_change_of_the_topics_settings(logs: Logs) -> None:
    log = logs.create("t", 4)
    logs.cleaner_manager.failed(log, "damaged")
    log.reconfigure(log_config(cleanup_policy="compact", segment_bytes=100, retention_ms=1))
    assert logs.cleaner_manager.uncleanable() == {}
    assert logs.next_log() is log
    logs.cleaner_manager.failed(log, "damaged")
    logs.restart()
    assert logs.next_log() is logs.get("t")


def test_a_damaged_header_makes_its_log_uncleanable_and_keeps_no_other_from_being_cleaned(logs: Logs) -> None:
    for topic in ("damaged", "sound"):
        logs.create(topic, 4)
    logs.restart()
    damaged, sound = logs.get("damaged"), logs.get("sound")
    for log in (damaged, sound):
        log.reconfigure(log_config(cleanup_policy="compact", segment_bytes=100, max_compaction_lag_ms=MINUTE_MS))
    damage_header(damaged.segments.all[1])
    assert logs.next_log(NOW_MS + 3 * MINUTE_MS) is sound
    assert "magic 99" in (logs.cleaner_manager.why_uncleanable(damaged) or "")
    assert damaged.directory.online


def test_what_came_of_a_log_that_was_truncated_meanwhile_is_not_written_down(logs: Logs) -> None:
    log = logs.create("t", 4)
    logs.next()
    truncate_to(log, 2, now_ms=NOW_MS)
    for value in (b"other", b"others", b"another"):
        append_values(log, value)
    logs.cleaner_manager.done(log, 4)
    assert not logs.cleaner_manager.in_progress(log)
    assert logs.cleaner_manager.first_dirty_offset(log) == 0


# Disks


def test_logs_of_a_directory_that_is_offline_are_left_out(tmp_path: Path) -> None:
    logs = Logs(tmp_path / "one", tmp_path / "two")
    first, second = logs.create("first", 2), logs.create("second", 2)
    first.directory.take_offline("gone")
    assert logs.next_log() is second
    assert logs.next_log() is None
    logs.cleaner_manager.done(first, 2)


def test_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    files = FaultyFiles()
    logs = Logs(tmp_path, files=files)
    log = logs.create("t", 4)
    logs.cleaner_manager.done(log, 1)
    files.bytes_left = 0
    logs.cleaner_manager.done(log, 4)
    assert logs.cleaner_manager.first_dirty_offset(log) == 4
    assert (tmp_path / CHECKPOINT).read_text() == "0\n1\nt 0 1\n"


def test_on_a_full_disk_no_log_is_cleaned_that_is_not_written_down_as_synced(tmp_path: Path) -> None:
    files = FaultyFiles()
    logs = Logs(tmp_path, files=files)
    log = logs.create("t", 4)
    files.bytes_left = 0
    with pytest.raises(Refused):
        logs.next()
    assert not logs.cleaner_manager.in_progress(log)
    files.recover()
    assert logs.next_log() is log


def test_a_failing_disk_takes_the_directory_offline(tmp_path: Path) -> None:
    files = FaultyFiles()
    logs = Logs(tmp_path, files=files)
    log = logs.create("t", 4)
    files.fail("rename", 5)
    with pytest.raises(KasparError):
        logs.cleaner_manager.done(log, 1)
    assert not log.directory.online


def test_a_log_that_has_no_space_keeps_no_other_from_being_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = Logs(tmp_path / "full", tmp_path / "roomy")
    filthiest, other = logs.create("filthiest", 4), logs.create("other", 4)
    logs.cleaner_manager.done(other, 1)
    real = LogManager.secure

    def secure(manager: LogManager, one: Log, offset: int) -> None:
        if one is filthiest:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "no space is left")
        real(manager, one, offset)

    monkeypatch.setattr(LogManager, "secure", secure)
    assert logs.next_log() is other
    assert not logs.cleaner_manager.in_progress(filthiest)
    with pytest.raises(Refused):
        logs.next()


def test_a_log_that_is_deleted_before_it_is_taken_is_passed_over(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    log = logs.create("t", 4)
    real = LogManager.secure

    def secure(manager: LogManager, one: Log, offset: int) -> None:
        manager.delete([one.topic_partition])
        real(manager, one, offset)

    monkeypatch.setattr(LogManager, "secure", secure)
    assert logs.next() is None
    assert not logs.cleaner_manager.in_progress(log)
