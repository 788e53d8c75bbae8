"""Appends: offsets, rolling, full disks, failing disks."""

import errno
import os
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.records import Record, build_batch, iter_headers, read_header
from kaspar.storage import PreparedBatch, UnexpectedAppendOffset, prepare
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import NOW_MS, LogFolder, append, append_values, log_config, make_batch, read_values


def test_offsets_follow_one_another_and_are_patched_into_the_batch(tmp_path: Path) -> None:
    log = LogFolder(tmp_path).log
    assert append_values(log, b"a", b"b")[:2] == (0, 1)
    assert append(log, make_batch([b"c"]), leader_epoch=3)[:2] == (2, 2)
    data = log.read(0, 1000, 10)
    headers = [header for _, header in iter_headers(data, 0, len(data))]
    assert [(header.base_offset, header.leader_epoch) for header in headers] == [(0, 0), (2, 3)]
    assert read_values(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_a_batch_in_the_middle_of_a_request_buffer_is_written_alone(tmp_path: Path) -> None:
    log = LogFolder(tmp_path).log
    batch = make_batch([b"here"])
    request = bytearray(b"before" + batch + b"after")
    prepared = prepare(request, 6, 6 + len(batch), log.config, NOW_MS)
    log.append_as_leader(prepared, leader_epoch=0, now_ms=NOW_MS)
    assert log.size == len(batch)
    assert read_values(log) == [(0, b"here")]


def test_a_segment_is_rolled_before_it_would_grow_past_segment_bytes(tmp_path: Path) -> None:
    size = len(make_batch([b"x" * 50]))
    folder = LogFolder(tmp_path, log_config(segment_bytes=2 * size))
    for _ in range(5):
        append_values(folder.log, b"x" * 50)
    assert folder.names(".log") == [f"{base:020d}.log" for base in (0, 2, 4)]
    assert [segment.size for segment in folder.log.segments.all] == [2 * size, 2 * size, size]
    assert len(read_values(folder.log)) == 5


def test_a_segment_is_rolled_by_the_time_in_its_records(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_ms=1000))
    append_values(folder.log, b"first", timestamp=NOW_MS)
    append_values(folder.log, b"in time", timestamp=NOW_MS + 1000)
    append_values(folder.log, b"later", timestamp=NOW_MS + 1001)
    assert folder.names(".log") == [f"{base:020d}.log" for base in (0, 2)]


def test_the_time_of_a_reopened_segment_counts_from_its_first_batch(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_ms=1000))
    append_values(folder.log, b"first", timestamp=NOW_MS)
    folder.reopen(clean=True)
    append_values(folder.log, b"later", timestamp=NOW_MS + 1001)
    assert len(folder.log.segments.all) == 2


def test_a_segment_without_timestamps_is_rolled_by_the_clock(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_ms=1000))
    for now_ms, segments in ((NOW_MS, 1), (NOW_MS + 1000, 1), (NOW_MS + 1001, 2)):
        append(folder.log, make_batch([b"no time"], timestamp=-1), now_ms=now_ms)
        assert len(folder.log.segments.all) == segments


def test_a_segment_is_rolled_when_an_index_is_full(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(index_interval_bytes=0, segment_index_bytes=36))
    for number in range(6):
        append_values(folder.log, b"x", timestamp=NOW_MS + number)
    # 36 bytes are three entries of the time index, and one of them is kept for the roll.
    assert folder.log.segments.base_offsets == (0, 3)
    assert os.path.getsize(folder.log.segments.all[0].path(".timeindex")) <= 36


