"""LogManager truncates logs, and writes checkpoints before anything is appended to them."""

import errno
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import TopicPartition, random_uuid
from kaspar.storage import Files, Log, LogManager
from kaspar.storage.disk import checkpoints
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
