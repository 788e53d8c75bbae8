"""Durability: what the recovery point promises, and what a failed sync means."""

import errno
import random
import threading
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.storage.truncation import truncate_to
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.forgetful_files import ForgetfulFiles
from tests.unit.storage.logs import (
    NOW_MS,
    LogFolder,
    append,
    append_values,
    log_config,
    make_batch,
    read_values,
)


def test_a_flush_moves_the_recovery_point_to_the_end(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    log = folder.log
    assert (log.unflushed_messages, log.unflushed_since_ms) == (0, -1)
    append(log, make_batch([b"a", b"b"]))
    folder.clock.advance(5)
    append(log, make_batch([b"c"]))
    assert (log.unflushed_messages, log.unflushed_since_ms) == (3, 0), "by the steady clock"
    assert log.flush() == 3
    assert (log.unflushed_messages, log.unflushed_since_ms) == (0, -1)


def test_what_is_appended_during_a_sync_waits_for_the_next_one(tmp_path: Path) -> None:
    syncing, go_on = threading.Event(), threading.Event()

    class Held(FaultyFiles):
        def fsync(self, fd: int, /) -> None:
            syncing.set()
            assert go_on.wait(30)

    files = Held()
    go_on.set()
    log = LogFolder(tmp_path, files=files).log
    append_values(log, b"first")
    go_on.clear()
    syncing.clear()
    flushed: list[int] = []
    thread = threading.Thread(target=lambda: flushed.append(log.flush()))
    thread.start()
    assert syncing.wait(30)
    append_values(log, b"second")
    go_on.set()
    thread.join(30)
    assert flushed == [1]
    assert log.unflushed_messages == 1
    assert log.unflushed_since_ms == 0
    assert log.flush() == 2


def test_a_sync_that_overlaps_a_truncation_does_not_count(tmp_path: Path) -> None:
    syncing, go_on = threading.Event(), threading.Event()

    class HeldOnce(FaultyFiles):
        held = False

        def fsync(self, fd: int, /) -> None:
            if self.held:
                self.held = False
                syncing.set()
                assert go_on.wait(30)

    files = HeldOnce()
    log = LogFolder(tmp_path, files=files).log
    for number in range(5):
        append_values(log, b"%d" % number)
    files.held = True
    thread = threading.Thread(target=log.flush)
    thread.start()
    assert syncing.wait(30)
    truncate_to(log, 2, now_ms=NOW_MS)
    append_values(log, b"new 2")
    go_on.set()
    thread.join(30)
    assert log.recovery_point <= 2


def test_a_failed_sync_takes_the_directory_offline_and_is_never_tried_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = LogFolder(tmp_path, files=files)
    append_values(folder.log, b"a")
    files.fail("fsync", errno.EIO)
    with pytest.raises(StorageFailure):
        folder.log.flush()
    assert folder.log.recovery_point == 0
    files.recover()
    syncs = files.calls["fsync"]
    with pytest.raises(StorageFailure):
        folder.log.flush()
    assert files.calls["fsync"] == syncs
    folder.manager.close()
    assert ".kafka_cleanshutdown" not in [path.name for path in tmp_path.iterdir()]


def test_no_space_for_the_leader_epochs_holds_the_recovery_point_back(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = LogFolder(tmp_path, files=files).log
    append_values(log, b"a")
    files.fail("pwrite", errno.ENOSPC)
    with pytest.raises(Refused) as refused:
        log.flush()
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 0
    files.recover()
    assert log.flush() == 1


def test_a_flush_covers_every_segment_since_the_recovery_point(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = LogFolder(tmp_path, log_config(segment_bytes=100), files).log
    for _ in range(4):
        append_values(log, b"x" * 20)
    before = files.calls["fsync"]
    log.flush()
    # Four logs, three pairs of indexes of rolled segments, partition.metadata, and the leader epochs.
    assert files.calls["fsync"] - before == 4 + 6 + 1 + 1
    append_values(log, b"x" * 20)
    before = files.calls["fsync"]
    log.flush()
    assert files.calls["fsync"] - before <= 2 + 2


def test_a_flush_of_a_log_deleted_meanwhile_harms_nobody(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    append_values(folder.log, b"a")
    folder.manager.delete([folder.log.topic_partition])
    assert folder.log.flush() == 0
    assert folder.log.directory.offline is None


@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_takes_nothing_that_was_flushed_in_a_new_segment(seed: int) -> None:
    files = ForgetfulFiles()
    folder = LogFolder(Path("/data"), files=files)
    append_values(folder.log, b"a")
    folder.log.flush()
    folder.log.roll(now_ms=NOW_MS)
    append_values(folder.log, b"b")
    folder.log.flush()
    append_values(folder.log, b"not flushed")
    folder.manager.abandon()
    files.crash(random.Random(seed))
    assert read_values(folder.open_again())[:2] == [(0, b"a"), (1, b"b")]


def test_a_sync_up_to_a_segment_leaves_later_ones_alone(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = LogFolder(tmp_path, log_config(segment_bytes=100), files).log
    for value in (b"a", b"b", b"c"):
        append_values(log, value)
    assert log.flush(2) == 2
    assert (log.recovery_point, log.unflushed_messages) == (2, 1)
    assert log.unflushed_since_ms == 0, "the rest still waits for its time"
    partial = files.calls["fsync"]
    assert log.flush(1) == 2, "a recovery point never goes back"
    assert log.flush() == 3
    assert files.calls["fsync"] > partial
