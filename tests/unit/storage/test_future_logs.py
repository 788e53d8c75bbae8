"""A log moves to another log directory: its copy follows it and takes its place in one step, whatever crashes."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition, random_uuid
from kaspar.storage import Log, LogManager
from kaspar.storage.disk.file_names import MOVED_HERE, parse_mark
from tests.property.compaction_model import Killed, MortalFiles
from tests.unit.storage.forgetful_files import ForgetfulFiles
from tests.unit.storage.logs import (
    NOW_MS,
    PARTITION,
    append,
    append_transactional,
    append_values,
    broker_config,
    end_transaction,
    log_config,
    make_batch,
    open_manager,
    read_values,
)

CONFIG = log_config(segment_bytes=400)
FIRST, SECOND = "/disk-1", "/disk-2"
BROKER = broker_config(FIRST, SECOND)
LATEST_EPOCH = 1 << 30
SEEDS = 5
TOPIC_ID = random_uuid()


class ForgetfulFolders(MortalFiles):
    """Also the names of folders are forgotten, unless the folder that they are in was synced."""

    def __init__(self) -> None:
        super().__init__()
        self._renamed: dict[str, list[tuple[str, str]]] = {}

    def _rename_folder(self, old: str, new: str) -> None:
        super()._rename_folder(old, new)
        self._renamed.setdefault(os.path.dirname(old), []).append((old, new))

    def fsync_dir(self, path: str) -> None:
        super().fsync_dir(path)
        self._renamed.pop(path, None)

    def crash(self, rng: random.Random) -> None:
        for _, renamed in sorted(self._renamed.items()):
            for old, new in reversed(renamed[rng.randint(0, len(renamed)) :]):
                super()._rename_folder(new, old)
        self._renamed.clear()
        super().crash(rng)


def new_log(files: ForgetfulFiles) -> tuple[LogManager, Log]:
    manager = open_manager(BROKER, CONFIG, files)
    manager.prefer(PARTITION, FIRST)
    return manager, manager.create(PARTITION, random_uuid(), CONFIG)


def copy_some(current: Log, future: Log, size: int = 300) -> bool:
    """Whether there was something to copy."""
    if future.log_end_offset >= current.log_end_offset:
        return False
    data = current.read(future.log_end_offset, size, current.log_end_offset)
    future.append_fetched(future.check_fetched(data, leader_epoch=LATEST_EPOCH), now_ms=NOW_MS)
    return True


def copy_all(current: Log, future: Log) -> None:
    while copy_some(current, future):
        pass


def move(manager: LogManager, current: Log, path: str) -> Log:
    future = manager.create_future(current, path, current.config)
    copy_all(current, future)
    manager.futures.prepare(current, future)
    manager.swap(current, future)
    manager.retire(current, future)
    return future


def folders(files: ForgetfulFiles, path: str) -> list[str]:
    """What is in a log directory: the partition's name, or the mark of its folder."""
    names = [name for name in files.listdir(path) if name.startswith(str(PARTITION))]
    return sorted(parse_mark(name) or name for name in names)


def test_a_copy_takes_the_place_of_the_log() -> None:
    files = ForgetfulFiles()
    manager, current = new_log(files)
    for number in range(20):
        append_values(current, b"v%d" % number)
    before = read_values(current)
    moved = move(manager, current, SECOND)
    assert manager.get(PARTITION) is moved
    assert moved.folder == f"{SECOND}/{PARTITION}"
    assert read_values(moved) == before
    append_values(moved, b"after")
    assert folders(files, FIRST) == ["delete"]
    assert folders(files, SECOND) == [str(PARTITION)]
    assert MOVED_HERE not in files.listdir(moved.folder)
    assert read_values(current) == before, "reads that began before go on"
    manager.close()
    reopened = open_manager(BROKER, CONFIG, files).get(PARTITION)
    assert reopened is not None
    assert reopened.directory.path == SECOND
    assert read_values(reopened) == [*before, (20, b"after")]


