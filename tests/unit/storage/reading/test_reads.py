"""Reads: where they begin and end, and that they never wait where they must not."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.records import Record, build_batch, iter_headers
from kaspar.storage import WOULD_BLOCK, Log
from kaspar.storage.disk.files import OsFiles
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.forgetful_files import ForgetfulFiles
from tests.unit.storage.logs import (
    NOW_MS,
    PARTITION,
    LogFolder,
    append_values,
    log_config,
    make_batch,
    read_values,
)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Ten batches of three records, four batches a segment."""
    log = LogFolder(tmp_path, log_config(segment_bytes=4 * len(make_batch([b"0"] * 3)), index_interval_bytes=50)).log
    for number in range(10):
        append_values(log, *[b"%d" % number] * 3)
    return log


def first_offset(data: bytes | bytearray) -> int:
    return next(header.base_offset for _, header in iter_headers(data, 0, len(data)))


@pytest.mark.parametrize("offset", range(30))
def test_a_read_begins_with_the_batch_that_holds_the_offset(log: Log, offset: int) -> None:
    assert first_offset(log.read(offset, 1 << 20, 30)) == offset // 3 * 3
    direct = log.try_read(offset, 1 << 20, 30)
    assert direct is not WOULD_BLOCK
    assert first_offset(direct) == offset // 3 * 3


@pytest.mark.parametrize("offset", [-1, 31])
def test_an_offset_outside_the_log_is_refused(log: Log, offset: int) -> None:
    for read in (log.read, log.try_read):
        with pytest.raises(Refused) as refused:
            read(offset, 100, 30)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_there_is_nothing_at_the_end(log: Log) -> None:
    assert log.read(30, 100, 30) == b""
    assert log.try_read(30, 100, 30) == b""


@pytest.mark.parametrize("upper", range(0, 31, 3))
def test_nothing_is_read_at_or_above_the_upper_offset(log: Log, upper: int) -> None:
    offset = 0
    seen = []
    while data := log.read(offset, 1 << 20, upper):
        assert data == log.try_read(offset, 1 << 20, upper)
        headers = [header for _, header in iter_headers(data, 0, len(data))]
        seen += [header.base_offset for header in headers]
        offset = headers[-1].next_offset
    assert seen == list(range(0, upper, 3))


def test_a_small_limit_gives_the_first_batch_whole_or_nothing(log: Log) -> None:
    size = len(make_batch([b"0"] * 3))
    for limit in (0, 1, size - 1):
        assert len(log.read(0, limit, 30)) == size
        assert log.try_read(0, limit, 30) == log.read(0, limit, 30)
        assert log.read(0, limit, 30, whole_first_batch=False) == b""
        assert log.try_read(29, limit, 30, whole_first_batch=False) == b""
    assert len(log.read(0, size + 5, 30)) == size + 5, "a read may end within a batch"


class CountingFiles(OsFiles):
    """Knows how many bytes were asked for."""

    def __init__(self) -> None:
        self.asked_for = 0

    def pread(self, fd: int, length: int, position: int) -> bytes:
        self.asked_for += length
        return os.pread(fd, length, position)

    def pread_cached(self, fd: int, length: int, position: int) -> bytes | bytearray | None:
        return self.pread(fd, length, position)


@pytest.mark.parametrize("offset", [0, 3])
def test_a_batch_that_has_no_room_in_the_response_is_not_read(tmp_path: Path, offset: int) -> None:
    files = CountingFiles()
    log = LogFolder(tmp_path, files=files).log
    for _ in range(2):
        append_values(log, *[bytes(100_000)] * 3)
    files.asked_for = 0
    assert log.try_read(offset, 200_000, 6, whole_first_batch=False) == b""
    assert log.read(offset, 200_000, 6, whole_first_batch=False) == b""
    assert files.asked_for < 40_000, "a few headers, and no records"
    data = log.try_read(offset, 400_000, 6, whole_first_batch=False)
    assert data is not WOULD_BLOCK
    assert first_offset(data) == offset


def test_a_cold_read_would_block_and_a_thread_gets_it() -> None:
    files = ForgetfulFiles()
    log = LogFolder(Path("/data"), log_config(segment_bytes=300), files).log
    for number in range(10):
        append_values(log, b"%d" % number)
    files.cached = False
    assert log.try_read(0, 1000, 10) is WOULD_BLOCK
    assert log.try_read(9, 1000, 10) is WOULD_BLOCK
    assert read_values(log) == [(number, b"%d" % number) for number in range(10)]
    files.cached = True
    assert log.try_read(0, 1000, 10) == log.read(0, 1000, 10)