def test_a_segment_is_rolled_when_an_offset_does_not_fit_its_index(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    far = 0x7FFF_FFFF + 5
    for base_offset in (0, 1, far):
        batch = build_batch([Record(NOW_MS, b"k", b"v")], base_offset=base_offset, leader_epoch=0)
        folder.log.append_as_follower(batch, leader_epoch=0, now_ms=NOW_MS)
    assert folder.log.segments.base_offsets == (0, far)
    assert folder.log.log_end_offset == far + 1


def test_jitter_makes_a_segment_roll_earlier(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_ms=1000, segment_jitter_ms=1))
    assert folder.log.segments.all[0].jitter_ms == 0
    folder.log.segments.all[0].jitter_ms = 400
    append_values(folder.log, b"first", timestamp=NOW_MS)
    append_values(folder.log, b"second", timestamp=NOW_MS + 601)
    assert len(folder.log.segments.all) == 2


def test_a_new_config_counts_from_the_next_append(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    append_values(folder.log, b"a")
    folder.log.reconfigure(log_config(segment_bytes=len(make_batch([b"a"]))))
    append_values(folder.log, b"b")
    append_values(folder.log, b"c")
    assert folder.log.segments.base_offsets == (0, 1, 2)


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = LogFolder(tmp_path, log_config(segment_bytes=100)).log
    with pytest.raises(Refused) as refused:
        append_values(log, b"x" * 200)
    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_index_entries_are_sparse_and_name_the_batch_they_were_made_for(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(index_interval_bytes=200))
    for number in range(20):
        append_values(folder.log, b"x" * 20, timestamp=NOW_MS + number)
    folder.log.roll(now_ms=NOW_MS)
    content = Path(folder.log.segments.all[0].path(".index")).read_bytes()
    data = Path(folder.log.segments.all[0].path(".log")).read_bytes()
    assert 0 < len(content) < 20 * 8
    for at in range(0, len(content), 8):
        relative, position = (int.from_bytes(content[at + i : at + i + 4]) for i in (0, 4))
        assert read_header(data, position).last_offset == relative


def test_a_full_disk_refuses_the_append_and_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = LogFolder(tmp_path, files=files)
    append_values(folder.log, b"before")
    size = folder.log.size
    files.bytes_left = 20
    with pytest.raises(Refused) as refused:
        append_values(folder.log, b"does not fit")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert os.path.getsize(folder.log.segments.all[0].path(".log")) == size, "the partial write is cut off"
    assert read_values(folder.log) == [(0, b"before")]
    assert folder.log.directory.offline is None
    files.recover()
    assert append_values(folder.log, b"after").base_offset == 1
    assert read_values(folder.reopen(clean=False)) == [(0, b"before"), (1, b"after")]


def test_a_write_in_several_parts_is_whole(tmp_path: Path) -> None:
    class Slow(FaultyFiles):
        def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int, /) -> int:
            return os.pwrite(fd, memoryview(data)[:7], position)

    log = LogFolder(tmp_path, files=Slow()).log
    append_values(log, b"in many parts", b"and more")
    assert read_values(log) == [(0, b"in many parts"), (1, b"and more")]


def test_a_full_disk_at_a_roll_keeps_the_old_segment(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = LogFolder(tmp_path, log_config(segment_bytes=100), files)
    append_values(folder.log, b"x" * 20)
    files.fail("open", errno.ENOSPC)
    with pytest.raises(Refused) as refused:
        append_values(folder.log, b"y" * 20)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    files.recover()
    append_values(folder.log, b"z" * 20)
    assert folder.log.segments.base_offsets == (0, 1)
    assert [value for _, value in read_values(folder.log)] == [b"x" * 20, b"z" * 20]


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EBADF])
def test_a_failing_disk_takes_the_directory_offline(tmp_path: Path, number: int) -> None:
    files = FaultyFiles()
    folder = LogFolder(tmp_path, files=files)
    append_values(folder.log, b"before")
    files.fail("pwrite", number)
    with pytest.raises(StorageFailure) as failure:
        append_values(folder.log, b"lost")
    assert failure.value.directory == str(tmp_path)
    assert folder.manager.take_offline(str(tmp_path), "it failed") == [folder.log]
    assert folder.manager.get(folder.log.topic_partition) is None
    files.recover()
    with pytest.raises(StorageFailure):
        append_values(folder.log, b"not any more")