def test_what_is_known_beside_the_records_moves_too() -> None:
    manager, current = new_log(ForgetfulFiles())
    append_transactional(current, 7, 0)
    append(current, make_batch(), leader_epoch=3)
    end_transaction(current, 7, committed=False)
    append_transactional(current, 7, 1)
    current.leader_epochs.assign(5, current.log_end_offset)  # elected, and nothing written yet
    open_transaction = current.last_stable_offset(current.log_end_offset)
    moved = move(manager, current, SECOND)
    assert moved.latest_epoch == 5
    assert moved.leader_epochs.entries == current.leader_epochs.entries
    assert moved.last_stable_offset(moved.log_end_offset) == open_transaction
    assert moved.producers is current.producers
    read = moved.read_committed(0, 1 << 20, moved.log_end_offset)
    assert [aborted.producer_id for aborted in read.aborted] == [7]


def test_a_copy_is_truncated_with_its_log() -> None:
    manager, current = new_log(ForgetfulFiles())
    for number in range(10):
        append_values(current, b"v%d" % number)
    future = manager.create_future(current, SECOND, CONFIG)
    copy_all(current, future)
    assert manager.truncate_to({PARTITION: 4}, now_ms=NOW_MS) == {}
    assert future.log_end_offset == 4
    append(current, make_batch([b"other"]), leader_epoch=1)
    copy_all(current, future)
    assert read_values(future) == read_values(current)


def test_a_start_goes_on_with_a_move() -> None:
    files = ForgetfulFiles()
    manager, current = new_log(files)
    for number in range(10):
        append_values(current, b"v%d" % number)
    future = manager.create_future(current, SECOND, CONFIG)
    copy_some(current, future)
    copied = future.log_end_offset
    assert 0 < copied < 10
    manager.close()
    manager = open_manager(BROKER, CONFIG, files)
    found, log = manager.futures.get(PARTITION), manager.get(PARTITION)
    assert found is not None
    assert log is not None
    assert found.log_end_offset == copied
    copy_all(log, found)
    manager.futures.prepare(log, found)
    manager.swap(log, found)
    assert read_values(found) == read_values(log)


def test_a_copy_that_was_offline_while_its_log_was_rewritten_is_truncated_by_leader_epochs() -> None:
    files = ForgetfulFiles()
    manager, current = new_log(files)
    for number in range(10):
        append(current, make_batch([b"v%d" % number]), leader_epoch=1)
    copy_all(current, manager.create_future(current, SECOND, CONFIG))
    manager.close()
    # Meanwhile the second directory is not there, and another leader writes.
    alone = open_manager(broker_config(FIRST), CONFIG, files)
    alone.truncate_to({PARTITION: 4}, now_ms=NOW_MS)
    log = alone.get(PARTITION)
    assert log is not None
    for number in range(10):
        append(log, make_batch([b"w%d" % number]), leader_epoch=2)
    alone.close()
    manager = open_manager(BROKER, CONFIG, files)
    future = manager.futures.get(PARTITION)
    assert future is not None
    assert future.log_end_offset == 4


def test_a_cancelled_copy_and_a_copy_of_a_deleted_partition_are_removed() -> None:
    files = ForgetfulFiles()
    manager, current = new_log(files)
    append_values(current, b"v")
    manager.create_future(current, SECOND, CONFIG)
    manager.delete_future(PARTITION)
    assert manager.futures.get(PARTITION) is None
    assert folders(files, SECOND) == ["delete"]
    manager.create_future(current, SECOND, CONFIG)
    manager.delete([PARTITION])
    assert folders(files, FIRST) == ["delete"]
    assert folders(files, SECOND) == ["delete", "delete"]


def test_a_copy_without_its_log_is_left_alone_until_a_new_log_is_created() -> None:
    files = ForgetfulFiles()
    manager, current = new_log(files)
    append_values(current, b"v")
    copy_all(current, manager.create_future(current, SECOND, CONFIG))
    manager.close()
    alone = open_manager(broker_config(SECOND), CONFIG, files)
    assert alone.get(PARTITION) is None
    assert alone.futures.get(PARTITION) is None
    assert folders(files, SECOND) == ["future"]
    alone.create(PARTITION, random_uuid(), CONFIG)
    assert folders(files, SECOND) == ["delete", str(PARTITION)]