def test_an_offset_in_a_gap_gives_the_next_batch(tmp_path: Path) -> None:
    log = LogFolder(tmp_path).log
    for base_offset in (0, 10, 20):
        batch = build_batch([Record(NOW_MS, b"k", b"%d" % base_offset)], base_offset=base_offset, leader_epoch=0)
        log.append_as_follower(batch, leader_epoch=0, now_ms=NOW_MS)
    log.roll(now_ms=NOW_MS)
    batch = build_batch([Record(NOW_MS, b"k", b"40")], base_offset=40, leader_epoch=0)
    log.append_as_follower(batch, leader_epoch=0, now_ms=NOW_MS)
    for offset, expected in ((0, 0), (1, 10), (11, 20), (20, 20), (21, 40), (40, 40)):
        assert first_offset(log.read(offset, 1000, 41)) == expected
        direct = log.try_read(offset, 1000, 41)
        assert direct is not WOULD_BLOCK
        assert first_offset(direct) == expected


def test_an_index_that_leads_astray_does_no_harm(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, log_config(index_interval_bytes=50))
    for number in range(20):
        append_values(folder.log, b"%d" % number)
    folder.log.roll(now_ms=NOW_MS)
    path = Path(folder.log.segments.all[0].path(".index"))
    content = bytearray(path.read_bytes())
    for at in range(7, len(content), 8):
        content[at] ^= 0x15
    path.write_bytes(content)
    assert [first_offset(folder.log.read(offset, 1000, 20)) for offset in range(20)] == list(range(20))


def test_what_is_no_batch_is_never_served(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path)
    append_values(folder.log, b"a")
    folder.log.roll(now_ms=NOW_MS)
    Path(folder.log.segments.all[0].path(".log")).write_bytes(bytes(folder.log.segments.all[0].size))
    with pytest.raises(Refused) as refused:
        folder.log.read(0, 1000, 1)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


class BeforeOpening(FaultyFiles):
    """Does something just before the next file is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.hook: Callable[[], object] | None = None

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        hook, self.hook = self.hook, None
        if hook is not None:
            hook()
        return super().open(path, write=write, create=create)


def test_a_read_whose_segment_is_deleted_meanwhile_is_out_of_range(tmp_path: Path) -> None:
    files = BeforeOpening()
    log = LogFolder(tmp_path, log_config(segment_bytes=100), files).log
    for _ in range(4):
        append_values(log, b"x" * 20)
    files.hook = lambda: log.advance_log_start_offset(3)
    with pytest.raises(Refused) as refused:
        log.read(1, 1000, 4)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_read_whose_partition_is_deleted_meanwhile_says_so(tmp_path: Path) -> None:
    files = BeforeOpening()
    folder = LogFolder(tmp_path, files=files)
    append_values(folder.log, b"a")
    files.hook = lambda: folder.manager.delete([PARTITION])
    with pytest.raises(Refused) as refused:
        folder.log.read(0, 1000, 1)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_file_that_someone_took_away_takes_the_directory_offline(log: Log) -> None:
    Path(log.segments.all[0].path(".log")).unlink()
    with pytest.raises(StorageFailure):
        log.read(0, 1000, 30)


def test_a_read_under_way_finishes_though_its_segment_is_deleted(log: Log) -> None:
    segment = log.segments.all[0]
    handle = log.directory.readers.acquire(segment, segment.path(".log"))
    log.advance_log_start_offset(15)
    for late_ms in (0, 120_000):
        log.maintain(NOW_MS + late_ms)
    assert not Path(segment.path(".log.deleted")).exists()
    assert len(os.pread(handle.fd, 10, 0)) == 10
    log.directory.readers.release(handle)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.pread(handle.fd, 10, 0)


def test_reads_in_threads_see_whole_batches_below_the_end_while_the_owner_appends(tmp_path: Path) -> None:
    log = LogFolder(tmp_path, log_config(segment_bytes=5_000, index_interval_bytes=200)).log
    problems: list[str] = []
    done = threading.Event()

    def follow() -> None:
        offset = 0
        while not (done.is_set() and offset >= log.log_end_offset):
            upper = log.log_end_offset
            data = log.read(offset, 2_000, upper)
            headers = [header for _, header in iter_headers(data, 0, len(data))]
            if headers:
                expected = list(range(offset, headers[-1].next_offset))
                if [header.base_offset for header in headers] != expected or headers[-1].next_offset > upper:
                    problems.append(f"at {offset} below {upper}: {headers}")
                    return
                offset = headers[-1].next_offset

    threads = [threading.Thread(target=follow) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(3_000):
        append_values(log, b"%d" % number)
    done.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not problems
