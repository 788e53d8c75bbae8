"""The log directories of a broker: locks, whose they are, where partitions go, what happens when one fails."""

import errno
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kaspar.base.clock import ManualClock
from kaspar.base.errors import ErrorCode, KasparError, Refused, StorageFailure
from kaspar.base.ids import TopicPartition, random_uuid
from kaspar.config import LogConfig
from kaspar.storage import DirectoryInUse, Expected, Files, Loaded, LogManager, OsFiles
from kaspar.storage.directories import folder_metadata
from kaspar.storage.disk.file_names import MOVED_HERE
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import (
    NOW_MS,
    PARTITION,
    append,
    append_values,
    broker_config,
    log_config,
    make_batch,
    open_manager,
    read_values,
)

CONFIG = log_config()


def partition(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def test_a_second_broker_in_the_same_process_is_refused(tmp_path: Path) -> None:
    manager = open_manager(broker_config(tmp_path), CONFIG)
    with pytest.raises(DirectoryInUse, match="in this process"):
        open_manager(broker_config(tmp_path), CONFIG)
    manager.close()
    open_manager(broker_config(tmp_path), CONFIG).close()


def test_a_broker_in_another_process_is_refused(tmp_path: Path) -> None:
    manager = open_manager(broker_config(tmp_path), CONFIG)
    program = (
        "import sys\n"
        "from kaspar.storage.directories.directory_lock import DirectoryInUse, DirectoryLock\n"
        "try: DirectoryLock(sys.argv[1])\n"
        "except DirectoryInUse as error: print(error)\n"
    )
    asked = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert "in use by another broker" in asked.stdout
    manager.close()


def test_close_and_abandon_may_come_twice(tmp_path: Path) -> None:
    manager = open_manager(broker_config(tmp_path), CONFIG)
    manager.close()
    manager.close()
    manager.abandon()


def test_a_directory_knows_its_cluster_and_node(tmp_path: Path) -> None:
    manager = LogManager(broker_config(tmp_path), ManualClock())
    cluster_id = manager.open()
    directory_id = manager.directory_id(str(tmp_path))
    manager.load(lambda topic: CONFIG)
    manager.close()
    again = LogManager(broker_config(tmp_path), ManualClock())
    assert again.open() == cluster_id
    assert again.directory_id(str(tmp_path)) == directory_id
    again.abandon()
    with pytest.raises(KasparError, match="belongs to cluster"):
        LogManager(broker_config(tmp_path), ManualClock()).open("another-cluster")
    with pytest.raises(KasparError, match="belongs to node 1"):
        LogManager(broker_config(tmp_path, node_id="2"), ManualClock()).open()
    open_manager(broker_config(tmp_path), CONFIG).close()


def test_new_partitions_go_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    manager = open_manager(broker_config(first, second), CONFIG)
    places = [manager.create(partition(number), random_uuid(), CONFIG).directory.path for number in range(4)]
    assert sorted(places) == [str(first)] * 2 + [str(second)] * 2
    manager.delete([one for one, place in zip(map(partition, range(4)), places, strict=True) if place == str(second)])
    assert {manager.create(partition(number), random_uuid(), CONFIG).directory.path for number in (5, 6)} == {
        str(second)
    }
    manager.close()


def test_partitions_are_found_again(tmp_path: Path) -> None:
    manager = open_manager(broker_config(tmp_path / "a", tmp_path / "b"), CONFIG)
    ids = {partition(number): random_uuid() for number in range(5)}
    for one, topic_id in ids.items():
        append_values(manager.create(one, topic_id, CONFIG), b"in %d" % one.partition)
    manager.close()
    manager = open_manager(broker_config(tmp_path / "a", tmp_path / "b"), CONFIG)
    assert {one: log.topic_id for one, log in manager.logs.items()} == ids
    for one, log in manager.logs.items():
        assert read_values(log) == [(0, b"in %d" % one.partition)]
    manager.close()


def test_a_partition_is_created_once(tmp_path: Path) -> None:
    manager = open_manager(broker_config(tmp_path), CONFIG)
    manager.create(PARTITION, random_uuid(), CONFIG)
    with pytest.raises(Refused):
        manager.create(PARTITION, random_uuid(), CONFIG)
    manager.close()


def test_a_deleted_partition_is_renamed_and_removed_later(tmp_path: Path) -> None:
    manager = open_manager(broker_config(tmp_path, log_segment_delete_delay_ms="1000"), CONFIG)
    append_values(manager.create(PARTITION, random_uuid(), CONFIG), b"old")
    manager.delete([PARTITION])
    assert [path.name.endswith("-delete") for path in tmp_path.iterdir() if path.is_dir()] == [True]
    fresh = manager.create(PARTITION, random_uuid(), CONFIG)
    assert fresh.log_end_offset == 0
    manager.maintain(NOW_MS)
    manager.maintain(NOW_MS + 999)
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 2
    manager.maintain(NOW_MS + 1000)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [str(PARTITION)]
    manager.close()


def test_a_deletion_that_a_stop_cut_short_is_finished_by_the_next_start(tmp_path: Path) -> None:
    manager = open_manager(broker_config(tmp_path, log_segment_delete_delay_ms="0"), CONFIG)
    manager.create(PARTITION, random_uuid(), CONFIG)
    manager.delete([PARTITION])
    manager.close()
    manager = open_manager(broker_config(tmp_path, log_segment_delete_delay_ms="0"), CONFIG)
    assert not manager.logs
    manager.maintain(NOW_MS)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    manager.close()


def test_folders_marked_stray_or_future_are_left_alone(tmp_path: Path) -> None:
    marked = [f"orders-0.{'0' * 32}-stray", f"orders-1.{'0' * 32}-future"]
    for name in [*marked, "__cluster_metadata-0", "notes"]:
        (tmp_path / name).mkdir()
    manager = open_manager(broker_config(tmp_path), CONFIG)
    assert not manager.logs
    manager.close()
    assert all((tmp_path / name).is_dir() for name in marked)


class TwoFolders:
    """A partition that lies in two log directories, with a record that says in which."""

    def __init__(self, path: Path) -> None:
        self.paths = (path / "first", path / "second")
        self.ids = (random_uuid(), random_uuid())
        self.directory_ids = []
        for directory, topic_id in zip(self.paths, self.ids, strict=True):
            manager = open_manager(broker_config(directory), CONFIG)
            append_values(manager.create(PARTITION, topic_id, CONFIG), directory.name.encode())
            self.directory_ids.append(manager.directory_id(str(directory)))
            manager.close()
        self._same_cluster()

    def _same_cluster(self) -> None:
        first, second = (directory / "meta.properties" for directory in self.paths)
        cluster = next(line for line in first.read_text().splitlines() if line.startswith("cluster.id"))
        lines = [cluster if line.startswith("cluster.id") else line for line in second.read_text().splitlines()]
        second.write_text("\n".join(lines))

    def same_topic(self) -> None:
        shutil.copy(*(directory / str(PARTITION) / "partition.metadata" for directory in self.paths))

    def load(self, expected: Expected) -> LogManager:
        manager = LogManager(broker_config(*self.paths), ManualClock(NOW_MS))
        manager.open()
        try:
            manager.load(lambda topic: CONFIG, None, expected)
        except KasparError:
            manager.abandon()
            raise
        return manager

    def folders(self, number: int) -> list[str]:
        return sorted(path.name for path in self.paths[number].iterdir() if path.is_dir())


def test_a_partition_in_two_directories_is_refused_if_nothing_shows_which_is_right(tmp_path: Path) -> None:
    both = TwoFolders(tmp_path)
    with pytest.raises(KasparError, match="move all but one"):
        both.load(Expected())
    both.same_topic()
    with pytest.raises(KasparError, match="move all but one"):
        both.load(Expected({"orders": both.ids[0]}))
    assert both.folders(0) == both.folders(1) == [str(PARTITION)], "nothing was touched"


def test_of_two_folders_that_of_a_deleted_topic_goes(tmp_path: Path) -> None:
    """The topic was deleted and made again while one of the directories was away."""
    both = TwoFolders(tmp_path)
    manager = both.load(Expected({"orders": both.ids[1]}, frozenset({both.ids[0]})))
    assert read_values(manager.logs[PARTITION]) == [(0, b"second")]
    manager.delete([])
    assert both.folders(0)[0].endswith("-delete")
    manager.close()


def test_of_two_folders_that_of_the_topic_is_its_log_and_the_other_is_set_aside(tmp_path: Path) -> None:
    both = TwoFolders(tmp_path)
    manager = both.load(Expected({"orders": both.ids[1]}))
    assert read_values(manager.logs[PARTITION]) == [(0, b"second")]
    (kept,) = both.folders(0)
    assert kept.endswith("-stray")
    assert (both.paths[0] / kept / "00000000000000000000.log").stat().st_size
    manager.close()


def test_of_two_folders_of_one_topic_the_one_that_the_cluster_knows_of_is_its_log(tmp_path: Path) -> None:
    both = TwoFolders(tmp_path)
    both.same_topic()
    directory_id = both.directory_ids[1]
    assert directory_id is not None
    manager = both.load(Expected({"orders": both.ids[0]}, directories={PARTITION: directory_id}))
    assert read_values(manager.logs[PARTITION]) == [(0, b"second")]
    assert both.folders(0)[0].endswith("-stray")
    manager.close()


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_folder_that_a_moved_log_left_behind_is_not_its_log_while_the_new_directory_is_offline(
    tmp_path: Path, is_marked: bool
) -> None:
    both = TwoFolders(tmp_path)
    both.same_topic()
    directory_id = both.directory_ids[1]
    assert directory_id is not None
    both.paths[1].rename(tmp_path / "volume")
    both.paths[1].write_bytes(b"no directory")
    expected = Expected({"orders": both.ids[0]}, directories={PARTITION: directory_id})
    away = {directory_id: str(both.paths[1])}
    manager = both.load(replace(expected, away=away))
    assert manager.get(PARTITION) is None
    assert both.folders(0) == [str(PARTITION)], "it is left alone"
    manager.close()

    # It is the log if it was moved there, or if the other directory is not in use any more.
    if is_marked:
        (both.paths[0] / str(PARTITION) / MOVED_HERE).touch()
    else:
        away = {directory_id: "/elsewhere"}
    manager = both.load(replace(expected, away=away))
    assert read_values(manager.logs[PARTITION]) == [(0, b"first")]
    manager.close()


def test_a_folder_of_a_deleted_topic_is_not_loaded(tmp_path: Path) -> None:
    """A crash, or a full disk, came before it could be renamed."""
    topic_id = random_uuid()
    manager = open_manager(broker_config(tmp_path), CONFIG)
    append_values(manager.create(PARTITION, topic_id, CONFIG), b"old")
    manager.close()
    manager = LogManager(broker_config(tmp_path), ManualClock(NOW_MS))
    manager.open()
    manager.load(lambda topic: CONFIG, None, Expected({"orders": random_uuid()}, frozenset({topic_id})))
    assert not manager.logs
    assert read_values(manager.create(PARTITION, random_uuid(), CONFIG)) == []
    manager.close()


def test_a_deletion_that_finds_no_space_is_tried_again_and_nothing_of_it_comes_back(tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = open_manager(broker_config(tmp_path), CONFIG, files)
    append_values(manager.create(PARTITION, random_uuid(), CONFIG), b"old")
    append_values(manager.create(partition(1), random_uuid(), CONFIG), b"old")
    files.fail("rename", errno.ENOSPC)
    for _ in range(2):
        with pytest.raises(Refused, match="deleting"):
            manager.delete([PARTITION, partition(1)])
        with pytest.raises(Refused, match="deleting"):
            manager.create(PARTITION, random_uuid(), CONFIG)
    files.recover()
    assert read_values(manager.create(PARTITION, random_uuid(), CONFIG)) == []
    manager.delete([])
    assert sorted(path.name[-7:] for path in tmp_path.iterdir() if path.is_dir()) == ["-delete", "-delete", "rders-0"]
    manager.close()


def test_no_log_is_made_where_a_volume_was_unmounted(tmp_path: Path) -> None:
    directory = tmp_path / "mounted"
    manager = open_manager(broker_config(directory), CONFIG)
    directory.rename(tmp_path / "volume")
    with pytest.raises(StorageFailure, match=r"looking for meta\.properties"):
        manager.create(PARTITION, random_uuid(), CONFIG)
    assert not directory.exists()
    manager.abandon()


def test_a_new_log_takes_nothing_over_from_a_folder_that_is_in_its_way(tmp_path: Path) -> None:
    manager = open_manager(broker_config(tmp_path), CONFIG)
    (tmp_path / str(PARTITION)).mkdir()
    (tmp_path / str(PARTITION) / "00000000000000000042.log").write_bytes(b"somebody's")
    assert read_values(manager.create(PARTITION, random_uuid(), CONFIG)) == []
    manager.close()
    (stray,) = tmp_path.glob("orders-0.*-stray")
    assert (stray / "00000000000000000042.log").read_bytes() == b"somebody's"


def test_a_new_log_takes_nothing_over_from_the_checkpoints_of_a_deleted_one(tmp_path: Path) -> None:
    """They would have it begin where the old one began, and drop what is below."""
    files = FaultyFiles()
    manager = open_manager(broker_config(tmp_path), CONFIG, files)
    old = manager.create(PARTITION, random_uuid(), CONFIG)
    append_values(old, *[b"old"] * 9)
    old.advance_log_start_offset(9)
    manager.close()
    manager = open_manager(broker_config(tmp_path), CONFIG, files)
    files.fail("pwrite", errno.ENOSPC)
    manager.delete([PARTITION])
    with pytest.raises(Refused, match="no checkpoint could be written"):
        manager.create(PARTITION, random_uuid(), CONFIG)
    files.recover()
    append_values(manager.create(PARTITION, random_uuid(), CONFIG), b"new")
    manager.abandon()
    manager = open_manager(broker_config(tmp_path), CONFIG, files)
    assert read_values(manager.logs[PARTITION]) == [(0, b"new")]
    manager.close()


def test_a_directory_that_fails_goes_offline_and_the_rest_go_on(tmp_path: Path) -> None:
    files = FaultyFiles()
    first, second = tmp_path / "first", tmp_path / "second"
    manager = open_manager(broker_config(first, second), CONFIG, files)
    logs = [manager.create(partition(number), random_uuid(), CONFIG) for number in range(4)]
    failing = logs[0].directory
    files.fail("pwrite", errno.EIO)
    with pytest.raises(StorageFailure) as failure:
        append_values(logs[0], b"lost")
    files.recover()
    dropped = manager.take_offline(failure.value.directory, str(failure.value))
    assert {log.directory for log in dropped} == {failing}
    assert len(manager.logs) == 2
    for log in manager.logs.values():
        append_values(log, b"goes on")
    assert manager.create(partition(9), random_uuid(), CONFIG).directory is not failing
    manager.close()
    assert not (Path(failing.path) / ".kafka_cleanshutdown").exists()


def test_a_directory_that_cannot_be_used_at_the_start_is_offline(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    manager = open_manager(broker_config(tmp_path / "file", tmp_path / "good"), CONFIG)
    assert [directory.offline is None for directory in manager.directories] == [False, True]
    manager.create(PARTITION, random_uuid(), CONFIG)
    manager.close()
    with pytest.raises(StorageFailure, match="no log directory can be used"):
        LogManager(broker_config(tmp_path / "file"), ManualClock()).open()


def test_cordoned_directories_get_no_new_partitions(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    manager = open_manager(broker_config(first, second, cordoned_log_dirs=str(first)), CONFIG)
    assert manager.create(partition(0), random_uuid(), CONFIG).directory.path == str(second)
    assert manager.create(partition(1), random_uuid(), CONFIG).directory.path == str(second)
    manager.close()


def test_a_full_disk_refuses_a_new_partition_and_leaves_nothing(tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = open_manager(broker_config(tmp_path), CONFIG, files)
    files.fail("pwrite", errno.ENOSPC)
    with pytest.raises(Refused) as refused:
        manager.create(PARTITION, random_uuid(), CONFIG)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not (tmp_path / str(PARTITION)).exists()
    manager.checkpoint()
    files.recover()
    manager.create(PARTITION, random_uuid(), CONFIG)
    manager.close()


def test_checkpoints_hold_what_the_next_start_needs(tmp_path: Path) -> None:
    manager = open_manager(broker_config(tmp_path), CONFIG)
    log = manager.create(PARTITION, random_uuid(), CONFIG)
    append_values(log, b"a", b"b", b"c")
    log.flush()
    append_values(log, b"d")
    log.advance_log_start_offset(2)
    manager.checkpoint()
    manager.write_high_watermarks({PARTITION: 3, partition(77): 9})
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    manager.abandon()
    manager = open_manager(broker_config(tmp_path), CONFIG)
    again = manager.get(PARTITION)
    assert again is not None
    assert (again.log_start_offset, again.recovery_point, again.log_end_offset) == (2, 3, 4)
    assert manager.read_high_watermarks() == {PARTITION: 3}
    manager.close()


def test_a_full_directory_does_not_keep_the_high_watermarks_of_others_from_being_written(tmp_path: Path) -> None:
    class Full(FaultyFiles):
        def rename(self, old: str, new: str) -> None:
            if new.startswith(str(tmp_path / "full")) and new.endswith("replication-offset-checkpoint"):
                raise OSError(errno.ENOSPC, "No space left on device")
            super().rename(old, new)

    manager = open_manager(broker_config(tmp_path / "full", tmp_path / "other"), CONFIG, Full())
    logs = [manager.create(partition(number), random_uuid(), CONFIG) for number in range(2)]
    for log in logs:
        append_values(log, b"a")
    with pytest.raises(Refused):
        manager.write_high_watermarks({log.topic_partition: 1 for log in logs})
    (other,) = (log.topic_partition for log in logs if log.directory.path == str(tmp_path / "other"))
    assert manager.read_high_watermarks() == {other: 1}


def test_a_checkpoint_that_comes_while_the_logs_are_closed_does_not_empty_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of the broker's upkeep may be late."""
    manager = open_manager(broker_config(tmp_path), CONFIG)
    log = manager.create(PARTITION, random_uuid(), CONFIG)
    append_values(log, b"a")
    append_values(log, b"b")
    log.advance_log_start_offset(1)
    manager.write_high_watermarks({PARTITION: 2})
    mark = folder_metadata.write_clean_shutdown

    def write_late(files: Files, directory: str, broker_epoch: int) -> None:
        manager.checkpoint()
        manager.write_high_watermarks({PARTITION: 2})
        mark(files, directory, broker_epoch)

    monkeypatch.setattr(folder_metadata, "write_clean_shutdown", write_late)
    manager.close()
    manager = open_manager(broker_config(tmp_path), CONFIG)
    assert manager.logs[PARTITION].log_start_offset == 1, "what was deleted does not come back"
    assert manager.read_high_watermarks() == {PARTITION: 2}
    manager.close()


def test_what_takes_the_place_of_truncated_records_is_not_taken_for_synced(tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = open_manager(broker_config(tmp_path), CONFIG, files)
    log = manager.create(PARTITION, random_uuid(), CONFIG)
    append_values(log, b"a")
    append_values(log, b"b", b"c")
    manager.close()
    manager = open_manager(broker_config(tmp_path), CONFIG, files)
    again = manager.get(PARTITION)
    assert again is not None
    assert again.recovery_point == 3
    files.fail("pwrite", errno.ENOSPC)
    failure = manager.truncate_to({PARTITION: 1}, now_ms=NOW_MS)[PARTITION]
    assert isinstance(failure, Refused)
    assert "no checkpoint could be written" in failure.message
    assert again.log_end_offset == 1, "that much was done"
    files.recover()
    assert manager.truncate_to({PARTITION: 1}, now_ms=NOW_MS) == {}
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 1\n"
    append_values(again, b"new")
    manager.abandon()
    manager = open_manager(broker_config(tmp_path), CONFIG, files)
    again = manager.get(PARTITION)
    assert again is not None
    assert (again.recovery_point, read_values(again)) == (1, [(0, b"a"), (1, b"new")])
    assert manager.truncate_to({PARTITION: 1}, now_ms=NOW_MS) == {}
    assert again.log_end_offset == 1
    manager.close()


def test_a_log_that_lost_synced_records_is_not_appended_to_while_its_checkpoint_says_more(tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = open_manager(broker_config(tmp_path), CONFIG, files)
    log = manager.create(PARTITION, random_uuid(), CONFIG)
    append_values(log, b"a")
    append_values(log, b"b")
    log.flush()
    manager.checkpoint()
    manager.abandon()
    segment = Path(log.segments.all[0].path(".log"))
    os.truncate(segment, segment.stat().st_size - 1)
    files.fail("pwrite", errno.ENOSPC)
    with pytest.raises(StorageFailure, match="no checkpoint could be written"):
        open_manager(broker_config(tmp_path), CONFIG, files)
    files.recover()
    manager = open_manager(broker_config(tmp_path), CONFIG, files)
    assert read_values(manager.logs[PARTITION]) == [(0, b"a")]
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 1\n"
    manager.close()


def test_a_directory_that_fails_keeps_no_checkpoint_of_another_from_being_written(tmp_path: Path) -> None:
    class Failing(FaultyFiles):
        def rename(self, old: str, new: str) -> None:
            if old.startswith(str(tmp_path / "bad")) and "rename" in self.failures:
                raise OSError(errno.EIO, "Input/output error")
            OsFiles().rename(old, new)

    files = Failing()
    manager = open_manager(broker_config(tmp_path / "bad", tmp_path / "good"), CONFIG, files)
    logs = [manager.create(partition(number), random_uuid(), CONFIG) for number in range(2)]
    for log in logs:
        append_values(log, b"a")
        log.advance_log_start_offset(1)
    files.fail("rename", errno.EIO)
    with pytest.raises(StorageFailure, match="bad"):
        manager.checkpoint()
    bad, good = sorted(logs, key=lambda log: log.directory.path)
    assert manager.start_is_written(good, 1)
    assert not manager.start_is_written(bad, 1)
    manager.abandon()
    manager = open_manager(broker_config(tmp_path / "bad", tmp_path / "good"), CONFIG, files)
    assert set(manager.logs) == {good.topic_partition}, "a start goes on without it as well"
    manager.abandon()


def test_file_handles_stay_bounded(tmp_path: Path) -> None:
    manager = LogManager(broker_config(tmp_path), ManualClock(NOW_MS), most_open_files=4)
    manager.open()
    manager.load(lambda topic: CONFIG)
    logs = [manager.create(partition(number), random_uuid(), CONFIG) for number in range(20)]
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        for number, log in enumerate(logs):
            append_values(log, b"%d" % number)
    for number, log in enumerate(logs):
        assert [value for _, value in read_values(log)] == [b"%d" % number] * 3
    assert len(os.listdir("/proc/self/fd")) - before <= 8
    manager.close()
    assert len(os.listdir("/proc/self/fd")) < before


def test_running_out_of_descriptors_closes_idle_files_and_is_no_failure(tmp_path: Path) -> None:
    class Few(FaultyFiles):
        most = 1 << 20  # other tests of this process may have many open

        def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
            if len(os.listdir("/proc/self/fd")) > self.most:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return super().open(path, write=write, create=create)

    files = Few()
    manager = LogManager(broker_config(tmp_path), ManualClock(NOW_MS), files, most_open_files=2)
    manager.open()
    manager.load(lambda topic: CONFIG)
    logs = [manager.create(partition(number), random_uuid(), CONFIG) for number in range(6)]
    files.most = len(os.listdir("/proc/self/fd")) + 3
    for log in logs:
        append_values(log, b"a")
    assert all(read_values(log) == [(0, b"a")] for log in logs)
    files.most = 0
    with pytest.raises(Refused) as refused:
        read_values(logs[0])
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "ulimit" in refused.value.message
    assert all(directory.offline is None for directory in manager.directories)
    files.most = 1 << 20
    manager.close()


def test_a_directory_without_logs_is_clean_if_it_is_new_or_was_closed(tmp_path: Path) -> None:
    def load() -> tuple[LogManager, set[tuple[str, bool]]]:
        manager = LogManager(broker_config(tmp_path / "a", tmp_path / "b"), ManualClock(NOW_MS))
        manager.open()
        loaded: list[Loaded] = []
        manager.load(lambda topic: CONFIG, loaded.append)
        return manager, {(Path(one.directory).name, one.clean) for one in loaded}

    manager, reported = load()
    assert not reported
    manager.close()
    manager, reported = load()
    assert reported == {("a", True), ("b", True)}
    manager.abandon()
    manager, reported = load()
    assert reported == {("a", False), ("b", False)}
    manager.close()


def test_producers_of_many_partitions_are_looked_at_in_slices(tmp_path: Path) -> None:
    """What is done in one go depends neither on how many producers a log has, nor on how many logs there are."""
    clock = ManualClock(NOW_MS)
    manager = open_manager(broker_config(tmp_path, producer_id_expiration_ms="1000"), CONFIG, clock=clock)
    for index in range(6):
        log = manager.create(TopicPartition("t", index), random_uuid(), CONFIG)
        for producer_id in range(25 if index == 3 else 1):
            append(log, make_batch(producer_id=producer_id, producer_epoch=0, base_sequence=0))
    assert sum(manager.expire_producers(10)) == 0
    clock.advance(1000)
    slices = list(manager.expire_producers(10))
    assert sum(slices) == 30
    assert max(slices) <= 13
    manager.close()


def test_producers_expire_in_every_partition(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    manager = open_manager(broker_config(tmp_path, producer_id_expiration_ms="1000"), CONFIG, clock=clock)
    log = manager.create(PARTITION, random_uuid(), CONFIG)
    append(log, make_batch(producer_id=5, producer_epoch=0, base_sequence=0))
    assert sum(manager.expire_producers(10)) == 0
    clock.advance(1000)
    assert sum(manager.expire_producers(10)) == 1
    manager.close()


def test_thousands_of_partitions_load_in_a_moment(tmp_path: Path) -> None:
    """Bounded generously, for a busy machine."""
    manager = open_manager(broker_config(tmp_path), CONFIG)
    append_values(manager.create(PARTITION, random_uuid(), CONFIG), b"a")
    manager.close()
    points = [f"orders {number} 1" for number in range(1000)]
    for number in range(1, 1000):
        shutil.copytree(tmp_path / "orders-0", tmp_path / f"orders-{number}")
    (tmp_path / "recovery-point-offset-checkpoint").write_text("\n".join(["0", "1000", *points, ""]))
    started = time.process_time()
    manager = open_manager(broker_config(tmp_path), CONFIG)
    assert time.process_time() - started < 5
    assert len(manager.logs) == 1000
    assert all(log.log_end_offset == 1 for log in manager.logs.values())
    manager.abandon()


def test_settings_are_looked_up_by_topic(tmp_path: Path) -> None:
    manager = open_manager(broker_config(tmp_path), CONFIG)
    for topic in ("a", "b"):
        manager.create(TopicPartition(topic, 0), random_uuid(), CONFIG)
    manager.close()
    special = log_config(segment_bytes=77)
    manager = LogManager(broker_config(tmp_path), ManualClock())
    manager.open()

    def config_of(topic: str) -> LogConfig:
        return special if topic == "b" else CONFIG

    manager.load(config_of)
    assert [log.config.segment_bytes for _, log in sorted(manager.logs.items())] == [CONFIG.segment_bytes, 77]
    manager.close()


def test_a_jump_of_the_clock_that_is_not_believed_is_not_believed_by_the_next_start_either(tmp_path: Path) -> None:
    year_ms = 365 * 86_400_000
    clock = ManualClock(NOW_MS)
    manager = open_manager(broker_config(tmp_path), log_config(), clock=clock)
    clock.jump(year_ms)
    manager.checkpoint()
    manager.abandon()
    manager = open_manager(broker_config(tmp_path), log_config(), clock=clock)
    assert manager.patient_clock.now_ms() == NOW_MS


def test_a_clock_taken_before_the_logs_are_loaded_starts_from_the_last_written_time(tmp_path: Path) -> None:
    """Coordinators take it when they are built. If it forgot that time, a clock that is a year off at a start would
    expire everything they keep.
    """
    manager = open_manager(broker_config(tmp_path), CONFIG, clock=ManualClock(NOW_MS))
    manager.create(partition(0), random_uuid(), CONFIG)
    manager.close()
    year_ms = 365 * 24 * 60 * 60 * 1000
    manager = LogManager(broker_config(tmp_path), ManualClock(NOW_MS + year_ms))
    moment = manager.patient_clock.moment
    manager.open()
    manager.load(lambda topic: CONFIG)
    assert moment().believed_ms < NOW_MS + year_ms // 2
    manager.close()
