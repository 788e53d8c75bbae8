"""Snapshots of many producers are taken by a roll and written by a thread: of the offset in their name, or none."""

import errno
import os
import threading
from pathlib import Path

import pytest

from kaspar.base.ids import random_uuid
from kaspar.storage import Log
from kaspar.storage.disk.file_names import SNAPSHOT, numbered
from kaspar.storage.producers import snapshots
from kaspar.storage.producers.snapshot_file import read_snapshot
from kaspar.storage.truncation import truncate_to
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import NOW_MS, PARTITION, LogFolder, append, make_batch

SMALL = 3
DAY_MS = 24 * 60 * 60_000


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SMALL", SMALL)


class HeldRenames(FaultyFiles):
    """The writing of a snapshot stops before its file gets its name, until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def rename(self, old: str, new: str, /) -> None:
        if new.endswith(SNAPSHOT):
            self.reached.set()
            assert self.go_on.wait(30)
        super().rename(old, new)

    def hold(self) -> None:
        self.reached.clear()
        self.go_on.clear()


def send(log: Log, sequence: int, *producers: int) -> None:
    for producer_id in producers:
        append(log, make_batch(producer_id=producer_id, producer_epoch=0, base_sequence=sequence))


def is_duplicate(log: Log, sequence: int, producer_id: int) -> bool:
    return append(log, make_batch(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)).duplicate


def rolled(folder: LogFolder, producers: int = 5) -> Log:
    """A log of many producers that was rolled just now, at the offset that is their number."""
    send(folder.log, 0, *range(producers))
    folder.log.roll(now_ms=NOW_MS)
    return folder.log


def snapshot_names(folder: LogFolder) -> list[str]:
    return folder.names(SNAPSHOT)


def test_a_small_snapshot_is_written_by_the_roll_and_a_large_one_later(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    rolled(folder, SMALL)
    assert snapshot_names(folder) == [numbered(SMALL, SNAPSHOT)]
    send(folder.log, 0, 8, 9)
    folder.log.roll(now_ms=NOW_MS)
    assert snapshot_names(folder) == [numbered(SMALL, SNAPSHOT)]
    folder.log.maintain(0)
    assert snapshot_names(folder) == [numbered(SMALL, SNAPSHOT), numbered(SMALL + 2, SNAPSHOT)]


def test_a_snapshot_has_the_producers_as_they_were_at_its_offset_whatever_came_afterwards(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    log = rolled(folder)
    send(log, 1, 0, 1, 77)
    log.write_snapshots()
    entries = {entry.producer_id: entry for entry in read_snapshot(log.directory.files, log.folder, 5)}
    assert entries.keys() == set(range(5))
    assert {entry.last_sequence for entry in entries.values()} == {0}
    assert max(entry.last_offset for entry in entries.values()) == 4


def test_several_rolls_before_a_thread_comes_to_write_give_a_snapshot_each(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    log = rolled(folder)
    for sequence in (1, 2):
        send(log, sequence, 0)
        log.roll(now_ms=NOW_MS)
    log.write_snapshots()
    files = log.directory.files
    last = {offset: read_snapshot(files, log.folder, offset) for offset in (5, 6, 7)}
    found = {offset: max(entry.last_sequence for entry in entries) for offset, entries in last.items()}
    assert found == {5: 0, 6: 1, 7: 2}


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("synced", [True, False])
def test_a_crash_before_or_after_it_is_written_forgets_no_producer(tmp_path: Path, written: bool, synced: bool) -> None:
    folder = LogFolder(tmp_path)
    log = rolled(folder)
    send(log, 1, 0)
    if written:
        log.write_snapshots()
    if synced:
        log.flush()
    log = folder.reopen(clean=False)
    assert is_duplicate(log, 1, 0)
    assert is_duplicate(log, 0, 4)


def test_a_clean_stop_writes_what_was_taken(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    send(rolled(folder), 1, 0)
    log = folder.reopen(clean=True)
    assert snapshot_names(folder) == [numbered(5, SNAPSHOT), numbered(6, SNAPSHOT)]
    assert is_duplicate(log, 1, 0)


def test_what_was_taken_of_records_that_are_cut_off_is_never_written(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    log = rolled(folder)
    truncate_to(log, 3, now_ms=NOW_MS)
    log.write_snapshots()
    assert snapshot_names(folder) == []
    send(log, 0, 93, 94)
    log.roll(now_ms=NOW_MS)
    log.write_snapshots()
    log = folder.reopen(clean=False)
    assert is_duplicate(log, 0, 94)
    assert not is_duplicate(log, 0, 4), "it was cut off"


def test_a_cut_waits_for_a_snapshot_that_is_being_written_and_removes_it(tmp_path: Path) -> None:
    files = HeldRenames()
    folder = LogFolder(tmp_path, files=files)
    log = rolled(folder)
    files.hold()
    writer = threading.Thread(target=log.write_snapshots)
    writer.start()
    assert files.reached.wait(30)
    cut = threading.Thread(target=lambda: truncate_to(log, 3, now_ms=NOW_MS))
    cut.start()
    files.go_on.set()
    cut.join(30)
    writer.join(30)
    assert snapshot_names(folder) == []
    assert log.snapshots.written == []


def test_one_that_is_of_no_use_any_more_while_it_is_written_goes_and_nobody_waits(tmp_path: Path) -> None:
    files = HeldRenames()
    folder = LogFolder(tmp_path, files=files)
    log = rolled(folder)
    send(log, 1, *range(5))
    log.roll(now_ms=NOW_MS)
    files.hold()
    writer = threading.Thread(target=log.write_snapshots)
    writer.start()
    assert files.reached.wait(30)
    log.snapshots.drop(5)  # would wait here for ever
    files.go_on.set()
    writer.join(30)
    assert snapshot_names(folder) == [numbered(10, SNAPSHOT)]


@pytest.mark.parametrize("rolls", [True, False])
def test_segments_stay_until_the_snapshot_behind_them_is_written(tmp_path: Path, rolls: bool) -> None:
    """Their producers are known from nowhere else: after a crash, their last batches would be taken for new ones."""
    folder = LogFolder(tmp_path)
    send(folder.log, 0, *range(5))
    if rolls:
        folder.log.roll(now_ms=NOW_MS)
    folder.log.delete_old_segments(5, now_ms=NOW_MS)
    assert folder.log.waits_for_snapshots
    log = folder.reopen(clean=False)
    assert log.log_start_offset == 5
    assert all(is_duplicate(log, 0, producer_id) for producer_id in range(5))
    send(log, 1, *range(5))
    log.delete_old_segments(10, now_ms=NOW_MS)
    log.write_snapshots()
    assert not log.waits_for_snapshots
    assert log.drop_old_segments(10) > 0
    log = folder.reopen(clean=False)
    assert log.segments.base_offsets == (10,)
    assert all(is_duplicate(log, 1, producer_id) for producer_id in range(5))


def test_segments_that_a_recovery_has_read_may_be_deleted_before_the_next_crash(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    rolled(folder)
    folder.log.write_snapshots()
    send(folder.log, 0, 7)
    folder.log.roll(now_ms=NOW_MS)
    folder.log.write_snapshots()
    send(folder.log, 0, 8)
    before = snapshot_names(folder)
    log = folder.reopen(clean=False)
    assert snapshot_names(folder) == before
    log.delete_old_segments(5, now_ms=NOW_MS)
    log = folder.reopen(clean=False)
    assert log.segments.base_offsets == (5, 6)
    assert all(is_duplicate(log, 0, producer_id) for producer_id in (*range(5), 7, 8))


def test_nothing_is_written_into_the_folder_of_a_deleted_log(tmp_path: Path) -> None:
    """Its name may be that of another topic's log, whose producers these are not."""
    files = HeldRenames()
    folder = LogFolder(tmp_path, files=files)
    log = rolled(folder)
    send(log, 1, *range(5))
    log.roll(now_ms=NOW_MS)
    files.hold()
    writer = threading.Thread(target=lambda: log.maintain(0))
    writer.start()
    assert files.reached.wait(30)
    deletion = threading.Thread(target=lambda: folder.manager.delete([PARTITION]))
    deletion.start()
    files.go_on.set()
    deletion.join(30)
    writer.join(30)
    folder.log = folder.manager.create(PARTITION, random_uuid(), folder.config)
    log.maintain(0)
    log.write_snapshots()
    assert snapshot_names(folder) == []
    assert folder.log.directory.online


def test_a_full_disk_leaves_it_out(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = LogFolder(tmp_path, files=files)
    log = rolled(folder)
    files.fail("pwrite", errno.ENOSPC)
    log.maintain(0)
    files.recover()
    log.maintain(0)
    assert snapshot_names(folder) == []
    assert not [name for name in os.listdir(log.folder) if name.endswith(".tmp")]
    assert is_duplicate(folder.reopen(clean=False), 0, 4)


@pytest.mark.parametrize("clean", [True, False])
def test_a_retry_after_a_start_is_found_to_be_one_however_old_its_records_are(tmp_path: Path, clean: bool) -> None:
    """A producer that brings in the records of last year may not have heard the broker's last response."""
    folder = LogFolder(tmp_path)
    old = make_batch(producer_id=1, producer_epoch=0, base_sequence=0, timestamp=NOW_MS - 365 * DAY_MS)
    append(folder.log, bytearray(old))
    folder.log.roll(now_ms=NOW_MS)
    folder.log.flush()
    log = folder.reopen(clean=clean)
    assert append(log, bytearray(old)).duplicate
