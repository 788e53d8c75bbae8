"""LogManager truncates logs, and writes checkpoints before anything is appended to them."""

import errno
import os
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from kaspar.base.clock import ManualClock
from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import TopicPartition, random_uuid
from kaspar.storage import Files, Log, LogManager
from kaspar.storage.disk import checkpoints
from kaspar.storage.segments.segment import CLOSED
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import (
    NOW_MS,
    PARTITION,
    LogFolder,
    append,
    append_values,
    broker_config,
    log_config,
    make_batch,
    open_manager,
    read_values,
)

CONFIG = log_config()
POINTS = "recovery-point-offset-checkpoint"
STARTS = "log-start-offset-checkpoint"


def offsets_in(path: Path) -> dict[str, int]:
    """The entries of a checkpoint file, by partition."""
    fields = (line.split() for line in path.read_text().splitlines()[2:])
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in fields}


def synced(folder: LogFolder, *values: bytes) -> Log:
    """A log whose records are synced and count as such."""
    for value in values:
        append_values(folder.log, value)
    folder.log.flush()
    folder.manager.checkpoint()
    return folder.log


def several(*paths: Path, count: int) -> tuple[LogManager, list[Log]]:
    manager = open_manager(broker_config(*paths), CONFIG, FaultyFiles())
    logs = [manager.create(TopicPartition("orders", number), random_uuid(), CONFIG) for number in range(count)]
    for log in logs:
        append_values(log, b"a")
        append_values(log, b"b")
        log.flush()
    manager.checkpoint()
    return manager, logs


@pytest.mark.parametrize("form", ["to", "fully"])
def test_truncated_offsets_no_longer_count_as_synced(tmp_path: Path, form: str) -> None:
    folder = LogFolder(tmp_path)
    log = synced(folder, b"a", b"b", b"c")
    assert offsets_in(tmp_path / POINTS) == {"orders-0": 3}
    if form == "to":
        failures = folder.manager.truncate_to({PARTITION: 1}, now_ms=NOW_MS)
    else:
        failures = folder.manager.truncate_fully_and_start_at({PARTITION: 1}, now_ms=NOW_MS)
    assert not failures
    assert offsets_in(tmp_path / POINTS) == {"orders-0": 1}
    append_values(log, b"new")
    append_values(log, b"newer")
    # Had the old recovery point stayed, a start would not look at these bytes.
    with open(log.segments.all[-1].path(".log"), "r+b") as file:
        file.seek(-3, 2)
        file.write(b"\0\0\0")
    folder.manager.abandon()
    kept = [(0, b"a")] if form == "to" else []
    assert read_values(folder.open_again()) == [*kept, (1, b"new")]


