"""A cleaned segment takes the place of old ones: for readers in one step, for a crash all or nothing."""

import contextlib
import itertools
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from kaspar.base.ids import random_uuid
from kaspar.config import LogConfig
from kaspar.records import read_header
from kaspar.storage import Log, LogManager
from kaspar.storage.cleaning.errors import CleaningStopped
from kaspar.storage.cleaning.rewriting import NewSegment
from kaspar.storage.disk.file_names import CLEANED, DELETED, LOG, OFFSET_INDEX, SNAPSHOT, SWAP, numbered
from kaspar.storage.reading import committed_reads
from kaspar.storage.segments.open_files import ReadHandle, ReadHandles
from kaspar.storage.segments.segment import Segment
from kaspar.storage.swaps import Replacement
from kaspar.storage.truncation import truncate_fully_and_start_at, truncate_to
from tests.unit.storage.forgetful_files import ForgetfulFiles
from tests.unit.storage.logs import (
    NOW_MS,
    PARTITION,
    LogFolder,
    append_transactional,
    append_values,
    broker_config,
    end_transaction,
    log_config,
    open_manager,
    read_values,
)

ONE_BATCH_EACH = log_config(cleanup_policy="compact", segment_bytes=100)
BROKER = broker_config("/data")

Contents = list[tuple[int, bytes | None]]
BEFORE: Contents = [(offset, b"v%d" % offset) for offset in range(6)]
AFTER: Contents = [entry for entry in BEFORE if entry[0] not in (1, 2)]
"""The second to fourth segments are merged into one that keeps the record of the last."""


def fill(log: Log) -> Log:
    for offset in range(6):
        append_values(log, b"v%d" % offset)
    return log


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    folder = LogFolder(tmp_path, ONE_BATCH_EACH)
    fill(folder.log)
    return folder


def cleaned(
    log: Log, first: int = 1, count: int = 3, keep: Callable[[int], bool] = lambda offset: offset == 3
) -> Replacement:
    """What a cleaner hands over: some segments as one, with the batches that are to stay."""
    old = log.segments.all[first : first + count]
    new = NewSegment(log.directory.files, log.folder, old[0].base_offset, 4096)
    new.create(NOW_MS)
    for segment in old:
        batch = log.read(segment.base_offset, 1 << 20, log.log_end_offset)
        header = read_header(batch, 0)
        if keep(header.base_offset):
            new.append(bytes(batch[: header.size]))
    return Replacement(old, new.finish(), log.local.truncations)


def swap(log: Log, replacement: Replacement) -> None:
    log.swaps.begin(replacement)
    log.swaps.sync_names()
    log.swaps.complete(replacement)
    log.swaps.sync_names()


def test_a_swap_changes_what_is_read_and_nothing_else(folder: LogFolder) -> None:
    log = folder.log
    before = log.size
    swap(log, cleaned(log))
    assert read_values(log) == AFTER
    assert read_values(log, 1) == AFTER[1:]
    assert (log.log_start_offset, log.log_end_offset) == (0, 6)
    assert log.segments.base_offsets == (0, 1, 4, 5)
    assert log.size == before * 4 // 6
    assert append_values(log, b"on").base_offset == 6
    assert read_values(folder.reopen(clean=True)) == [*AFTER, (6, b"on")]


def test_old_files_are_renamed_and_removed_after_file_delete_delay_ms(folder: LogFolder) -> None:
    log = folder.log
    swap(log, cleaned(log))
    assert len(folder.names(LOG + DELETED)) == 3
    log.maintain(NOW_MS)
    log.maintain(NOW_MS + log.config.file_delete_delay_ms)
    assert folder.names(DELETED, SWAP, CLEANED) == []


def test_a_read_that_has_an_old_file_open_finishes(folder: LogFolder) -> None:
    log = folder.log
    old = log.segments.all[1]
    handle = log.directory.readers.acquire(old, old.path(LOG))
    swap(log, cleaned(log))
    for now_ms in (NOW_MS, NOW_MS + log.config.file_delete_delay_ms):
        log.maintain(now_ms)
    assert len(log.directory.files.pread(handle.fd, 1 << 20, 0)) == old.size
    log.directory.readers.release(handle)