def test_a_directory_that_fails_takes_its_copies_along(tmp_path: Path) -> None:
    config = broker_config(tmp_path / "a", tmp_path / "b")
    manager = open_manager(config, CONFIG)
    current = manager.create(PARTITION, random_uuid(), CONFIG)
    other = str(next(tmp_path / name for name in "ab" if str(tmp_path / name) != current.directory.path))
    manager.create_future(current, other, CONFIG)
    assert manager.take_offline(other, "it failed") == []
    assert manager.futures.get(PARTITION) is None
    assert manager.get(PARTITION) is current


def test_a_topic_name_may_be_too_long_to_be_moved() -> None:
    manager = open_manager(BROKER, CONFIG, ForgetfulFiles())
    longest = TopicPartition("x" * 213, 0)
    manager.futures.folder_for(manager.directories[0], longest)
    with pytest.raises(Refused) as refused:
        manager.futures.folder_for(manager.directories[0], TopicPartition("x" * 214, 0))
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


class Life:
    """A broker that moves a log to and fro, appends and syncs, until it is killed."""

    def __init__(self, files: ForgetfulFolders, rng: random.Random) -> None:
        self.files = files
        self.rng = rng
        self.values: list[bytes] = []
        self.acknowledged = 0
        """How many are in the log, for a process that reads it."""
        self.synced = 0

    def run(self) -> None:
        manager = open_manager(BROKER, CONFIG, self.files)
        log = manager.get(PARTITION)
        if log is None:
            log = manager.create(PARTITION, TOPIC_ID, CONFIG)
        if log.topic_id is None:
            manager.adopt(log, TOPIC_ID)
        for step in self._steps(manager, log):
            if self.rng.random() < 0.4:
                self._append(step)
            if self.rng.random() < 0.2:
                step.flush()
                self.synced = max(self.synced, len(self.values))
            if self.rng.random() < 0.1:
                manager.checkpoint()

    def _append(self, log: Log) -> None:
        value = b"v%d" % self.rng.getrandbits(32)
        append_values(log, value)
        self.values.append(value)
        self.acknowledged += 1

    def _steps(self, manager: LogManager, log: Log) -> Iterator[Log]:
        """Between the steps of a move anything else happens. The log that takes appends."""
        for _ in range(5):
            self._append(log)
            yield log
        for _ in range(3):
            target = SECOND if log.directory.path == FIRST else FIRST
            future = manager.futures.get(PARTITION) or manager.create_future(log, target, CONFIG)
            yield log
            while copy_some(log, future):
                yield log
            manager.futures.prepare(log, future)
            yield log
            copy_all(log, future)
            if future.recovery_point < log.recovery_point:
                future.flush()
            manager.swap(log, future)
            old, log = log, future
            self._append(log)
            yield log
            manager.retire(old, log)
            yield log


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_crash_at_any_moment_of_a_move_costs_a_record(seed: int, power_cut: bool) -> None:
    changes = seed + 1
    while True:
        files, rng = ForgetfulFolders(), random.Random(seed * 10_000 + changes)
        life = Life(files, rng)
        open_manager(BROKER, CONFIG, files).close()
        files.changes_left = changes
        try:
            life.run()
            break
        except Killed:
            files.changes_left = None
        if power_cut:
            files.crash(rng)
        manager = open_manager(BROKER, CONFIG, files)
        log = manager.get(PARTITION)
        at_least = life.synced if power_cut else life.acknowledged
        found = [] if log is None else [value for _, value in read_values(log)]
        assert len(found) >= at_least, (seed, changes)
        assert found[: len(life.values)] == life.values[: len(found)], (seed, changes)
        life.values, life.acknowledged, life.synced = [value or b"" for value in found], len(found), 0
        life.run()  # the next broker goes on
        log = open_manager(BROKER, CONFIG, files).get(PARTITION)
        assert log is not None
        assert [value for _, value in read_values(log)] == life.values, (seed, changes)
        changes += SEEDS  # each seed has its own moments, and its own life
    assert changes > 100
