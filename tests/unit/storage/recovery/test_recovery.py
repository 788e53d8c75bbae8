"""Opening folders: after a clean stop, after a crash, with leftovers, and with what others wrote."""

import errno
import os
import shutil
import struct
import zlib
from pathlib import Path

import pytest

from kaspar.base.errors import StorageFailure
from kaspar.records import Record, build_batch
from kaspar.storage import Loaded
from kaspar.storage.segments.batch_scan import OldRecords
from kaspar.storage.segments.indexes import TIME_ENTRY_SIZE
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import NOW_MS, LogFolder, append, append_values, log_config, make_batch, read_values

SMALL = {"segment_bytes": 300, "index_interval_bytes": 50}


def filled(path: Path, count: int = 10, files: FaultyFiles | None = None) -> LogFolder:
    folder = LogFolder(path, log_config(**SMALL), files)
    for number in range(count):
        append(folder.log, make_batch([b"%d" % number], timestamp=NOW_MS + number), leader_epoch=number // 4)
    return folder


def values(count: int) -> list[tuple[int, bytes]]:
    return [(number, b"%d" % number) for number in range(count)]


def active_path(folder: LogFolder, suffix: str = ".log") -> Path:
    return Path(folder.log.segments.all[-1].path(suffix))


def strays_of(folder: LogFolder) -> list[str]:
    return [name for name in folder.names(".stray") if ".log." in name]


def test_after_a_clean_stop_no_data_is_read(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = filled(tmp_path, 50, files)
    files.read_paths.clear()
    log = folder.reopen(clean=True)
    assert not [path for path in files.read_paths if path.endswith((".log", ".index", ".timeindex"))]
    assert (log.log_end_offset, log.recovery_point) == (50, 50)
    assert log.end_offset_for_epoch(11) == (11, 48)
    assert read_values(log) == values(50)
    assert append_values(log, b"50").base_offset == 50


def test_after_a_crash_only_what_follows_the_recovery_point_is_read(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = filled(tmp_path, 50, files)
    folder.log.flush()
    append_values(folder.log, b"50")
    files.read_paths.clear()
    log = folder.reopen(clean=False)
    read = {os.path.basename(path) for path in files.read_paths if path.endswith(".log")}
    assert read <= {os.path.basename(segment.path(".log")) for segment in log.segments.all[-1:]}
    assert read_values(log) == values(51)
    assert log.recovery_point == 50


@pytest.mark.parametrize("cut", [1, 30, 60])
def test_a_torn_tail_is_cut(tmp_path: Path, cut: int) -> None:
    folder = filled(tmp_path)
    path = active_path(folder)
    os.truncate(path, path.stat().st_size - cut)
    log = folder.reopen(clean=False)
    assert read_values(log) == values(9)
    assert append_values(log, b"9").base_offset == 9
    assert read_values(folder.reopen(clean=False)) == values(10)


def test_zeros_behind_the_last_batch_are_cut(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    with active_path(folder).open("ab") as file:
        file.write(bytes(500))
    assert read_values(folder.reopen(clean=False)) == values(10)


def test_segments_after_a_damaged_one_are_set_aside(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    damaged, *later = folder.log.segments.all[1:]
    kept = {os.path.basename(segment.path(".log")): Path(segment.path(".log")).read_bytes() for segment in later}
    path = Path(damaged.path(".log"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    log = folder.reopen(clean=False)
    assert read_values(log) == values(log.log_end_offset)
    assert damaged.base_offset < log.log_end_offset < 10
    assert folder.names(".log") == [os.path.basename(segment.path(".log")) for segment in log.segments.all]
    assert log.end_offset_for_epoch(2) is None or log.log_end_offset > 8
    strays = {name[:24]: (Path(log.folder) / name).read_bytes() for name in strays_of(folder)}
    tail = strays.pop(os.path.basename(damaged.path(".log")))
    assert strays == kept
    assert path.read_bytes() + tail == content, "what is cut off before other segments is kept as well"


def damaged_in_the_middle(path: Path, files: FaultyFiles) -> LogFolder:
    """Of a topic that is compacted by now, where a gap in the offsets may be the cleaner's work."""
    folder = filled(path, files=files)
    damaged = Path(folder.log.segments.all[1].path(".log"))
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    folder.config = log_config(**SMALL, cleanup_policy="compact")
    folder.manager.checkpoint()
    folder.manager.abandon()
    return folder


@pytest.mark.parametrize("call", ["rename", "truncate", "fsync", "fsync_dir"])
def test_a_recovery_that_ends_halfway_leaves_a_first_part_of_the_log(tmp_path: Path, call: str) -> None:
    files = FaultyFiles()
    folder = damaged_in_the_middle(tmp_path, files)
    files.fail(call, errno.EIO)
    with pytest.raises(StorageFailure):
        folder.open_again()
    files.recover()
    log = folder.open_again()
    assert 0 < log.log_end_offset < 10
    assert read_values(log) == values(log.log_end_offset)


def test_a_copy_for_which_there_is_no_space_is_not_left_behind(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = damaged_in_the_middle(tmp_path, files)
    for _ in range(2):
        files.bytes_left = 10
        with pytest.raises(StorageFailure):
            folder.open_again()
        assert not strays_of(folder)
    files.recover()
    assert read_values(folder.open_again()) == values(folder.log.log_end_offset)
    assert strays_of(folder)


def test_a_power_cut_that_takes_a_segment_leaves_a_first_part_of_the_log(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    first, second, *later = folder.log.segments.all
    for suffix in (".log", ".index", ".timeindex"):
        os.unlink(second.path(suffix))
    log = folder.reopen(clean=False)
    assert log.segments.all[0].base_offset == first.base_offset
    assert read_values(log) == values(second.base_offset)
    assert [name[:24] for name in strays_of(folder)] == [os.path.basename(segment.path(".log")) for segment in later]
    strays = strays_of(folder)
    for number in range(second.base_offset, 10):
        append(log, make_batch([b"%d" % number]))
    assert read_values(folder.reopen(clean=True)) == values(10)
    assert strays_of(folder) == strays, "nothing takes them for data, and nothing removes them"


@pytest.mark.parametrize("checkpoint", ["0\n7\n", ""])
def test_a_gap_stays_where_it_may_be_the_cleaner_s_work(tmp_path: Path, checkpoint: str) -> None:
    """A topic that was compacted until its policy was changed has gaps, and every record of it is as good as any."""
    folder = filled(tmp_path)
    second = folder.log.segments.all[1]
    expected = [
        value for value in values(10) if not second.base_offset <= value[0] < folder.log.segments.all[2].base_offset
    ]
    folder.log.flush()
    folder.manager.checkpoint()
    folder.manager.abandon()
    for suffix in (".log", ".index", ".timeindex"):
        os.unlink(second.path(suffix))
    points = tmp_path / "recovery-point-offset-checkpoint"
    if checkpoint:
        points.write_text(checkpoint)
    else:
        points.unlink()
    log = folder.open_again()
    assert read_values(log, second.base_offset) == [value for value in expected if value[0] > second.base_offset]
    assert log.recovery_point == 10
    assert read_values(folder.reopen(clean=False), second.base_offset) == expected[second.base_offset :]
    assert not strays_of(folder)


def test_what_is_below_the_recovery_point_is_not_cut(tmp_path: Path) -> None:
    """Synced data that rotted is not thrown away by a start: a reader meets the damage, the rest stays."""
    folder = filled(tmp_path)
    folder.log.flush()
    first = Path(folder.log.segments.all[0].path(".log"))
    content = bytearray(first.read_bytes())
    content[-1] ^= 1
    first.write_bytes(content)
    log = folder.reopen(clean=False)
    assert log.log_end_offset == 10
    assert first.stat().st_size == len(content)


@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_index_is_rebuilt(tmp_path: Path, clean: bool) -> None:
    folder = filled(tmp_path)
    folder.log.flush()
    names = folder.names(".index", ".timeindex")
    if clean:
        folder.manager.close()
    before = {name: (Path(folder.log.folder) / name).read_bytes() for name in names}
    for name in names:
        os.unlink(os.path.join(folder.log.folder, name))
    log = folder.reopen(clean=clean)
    assert read_values(log) == values(10)
    if clean:
        assert {name: (Path(log.folder) / name).read_bytes() for name in names} == before


@pytest.mark.parametrize("content", [bytes(10_000), b"\xff" * 64, b"\x00\x00\x00\x01\x00\x00\x00\x09"])
def test_an_index_that_a_crash_has_damaged_is_rebuilt(tmp_path: Path, content: bytes) -> None:
    """Kafka's own index of an active segment is ten megabytes of zeros behind its entries."""
    folder = filled(tmp_path, 2)
    active_path(folder, ".index").write_bytes(content)
    active_path(folder, ".timeindex").write_bytes(content)
    log = folder.reopen(clean=False)
    assert read_values(log) == values(2)
    log.roll(now_ms=NOW_MS)
    assert os.path.getsize(log.segments.all[0].path(".index")) == 8
    assert log.offset_for_timestamp(NOW_MS + 1) is not None


def test_rebuilt_indexes_are_those_that_were_written(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    for segment in folder.log.segments.all:
        segment.complete_indexes(folder.log.directory.files)
    before = {name: (Path(folder.log.folder) / name).read_bytes() for name in folder.names(".index", ".timeindex")}
    log = folder.reopen(clean=False)
    after = {name: (Path(log.folder) / name).read_bytes() for name in folder.names(".index", ".timeindex")}
    assert after == before


@pytest.mark.parametrize("rising", [1, 100, 400, 590])
def test_the_largest_timestamp_of_a_segment_survives_a_crash(tmp_path: Path, rising: int) -> None:
    """Retention goes by it. It may be that of an early batch, and the indexes are written page by page."""
    folder = LogFolder(tmp_path, log_config(index_interval_bytes=0))
    for number in range(600):
        append_values(folder.log, b"x", timestamp=NOW_MS + (number * 10 if number < rising else -5_000))
    folder.log.flush()
    append_values(folder.log, b"not synced", timestamp=NOW_MS - 6_000)
    largest = NOW_MS + (rising - 1) * 10
    log = folder.reopen(clean=False)
    assert log.segments.all[0].largest_timestamp(log.directory.files) == largest
    found = log.offset_for_timestamp(largest)
    assert found is not None
    assert found.offset == rising - 1


@pytest.mark.parametrize("entries_left", [0, 1])
def test_a_time_index_that_a_crash_has_cut_is_rebuilt(tmp_path: Path, entries_left: int) -> None:
    """Of a segment that was rolled just before: an older entry says nothing of the records behind it."""
    folder = LogFolder(tmp_path)
    for later_ms in (1, 9):
        append(folder.log, make_batch([b"v"], timestamp=NOW_MS + later_ms))
        folder.reopen(clean=True)
    folder.log.roll(now_ms=NOW_MS)
    folder.manager.checkpoint()
    folder.manager.abandon()
    times = Path(folder.log.segments.all[0].path(".timeindex"))
    content = times.read_bytes()
    assert len(content) == 2 * TIME_ENTRY_SIZE
    times.write_bytes(content[: entries_left * TIME_ENTRY_SIZE])
    log = folder.open_again()
    assert log.segments.all[0].largest_timestamp(log.directory.files) == NOW_MS + 9


def test_leader_epochs_are_found_in_the_batches_after_a_crash(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    assert not (Path(folder.log.folder) / "leader-epoch-checkpoint").exists()
    log = folder.reopen(clean=False)
    assert [tuple(entry) for entry in log.leader_epochs.entries] == [(0, 0), (1, 4), (2, 8)]


def test_a_folder_of_another_log_is_not_taken_by_its_checkpoint(tmp_path: Path) -> None:
    """The checkpoint says that the log ends at 3; the folder that lies there now ends at 10."""
    other = filled(tmp_path / "other")
    other.manager.close()
    folder = filled(tmp_path / "own", 3)
    folder.manager.close()
    shutil.rmtree(folder.log.folder)
    shutil.copytree(other.log.folder, folder.log.folder)
    log = folder.open_again()
    assert read_values(log) == values(10)


def test_leftovers_of_deletions_and_cleanings_are_removed(tmp_path: Path) -> None:
    folder = filled(tmp_path, 3)
    for name in (
        "00000000000000000000.log.deleted",
        "00000000000000000000.index.deleted",
        "00000000000000000007.log.cleaned",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000099.timeindex",
    ):
        (Path(folder.log.folder) / name).write_bytes(b"left")
    log = folder.reopen(clean=False)
    assert read_values(log) == values(3)
    assert not folder.names(".deleted", ".cleaned", ".tmp")
    assert "00000000000000000099.timeindex" not in folder.names()


def test_a_finished_cleaning_takes_the_place_of_the_segments_it_cleaned(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    folder.log.flush()
    cleaned = build_batch([Record(NOW_MS, b"key", b"compacted", offset=5)], base_offset=5, leader_epoch=0)
    (Path(folder.log.folder) / "00000000000000000000.log.swap").write_bytes(cleaned)
    ends = [*folder.log.segments.base_offsets[1:], 10]
    log = folder.reopen(clean=False)
    replaced = [base for base in (0, *ends[:-1]) if base < 6]
    survivors = min(end for end in ends if end > max(replaced))
    assert read_values(log, 0)[0] == (5, b"compacted")
    assert [value for value in read_values(log, 0) if value[0] >= survivors] == values(10)[survivors:]
    assert not folder.names(".swap")


def test_a_log_that_ends_before_its_start_restarts_empty_there(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    folder.log.advance_log_start_offset(9)
    folder.manager.checkpoint()
    last = folder.log.segments.all[-1]
    os.truncate(last.path(".log"), 0)
    folder.manager.abandon()
    log = folder.open_again()
    assert (log.log_start_offset, log.log_end_offset) == (9, 9)
    assert append_values(log, b"9").base_offset == 9


def test_records_of_an_old_format_are_refused_not_cut(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    body = struct.pack(">bbqii", 1, 0, NOW_MS, -1, 3) + b"old"
    message = struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body
    active_path(folder).write_bytes(message)
    with pytest.raises(OldRecords, match="v1"):
        folder.reopen(clean=False)
    assert active_path(folder).read_bytes() == message


def test_an_empty_folder_becomes_an_empty_log(tmp_path: Path) -> None:
    folder = filled(tmp_path, 0)
    for name in folder.names(".log", ".index", ".timeindex"):
        os.unlink(os.path.join(folder.log.folder, name))
    log = folder.reopen(clean=False)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    assert append_values(log, b"0").base_offset == 0


def test_progress_is_progress_while_data_is_checked(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    size = folder.log.size
    folder.manager.checkpoint()
    folder.manager.abandon()
    progress: list[Loaded] = []
    folder.manager.open()
    folder.manager.load(lambda topic: folder.config, progress.append)
    assert progress[-1].bytes_checked == size
    assert (progress[-1].partitions, progress[-1].partitions_done, progress[-1].clean) == (1, 1, False)
    folder.manager.close()