def test_a_failed_cut_after_a_full_disk_takes_the_directory_offline(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = LogFolder(tmp_path, files=files)
    files.bytes_left = 5
    files.fail("truncate", errno.EIO)
    with pytest.raises(StorageFailure):
        append_values(folder.log, b"does not fit")


def test_a_refused_append_leaves_no_trace_in_the_producer_state(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = LogFolder(tmp_path, files=files).log
    files.bytes_left = 3
    with pytest.raises(Refused):
        append(log, make_batch(producer_id=7, producer_epoch=0, base_sequence=0))
    files.recover()
    assert not log.active_producers()
    assert not append(log, make_batch(producer_id=7, producer_epoch=0, base_sequence=0)).duplicate


def test_a_follower_takes_whole_batches_as_they_are(tmp_path: Path) -> None:
    source = LogFolder(tmp_path / "leader").log
    for number in range(4):
        append(source, make_batch([b"%d" % number]), leader_epoch=number // 2)
    data = source.read(0, 10_000, 4)
    log = LogFolder(tmp_path / "follower").log
    appended = log.append_as_follower(data[:-10], leader_epoch=1, now_ms=NOW_MS)
    assert appended is not None
    assert (appended.base_offset, appended.last_offset) == (0, 2), "the last batch was cut off"
    assert log.read(0, 10_000, 3) == data[: len(log.read(0, 10_000, 3))]
    assert log.end_offset_for_epoch(0) == (0, 2)


def test_a_follower_leaves_out_batches_of_a_later_epoch(tmp_path: Path) -> None:
    log = LogFolder(tmp_path).log
    data = b"".join(
        build_batch([Record(NOW_MS, b"k", b"v")], base_offset=offset, leader_epoch=offset) for offset in range(3)
    )
    log.append_as_follower(data, leader_epoch=1, now_ms=NOW_MS)
    assert log.log_end_offset == 2


def test_a_follower_refuses_what_does_not_fit_or_is_damaged(tmp_path: Path) -> None:
    log = LogFolder(tmp_path).log
    append_values(log, b"a", b"b")
    with pytest.raises(UnexpectedAppendOffset) as unexpected:
        log.append_as_follower(build_batch([Record(1, b"k", b"v")], base_offset=1), leader_epoch=0, now_ms=NOW_MS)
    assert (unexpected.value.first_offset, unexpected.value.continues_after) == (1, False)
    with pytest.raises(UnexpectedAppendOffset) as unexpected:
        log.append_as_follower(build_batch([Record(1, b"k", b"v")] * 3, base_offset=0), leader_epoch=0, now_ms=NOW_MS)
    assert (unexpected.value.first_offset, unexpected.value.continues_after) == (0, True)
    damaged = build_batch([Record(1, b"k", b"v")], base_offset=2, leader_epoch=0)
    damaged[-1] ^= 1
    with pytest.raises(Refused) as refused:
        log.append_as_follower(damaged, leader_epoch=0, now_ms=NOW_MS)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 2


def test_preallocated_segments_are_trimmed_when_they_are_rolled_or_closed(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(segment_bytes=1000, preallocate="true"))
    append_values(folder.log, b"x")
    assert os.path.getsize(folder.log.segments.all[0].path(".log")) == 1000
    folder.log.roll(now_ms=NOW_MS)
    assert os.path.getsize(folder.log.segments.all[0].path(".log")) == folder.log.segments.all[0].size
    append_values(folder.log, b"y")
    assert read_values(folder.reopen(clean=True)) == [(0, b"x"), (1, b"y")]
    assert read_values(folder.reopen(clean=False)) == [(0, b"x"), (1, b"y")]


def test_prepared_batches_are_plain_values() -> None:
    batch = make_batch([b"a"], producer_id=5, producer_epoch=1, base_sequence=9)
    prepared = prepare(batch, 0, len(batch), log_config(), NOW_MS)
    assert prepared == PreparedBatch(batch, 0, len(batch), 0, NOW_MS, 5, 1, 9, False, -1)
