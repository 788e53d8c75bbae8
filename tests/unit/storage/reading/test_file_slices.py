"""Records that stay in their file until they are sent: what a slice holds, and that its bytes stay readable."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.records import iter_headers
from kaspar.storage import FileSlice, Log, OsFiles, try_slice
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.page_cache import cached_length
from kaspar.storage.reading.file_slices import SMALLEST_SLICE
from kaspar.storage.segments.open_files import ReadHandles
from kaspar.storage.truncation import truncate_to
from tests.unit.storage.logs import NOW_MS, LogFolder, append, log_config, make_batch

SIZE = 40_000
COUNT = 20


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[LogFolder]:
    """Two segments; in each the batches are far larger than the distance of index entries."""
    stored = LogFolder(tmp_path, log_config(segment_bytes=SIZE * COUNT // 2 + 10_000))
    for _ in range(COUNT):
        append(stored.log, make_batch([os.urandom(SIZE - 100)]))
    yield stored
    stored.manager.close()


@pytest.fixture
def log(stored: LogFolder) -> Log:
    assert len(stored.log.segments.all) == 2
    return stored.log


def whole(log: Log, offset: int, upper: int | None = None, max_bytes: int = 1 << 20) -> bytes:
    return bytes(log.read(offset, max_bytes, log.log_end_offset if upper is None else upper))


def sliced(log: Log, offset: int, max_bytes: int = 1 << 20, upper: int | None = None, *, first: bool = True) -> bytes:
    found = try_slice(
        log,
        offset,
        max_bytes,
        log.log_end_offset if upper is None else upper,
        whole_first_batch=first,
        preferred_bytes=1 << 30,
    )
    assert found is not None
    assert found.first_offset <= offset
    return rest_of(found)


def rest_of(found: FileSlice) -> bytes:
    taken = bytearray()
    while len(found):
        taken += found.take(30_000)
    found.release()
    return bytes(taken)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(("preferred", "batches"), [(2 * SIZE + 1_000, 2), (1 << 20, 4)])
def test_a_slice_is_no_larger_than_preferred(log: Log, preferred: int, batches: int) -> None:
    whole_size = len(whole(log, 16))
    found = try_slice(log, 16, 1 << 20, log.log_end_offset, whole_first_batch=False, preferred_bytes=preferred)
    assert found is not None
    assert len(found) + found.left_out == whole_size
    bytes_of_it = rest_of(found)
    assert [header.base_offset for _, header in iter_headers(bytes_of_it, 0, len(bytes_of_it))] == [
        *range(16, 16 + batches)
    ]


@pytest.mark.parametrize("offset", [0, 1, 8, 10, 12, 15])
def test_a_slice_is_what_a_read_would_give(log: Log, offset: int) -> None:
    log.read(offset, 1, log.log_end_offset)  # the index of a segment that is no longer written to is loaded by then
    assert sliced(log, offset) == whole(log, offset)


def test_a_slice_ends_below_the_upper_offset(log: Log) -> None:
    found = sliced(log, 12, upper=15)
    assert found == whole(log, 12, 15)
    assert [header.base_offset for _, header in iter_headers(found, 0, len(found))] == [12, 13, 14]


def test_a_slice_ends_with_a_batch_where_the_limit_is_within_one(log: Log) -> None:
    limit = 3 * SIZE + 1_000
    found = try_slice(log, 12, limit, log.log_end_offset, whole_first_batch=True, preferred_bytes=1 << 30)
    assert found is not None
    size = len(found)
    assert size + found.left_out == limit
    bytes_of_it = rest_of(found)
    assert bytes_of_it == whole(log, 12)[:size]
    assert sum(header.size for _, header in iter_headers(bytes_of_it, 0, size)) == size


def test_the_first_batch_is_whole_or_there_is_no_slice(tmp_path: Path) -> None:
    log = LogFolder(tmp_path).log
    append(log, make_batch([os.urandom(200_000)]))
    append(log, make_batch([os.urandom(200_000)]))
    assert sliced(log, 0, 100) == whole(log, 0, 1)
    assert try_slice(log, 0, 100_000, 2, whole_first_batch=False, preferred_bytes=1 << 30) is None


def test_there_is_no_slice_where_it_is_not_worth_it_or_something_is_to_be_refused(log: Log) -> None:
    end = log.log_end_offset
    assert try_slice(log, end - 1, 1 << 20, end, whole_first_batch=True, preferred_bytes=1 << 30) is None, (
        "one small batch"
    )
    assert try_slice(log, 12, SMALLEST_SLICE - 1, end, whole_first_batch=False, preferred_bytes=1 << 30) is None
    assert try_slice(log, end, 1 << 20, end, whole_first_batch=True, preferred_bytes=1 << 30) is None
    assert try_slice(log, end + 1, 1 << 20, end, whole_first_batch=True, preferred_bytes=1 << 30) is None
    assert try_slice(log, -1, 1 << 20, end, whole_first_batch=True, preferred_bytes=1 << 30) is None


def test_a_slice_holds_only_what_is_in_memory(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = 0
    monkeypatch.setattr(LogDirectory, "cached_length", lambda *_: in_memory)
    assert try_slice(log, 12, 1 << 20, 20, whole_first_batch=True, preferred_bytes=1 << 30) is None
    in_memory = SIZE * 2
    assert sliced(log, 12) == whole(log, 12)[:in_memory]


def test_a_segment_that_is_deleted_stays_readable_until_its_slice_is_released(log: Log) -> None:
    log.read(0, 1, log.log_end_offset)
    segment = log.segments.all[0]
    expected = whole(log, 0)
    found = try_slice(log, 0, 1 << 20, log.log_end_offset, whole_first_batch=True, preferred_bytes=1 << 30)
    assert found is not None
    before = open_files()
    log.advance_log_start_offset(15)
    for late_ms in (0, 120_000):
        log.maintain(NOW_MS + late_ms)
    assert not Path(segment.path(".log.deleted")).exists()
    assert rest_of(found) == expected
    assert open_files() == before - 1


def test_a_slice_that_nobody_holds_is_released(log: Log) -> None:
    found = try_slice(log, 12, 1 << 20, log.log_end_offset, whole_first_batch=True, preferred_bytes=1 << 30)
    assert found is not None
    before = open_files()
    log.directory.readers.forget(log.segments.all[1])
    assert open_files() == before
    del found
    assert open_files() == before - 1


def test_a_file_that_was_cut_is_noticed(log: Log) -> None:
    found = try_slice(log, 12, 1 << 20, log.log_end_offset, whole_first_batch=True, preferred_bytes=1 << 30)
    assert found is not None
    truncate_to(log, 12, now_ms=NOW_MS)
    with pytest.raises(EOFError):
        rest_of(found)


def test_the_system_reports_what_is_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    if OsFiles().is_in_memory(str(tmp_path)):
        pytest.skip("this folder is never anywhere else")
    fd = os.open(path, os.O_RDWR)
    try:
        if not cached_length(fd, 0, 1 << 20):
            pytest.skip("this system does not report it")
        assert cached_length(fd, 5_000, 100_001) == 100_001
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        assert cached_length(fd, 5_000, 100_001) == 0
        os.pread(fd, 4_096, 0)
        assert cached_length(fd, 100, 3_000) == 3_000
    finally:
        os.close(fd)
    assert cached_length(fd, 0, 1) == 0


def test_where_slow_readers_keep_all_files_open_records_are_copied(tmp_path: Path) -> None:
    """So that no more files are open than may be, however long clients take to read."""
    log = LogFolder(tmp_path, log_config(segment_bytes=100_000)).log
    for _ in range(8):
        append(log, make_batch([os.urandom(90_000)]))
    log.directory.readers = readers = ReadHandles(OsFiles(), most_files=3)

    def slice_at(offset: int) -> FileSlice | None:
        log.read(offset, 1, 8)  # loads the index
        return try_slice(log, offset, 1 << 20, 8, whole_first_batch=True, preferred_bytes=1 << 30)

    held = [slice_at(offset) for offset in range(7)]
    assert [found is not None for found in held] == [True] * 3 + [False] * 4
    assert len(readers) <= 4, "one more is open for a moment"
    held.clear()
    found = slice_at(5)
    assert found is not None
    assert len(readers) == 3