def test_a_log_that_is_truncated_below_its_start_begins_there_after_a_crash(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    log = synced(folder, b"a", b"b", b"c")
    log.advance_log_start_offset(3)
    folder.manager.checkpoint()
    assert offsets_in(tmp_path / STARTS) == {"orders-0": 3}
    assert not folder.manager.truncate_fully_and_start_at({PARTITION: 1}, now_ms=NOW_MS)
    assert offsets_in(tmp_path / STARTS) == {"orders-0": 1}
    append_values(log, b"new")
    log.flush()
    folder.manager.abandon()
    assert read_values(folder.open_again()) == [(1, b"new")]


def test_a_log_start_that_could_not_be_written_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = LogFolder(tmp_path)
    log = synced(folder, b"a", b"b", b"c")
    log.advance_log_start_offset(3)
    folder.manager.checkpoint()
    real = checkpoints.write_offsets

    def full(files: Files, path: str, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        if name == STARTS:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(files, path, name, offsets)

    monkeypatch.setattr(checkpoints, "write_offsets", full)
    failures = folder.manager.truncate_fully_and_start_at({PARTITION: 1}, now_ms=NOW_MS)
    assert isinstance(failures[PARTITION], Refused)
    monkeypatch.undo()
    assert not folder.manager.truncate_fully_and_start_at({PARTITION: 1}, now_ms=NOW_MS)


def test_many_partitions_are_written_down_once_for_each_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, logs = several(tmp_path / "a", tmp_path / "b", tmp_path / "c", count=30)
    written = Counter[str]()
    real = checkpoints.write_offsets

    def counted(files: Files, path: str, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        written[f"{Path(path).name}/{name}"] += 1
        real(files, path, name, offsets)

    monkeypatch.setattr(checkpoints, "write_offsets", counted)
    some = {log.topic_partition: 1 for log in logs if Path(log.directory.path).name != "c"}
    assert len(some) == 20
    assert manager.truncate_to(some, now_ms=NOW_MS) == {}
    assert written == {f"{folder}/{name}": 1 for folder in "ab" for name in (POINTS, STARTS)}
    for folder in "ab":
        assert set(offsets_in(tmp_path / folder / POINTS).values()) == {1}
    assert all(log.log_end_offset == (1 if log.topic_partition in some else 2) for log in logs)


def test_a_partition_that_fails_does_not_keep_the_others_from_being_truncated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, logs = several(tmp_path / "bad", tmp_path / "good", count=4)
    real = checkpoints.write_offsets

    def failing(files: Files, path: str, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        if Path(path).name == "bad":
            raise OSError(errno.EIO, "Input/output error")
        real(files, path, name, offsets)

    monkeypatch.setattr(checkpoints, "write_offsets", failing)
    unknown = TopicPartition("unknown", 0)
    offsets = {log.topic_partition: 1 for log in logs} | {unknown: 1}
    failures = manager.truncate_to(offsets, now_ms=NOW_MS)
    bad = {log.topic_partition for log in logs if Path(log.directory.path).name == "bad"}
    assert failures.keys() == bad | {unknown}
    assert all(isinstance(failures[partition], StorageFailure) for partition in bad)
    refused = failures[unknown]
    assert isinstance(refused, Refused)
    assert refused.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert set(offsets_in(tmp_path / "good" / POINTS).values()) == {1}


def test_the_state_of_producers_is_restored_also_where_a_full_disk_refuses_the_rest(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = LogFolder(tmp_path, files=files)
    for sequence in range(3):
        append(folder.log, make_batch(producer_id=7, producer_epoch=0, base_sequence=sequence), leader_epoch=sequence)
    folder.log.flush()
    files.fail("pwrite", errno.ENOSPC)
    assert isinstance(folder.manager.truncate_to({PARTITION: 1}, now_ms=NOW_MS)[PARTITION], Refused)
    files.recover()
    assert not folder.manager.truncate_to({PARTITION: 1}, now_ms=NOW_MS)
    (producer,) = folder.log.active_producers()
    assert (producer.last_sequence, folder.log.leader_epochs.latest_epoch) == (0, 0)


def test_an_epoch_in_which_nothing_was_written_is_forgotten_by_truncating_to_the_end(tmp_path: Path) -> None:
    """As in Kafka's UnifiedLog.truncateTo: otherwise this follower and its leader would never agree."""
    folder = LogFolder(tmp_path)
    append(folder.log, make_batch([b"a"]), leader_epoch=3)
    folder.log.leader_epochs.assign(4, 1)
    assert folder.manager.truncate_to({PARTITION: 1}, now_ms=NOW_MS) == {}
    assert (folder.log.latest_epoch, folder.log.log_end_offset) == (3, 1)


# -- a truncation that fails half-way ----------------------------------------------------------------------------------


class FailsOnce(FaultyFiles):
    """Files of which one call fails: the one after `left` others that change something."""

    left: int | None = None
    number = errno.ENOSPC
    failed: str | None = None

    def _maybe_fail(self, call: str) -> None:
        super()._maybe_fail(call)
        if self.left is None or call in ("pread_cached", "will_need"):
            return
        if self.left == 0:
            self.left, self.failed = None, call
            raise OSError(self.number, os.strerror(self.number))
        self.left -= 1


def numbered_log(path: Path, files: Files, segment_bytes: int) -> LogFolder:
    """Twelve batches of one producer, in three leader epochs; every batch is in the index."""
    folder = LogFolder(path, log_config(segment_bytes=segment_bytes, index_interval_bytes=1), files)
    for number in range(12):
        batch = make_batch([b"old %d" % number], producer_id=7, producer_epoch=0, base_sequence=number)
        append(folder.log, batch, leader_epoch=number // 4)
    folder.log.flush()
    folder.manager.checkpoint()
    return folder


def goes_on_after(folder: LogFolder, end: int) -> None:
    """The log ends there, for readers, producers and followers, and after a crash too."""
    log = folder.log
    for number in range(3):
        batch = make_batch([b"new %d" % number], producer_id=7, producer_epoch=0, base_sequence=end + number)
        append(log, batch, leader_epoch=5)
    kept = [(offset, b"old %d" % offset) for offset in range(end)]
    wanted = [*kept, *((end + number, b"new %d" % number) for number in range(3))]
    assert read_values(log) == wanted
    assert [read_values(log, offset)[0] for offset in range(end + 3)] == wanted
    assert log.leader_epochs.entries == (*(each for each in ((0, 0), (1, 4), (2, 8)) if each[1] < end), (5, end))
    log.flush()
    assert read_values(folder.reopen(clean=False)) == wanted


@pytest.mark.parametrize("segment_bytes", [300, 10_000])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_a_truncation_that_fails_half_way_is_finished_when_it_is_repeated(
    tmp_path: Path, number: int, segment_bytes: int
) -> None:
    """Whichever call fails: what is repeated is not the same as nothing to do."""
    failed: set[str] = set()
    for left in range(200):
        files = FailsOnce()
        files.number = number
        folder = numbered_log(tmp_path / str(left), files, segment_bytes)
        files.left = left
        failures = folder.manager.truncate_to({PARTITION: 5}, now_ms=NOW_MS)
        files.left = None
        if files.failed is None:
            break
        failed.add(files.failed)
        if failures:
            assert isinstance(failures[PARTITION], Refused)
            with pytest.raises(Refused, match="has to be finished first"):
                append_values(folder.log, b"too early")
            assert folder.manager.truncate_to({PARTITION: 9}, now_ms=NOW_MS) == {}
        goes_on_after(folder, 5)
    assert {"open", "truncate", "fsync", "pwrite"} <= failed


def test_a_log_that_could_not_start_anew_does_so_when_it_is_truncated_again(tmp_path: Path) -> None:
    for left in range(200):
        files = FailsOnce()
        folder = numbered_log(tmp_path / str(left), files, 300)
        files.left = left
        failures = folder.manager.truncate_fully_and_start_at({PARTITION: 20}, now_ms=NOW_MS)
        files.left = None
        if files.failed is None:
            break
        if failures:
            assert folder.manager.truncate_to({PARTITION: 30}, now_ms=NOW_MS) == {}
        assert (folder.log.log_start_offset, folder.log.log_end_offset) == (20, 20)
        append(folder.log, make_batch([b"new"]), leader_epoch=5)
        assert read_values(folder.log) == [(20, b"new")]
        folder.log.flush()
        assert read_values(folder.reopen(clean=False)) == [(20, b"new")]
    assert left > 10


def test_a_log_that_is_truncated_in_part_is_not_closed_as_if_it_were_sound(tmp_path: Path) -> None:
    files = FailsOnce()
    folder = numbered_log(tmp_path, files, 10_000)
    files.left = 3
    assert folder.manager.truncate_to({PARTITION: 5}, now_ms=NOW_MS)
    files.left = None
    log = folder.reopen(clean=True)
    (producer,) = log.active_producers()
    assert producer.last_sequence == log.log_end_offset - 1, "what is left of the records is what is known of them"


# -- beside other threads ----------------------------------------------------------------------------------------------


def test_a_truncation_closes_no_file_that_another_log_appends_to(tmp_path: Path) -> None:
    """It runs in a thread, beside the event loop's appends: a descriptor that is closed under an append, and perhaps
    opened again for another file, would take the record there.
    """
    manager = LogManager(broker_config(tmp_path), ManualClock(NOW_MS), most_open_files=3)
    manager.open()
    manager.load(lambda topic: CONFIG)
    logs = [manager.create(TopicPartition("orders", number), random_uuid(), CONFIG) for number in range(4)]
    for log in logs:
        append_values(log, b"a")
        append_values(log, b"b")
    assert [log.segments.all[-1].fd != CLOSED for log in logs] == [False, True, True, True]
    assert manager.truncate_to({logs[0].topic_partition: 1}, now_ms=NOW_MS) == {}
    assert [log.segments.all[-1].fd != CLOSED for log in logs] == [False, True, True, True]
    append_values(logs[0], b"new")
    assert read_values(logs[0]) == [(0, b"a"), (1, b"new")]


def test_appends_to_other_logs_close_no_file_that_is_being_truncated(tmp_path: Path) -> None:
    appending: list[Log] = []

    class AppendsMeanwhile(FaultyFiles):
        def truncate(self, fd: int, size: int, /) -> None:
            for log in appending:
                append_values(log, b"c")
            super().truncate(fd, size)

    manager = LogManager(
        broker_config(tmp_path), ManualClock(NOW_MS), AppendsMeanwhile(), most_open_files=1, lock_directories=False
    )
    manager.open()
    manager.load(lambda topic: CONFIG)
    logs = [manager.create(TopicPartition("orders", number), random_uuid(), CONFIG) for number in range(3)]
    for log in logs:
        append_values(log, b"a")
        append_values(log, b"b")
    append_values(logs[0], b"c")
    appending += logs[1:]
    assert manager.truncate_to({logs[0].topic_partition: 1}, now_ms=NOW_MS) == {}
    assert read_values(logs[0]) == [(0, b"a")]
    for log in logs[1:]:
        assert [value for _, value in read_values(log)][:3] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("to", [1, 4])
def test_a_sync_that_begins_during_a_truncation_counts_no_removed_record(tmp_path: Path, to: int) -> None:
    """The log begins anew at an offset below its old end, while a sync runs."""
    syncs: list[threading.Thread] = []

    class SyncsMeanwhile(FaultyFiles):
        def rename(self, old: str, new: str) -> None:
            super().rename(old, new)
            if new.endswith(".log.deleted") and not syncs:
                syncs.append(threading.Thread(target=folder.log.flush))
                syncs[0].start()
                syncs[0].join(0.2)  # as far as it gets

    folder = LogFolder(tmp_path, files=SyncsMeanwhile())
    for value in (b"a", b"b", b"c"):
        append_values(folder.log, value)
    assert folder.manager.truncate_fully_and_start_at({PARTITION: to}, now_ms=NOW_MS) == {}
    syncs[0].join(30)
    assert folder.log.directory.offline is None
    assert folder.log.recovery_point == to


def test_a_sync_and_a_truncation_may_both_write_the_leader_epochs(tmp_path: Path) -> None:
    syncing, go_on = threading.Event(), threading.Event()

    class Held(FaultyFiles):
        def fsync(self, fd: int, /) -> None:
            if self._paths[fd].endswith("leader-epoch-checkpoint.tmp") and not syncing.is_set():
                syncing.set()
                assert go_on.wait(30)

    folder = LogFolder(tmp_path, files=Held())
    log = folder.log
    for number in range(3):
        append(log, make_batch([b"a"]), leader_epoch=number)
    failures: list[object] = []
    sync = threading.Thread(target=log.flush)
    sync.start()
    assert syncing.wait(30)
    truncate = threading.Thread(
        target=lambda: failures.append(folder.manager.truncate_to({PARTITION: 1}, now_ms=NOW_MS))
    )
    truncate.start()
    truncate.join(0.2)  # as far as it gets
    go_on.set()
    sync.join(30)
    truncate.join(30)
    assert failures == [{}]
    assert log.directory.offline is None
    assert folder.reopen(clean=False).leader_epochs.entries == ((0, 0),)