def swap_before_opening(opening: int, log: Log, replacement: Replacement, monkeypatch: pytest.MonkeyPatch) -> None:
    """Swap just before the file is opened that is read as number `opening` from now on."""
    real = ReadHandles.acquire
    openings = itertools.count(1)

    def acquire(readers: ReadHandles, key: object, path: str) -> ReadHandle:
        if next(openings) == opening:
            swap(log, replacement)
        return real(readers, key, path)

    monkeypatch.setattr(ReadHandles, "acquire", acquire)


def test_a_read_whose_segment_is_replaced_before_it_opens_the_file_looks_it_up_again(
    folder: LogFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = folder.log
    swap_before_opening(1, log, cleaned(log), monkeypatch)
    found = log.read(2, 1 << 20, 6)
    assert read_header(found, 0).base_offset == 3
    assert log.directory.online


def test_the_snapshots_of_merged_segments_go(folder: LogFolder) -> None:
    assert folder.names(SNAPSHOT) == [numbered(offset, SNAPSHOT) for offset in (1, 2, 3, 4, 5)]
    swap(folder.log, cleaned(folder.log))
    assert folder.names(SNAPSHOT) == [numbered(offset, SNAPSHOT) for offset in (1, 4, 5)]


def test_a_committed_reader_never_sees_aborted_records_from_before_with_an_index_from_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cleaned segment has neither the aborted records nor their entry."""
    log = LogFolder(tmp_path, ONE_BATCH_EACH).log
    append_transactional(log, 7, 0)
    end_transaction(log, 7, committed=False)
    append_values(log, b"last")
    replacement = cleaned(log, 0, 2, keep=lambda offset: offset == 1)
    real = committed_reads.with_aborted

    def with_aborted(*arguments: object) -> object:
        monkeypatch.setattr(committed_reads, "with_aborted", real)
        swap(log, replacement)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(committed_reads, "with_aborted", with_aborted)
    found = log.read_committed(0, 1 << 20, 3)
    assert read_header(found.records, 0).base_offset == 1


@pytest.mark.parametrize("opening", range(1, 7))
def test_a_swap_before_any_file_that_a_committed_reader_opens_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opening: int
) -> None:
    """An aborted transaction begins in a segment that is replaced, and ends in one that is not."""
    folder = LogFolder(tmp_path, ONE_BATCH_EACH)
    for producer_id in (7, 8):
        append_transactional(folder.log, producer_id, 0)
        end_transaction(folder.log, producer_id, committed=False)
    append_values(folder.log, b"last")
    log = folder.reopen(clean=True)
    replacement = cleaned(log, 0, 3, keep=lambda offset: offset == 1)
    log.directory.readers.close_idle()
    swap_before_opening(opening, log, replacement, monkeypatch)
    found = log.read_committed(2, 1 << 20, 5)
    first = read_header(found.records, 0).base_offset
    assert (first, [entry.producer_id for entry in found.aborted]) in ((2, [8]), (3, [8]), (3, []))
    assert log.directory.online


def test_a_flush_that_meets_a_replaced_segment_goes_on(folder: LogFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    log = folder.log
    swap_before_opening(1, log, cleaned(log), monkeypatch)
    assert log.flush() == 6


def test_look_ups_by_time_go_on_after_a_swap(folder: LogFolder) -> None:
    log = folder.log
    append_values(log, b"newest", timestamp=NOW_MS + 5)
    swap(log, cleaned(log))
    found = log.offset_for_timestamp(NOW_MS + 1)
    assert found is not None
    assert found.offset == 6


# What gets in between


def truncate(log: Log) -> None:
    truncate_to(log, 2, now_ms=NOW_MS)


def truncate_all(log: Log) -> None:
    truncate_fully_and_start_at(log, 9, now_ms=NOW_MS)


def delete_records(log: Log) -> None:
    log.advance_log_start_offset(3)


def retain(log: Log) -> None:
    log.delete_old_segments(2, now_ms=NOW_MS)


def delete(log: Log) -> None:
    log.delete()


@pytest.mark.parametrize("change", [truncate, truncate_all, delete_records, retain, delete])
def test_a_log_that_has_changed_is_not_swapped(folder: LogFolder, change: Callable[[Log], None]) -> None:
    log = folder.log
    replacement = cleaned(log)
    change(log)
    with pytest.raises(CleaningStopped):
        log.swaps.begin(replacement)


@pytest.mark.parametrize("change", [truncate, truncate_all, delete_records, retain])
def test_what_changes_between_the_two_steps_of_a_swap_does_not_come_back(
    folder: LogFolder, change: Callable[[Log], None]
) -> None:
    log = folder.log
    replacement = cleaned(log)
    log.swaps.begin(replacement)
    log.swaps.sync_names()
    change(log)
    left = read_values(log)
    with pytest.raises(CleaningStopped):
        log.swaps.complete(replacement)
    assert folder.names(SWAP) == []
    assert read_values(folder.reopen(clean=False)) == left


def test_retention_of_other_segments_does_not_disturb_a_swap(folder: LogFolder) -> None:
    log = folder.log
    replacement = cleaned(log)
    log.swaps.begin(replacement)
    log.delete_old_segments(1, now_ms=NOW_MS)
    log.swaps.complete(replacement)
    assert read_values(log) == AFTER[1:]


def test_a_segment_that_was_cut_and_filled_again_is_not_taken_for_the_old_one(folder: LogFolder) -> None:
    log = folder.log
    replacement = cleaned(log)
    truncate_to(log, 3, now_ms=NOW_MS)
    for value in (b"other", b"others", b"another"):
        append_values(log, value)
    assert log.segments.all[1:3] == replacement.old[:2]
    with pytest.raises(CleaningStopped):
        log.swaps.begin(replacement)


def test_the_active_segment_is_never_replaced(folder: LogFolder) -> None:
    replacement = cleaned(folder.log, 3, 3, keep=lambda offset: True)
    with pytest.raises(CleaningStopped):
        folder.log.swaps.begin(replacement)


# Crashes


class Killed(BaseException):
    """The process is dead."""


class MortalFiles(ForgetfulFiles):
    """Of a process that dies before one of its changes to names."""

    lives: int | None = None

    def _step(self) -> None:
        if self.lives is not None:
            self.lives -= 1
            if self.lives < 0:
                raise Killed

    def rename(self, old: str, new: str) -> None:
        self._step()
        super().rename(old, new)

    def unlink(self, path: str) -> None:
        self._step()
        super().unlink(path)

    def fsync_dir(self, path: str) -> None:
        self._step()
        super().fsync_dir(path)


def filled(files: MortalFiles, config: LogConfig) -> tuple[LogManager, Log]:
    manager = open_manager(BROKER, config, files)
    log = fill(manager.create(PARTITION, random_uuid(), config))
    manager.secure(log, log.log_end_offset)
    return manager, log


def after_death(files: MortalFiles, config: LogConfig) -> Log:
    files.lives = None
    log = open_manager(BROKER, config, files).get(PARTITION)
    assert log is not None
    return log


@pytest.mark.parametrize("power_cut", [False, True], ids=["kill", "power cut"])
def test_a_crash_at_any_step_of_a_swap_leaves_the_old_segments_or_the_new_one(power_cut: bool) -> None:
    """And a crash at any step of the start that follows does, too."""
    outcomes = set()
    for lives in range(40):
        files = MortalFiles()
        _, log = filled(files, ONE_BATCH_EACH)
        replacement = cleaned(log)
        files.lives = lives
        with contextlib.suppress(Killed):
            swap(log, replacement)
        rng = random.Random(lives)
        if power_cut:
            files.crash(rng)
        for starts in range(3):
            files.lives = starts * 3
            with contextlib.suppress(Killed):
                open_manager(BROKER, ONE_BATCH_EACH, files).abandon()
            if power_cut:
                files.crash(rng)
        found = read_values(after_death(files, ONE_BATCH_EACH))
        assert found in (BEFORE, AFTER)
        outcomes.add(found == AFTER)
        assert not [name for name in files.listdir(log.folder) if name.endswith((SWAP, CLEANED))]
    assert outcomes == {False, True}


@pytest.mark.parametrize("seed", range(10))
def test_a_swap_is_durable_when_the_names_are_synced(seed: int) -> None:
    files = MortalFiles()
    _, log = filled(files, ONE_BATCH_EACH)
    swap(log, cleaned(log))
    files.crash(random.Random(seed))
    assert read_values(after_death(files, ONE_BATCH_EACH)) == AFTER


def test_gaps_that_cleaning_made_survive_a_crash_when_the_topic_is_no_longer_compacted() -> None:
    """A start looks for gaps behind the recovery point, where a power cut may have made them; never before it."""
    files = MortalFiles()
    manager, log = filled(files, ONE_BATCH_EACH)
    swap(log, cleaned(log))
    manager.abandon()
    assert read_values(after_death(files, log_config(cleanup_policy="delete", segment_bytes=100))) == AFTER


def test_a_segment_that_lost_everything_stays_as_an_empty_one(folder: LogFolder) -> None:
    swap(folder.log, cleaned(folder.log, keep=lambda offset: False))
    assert folder.log.segments.all[1].size == 0
    expected = [BEFORE[0], *BEFORE[4:]]
    assert read_values(folder.log, 1) == expected[1:]
    assert read_values(folder.reopen(clean=False)) == expected
    assert folder.log.segments.base_offsets == (0, 1, 4, 5)


# What a start may find, file by file


def at_start(folder: LogFolder, arrange: Callable[[Replacement], None]) -> Contents:
    replacement = cleaned(folder.log)
    folder.manager.checkpoint()
    folder.manager.abandon()
    arrange(replacement)
    found = read_values(folder.open_again())
    assert folder.names(CLEANED, SWAP, DELETED) == []
    return found


def move(segment: Segment, suffix: str, old_mark: str, new_mark: str) -> None:
    path = Path(segment.path(suffix))
    path.with_name(path.name + old_mark).rename(path.with_name(path.name + new_mark))


def test_a_start_throws_cleaned_files_away(folder: LogFolder) -> None:
    assert at_start(folder, lambda replacement: None) == BEFORE


def test_a_start_throws_away_what_is_only_partly_renamed_to_swap(folder: LogFolder) -> None:
    assert at_start(folder, lambda replacement: move(replacement.new, LOG, CLEANED, SWAP)) == BEFORE


def test_a_start_finishes_a_swap_in_which_no_old_file_was_touched(folder: LogFolder) -> None:
    def arrange(replacement: Replacement) -> None:
        replacement.new.move_files(folder.log.directory.files, CLEANED, SWAP)

    assert at_start(folder, arrange) == AFTER


def test_a_start_finishes_a_swap_in_which_some_old_files_are_renamed(folder: LogFolder) -> None:
    def arrange(replacement: Replacement) -> None:
        replacement.new.move_files(folder.log.directory.files, CLEANED, SWAP)
        replacement.old[0].mark_deleted(folder.log.directory.files)
        move(replacement.old[1], LOG, "", DELETED)

    assert at_start(folder, arrange) == AFTER


def test_a_start_finishes_a_swap_whose_log_file_has_its_name_already(folder: LogFolder) -> None:
    """Also where the file system has not kept the order of renames, and an old segment is still there."""

    def arrange(replacement: Replacement) -> None:
        replacement.new.move_files(folder.log.directory.files, CLEANED, SWAP)
        replacement.old[0].mark_deleted(folder.log.directory.files)
        replacement.old[1].mark_deleted(folder.log.directory.files)
        move(replacement.new, LOG, SWAP, "")

    assert at_start(folder, arrange) == AFTER
    assert numbered(1, OFFSET_INDEX) in folder.names(OFFSET_INDEX)


def test_a_start_finishes_the_swap_of_one_group_and_forgets_the_next(folder: LogFolder) -> None:
    def arrange(replacement: Replacement) -> None:
        files = folder.log.directory.files
        replacement.new.move_files(files, CLEANED, SWAP)
        following = NewSegment(files, folder.log.folder, 4, 4096)
        following.create(NOW_MS)
        following.finish()

    assert at_start(folder, arrange) == AFTER


def test_two_swaps_leave_alone_what_lies_between_them(folder: LogFolder) -> None:
    second = cleaned(folder.log, 4, 1, keep=lambda offset: True)
    first = cleaned(folder.log, 0, 2, keep=lambda offset: offset == 1)
    folder.manager.checkpoint()
    folder.manager.abandon()
    for replacement in (first, second):
        replacement.new.move_files(folder.log.directory.files, CLEANED, SWAP)
    assert read_values(folder.open_again()) == BEFORE[1:]
