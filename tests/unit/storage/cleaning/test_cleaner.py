"""One pass of the cleaner over one log: what is left, how segments are merged, and what may get in its way."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from kaspar.base.clock import ManualClock
from kaspar.base.errors import Refused, StorageFailure
from kaspar.records.compaction import SLOT_BYTES
from kaspar.storage import Log
from kaspar.storage.cleaning.cleaner import (
    MOST_SEGMENTS_IN_A_GROUP,
    Cleaned,
    Cleaner,
    CleanerSettings,
    SegmentSize,
    group_sizes,
)
from kaspar.storage.cleaning.errors import CleaningStopped, DamagedSegment
from kaspar.storage.cleaning.offsets_to_clean import OffsetsToClean, offsets_to_clean
from kaspar.storage.cleaning.throttle import UNLIMITED, Throttle
from kaspar.storage.disk.file_names import CLEANED, LOG, OFFSET_INDEX, SWAP
from kaspar.storage.truncation import truncate_to
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import NOW_MS, LogFolder, append, log_config, make_batch, read_values

COMPACTED = log_config(cleanup_policy="compact", segment_bytes=200)
ROOM_FOR_MANY = 1 << 20


def put(log: Log, *keys: str, timestamp: int = NOW_MS) -> None:
    """One batch a key; its value is the offset it gets."""
    for key in keys:
        append(log, make_batch([b"%d" % log.log_end_offset], key=key.encode(), timestamp=timestamp))


def on_owner(log: Log, work: Callable[[], None]) -> None:
    work()


def cleaner(memory_bytes: int = ROOM_FOR_MANY) -> Cleaner:
    return Cleaner(CleanerSettings(memory_bytes, 1 << 16, 1.0), Throttle(UNLIMITED, ManualClock()))


def to_clean(log: Log, first_dirty: int = 0) -> OffsetsToClean:
    return offsets_to_clean(log, first_dirty, log.log_end_offset, NOW_MS)


def clean(log: Log, first_dirty: int = 0, *, memory_bytes: int = ROOM_FOR_MANY) -> Cleaned:
    return cleaner(memory_bytes).clean(log, to_clean(log, first_dirty), NOW_MS, on_owner=on_owner)


def offsets(log: Log) -> list[int]:
    return [offset for offset, _ in read_values(log)]


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    """Two batches a segment; the last record is in the active one."""
    folder = LogFolder(tmp_path, COMPACTED)
    put(folder.log, *"abacabad", "z")
    return folder


def test_of_each_key_the_last_record_stays(folder: LogFolder) -> None:
    result = clean(folder.log)
    assert result.next_dirty_offset == 8
    assert offsets(folder.log) == [3, 5, 6, 7, 8]
    statistics = result.statistics
    assert (statistics.records_read, statistics.records_written, statistics.records_removed) == (8, 4, 4)
    assert statistics.map_records_read == 8
    assert 0 < statistics.buffer_utilization < 1
    assert folder.names(CLEANED, SWAP) == []


@pytest.mark.parametrize("stop_cleanly", [True, False])
def test_a_cleaned_log_is_the_same_after_a_restart(folder: LogFolder, stop_cleanly: bool) -> None:
    clean(folder.log)
    found = read_values(folder.log)
    assert read_values(folder.reopen(clean=stop_cleanly)) == found


def test_the_active_segment_is_left_alone(tmp_path: Path) -> None:
    log = LogFolder(tmp_path, log_config(cleanup_policy="compact")).log
    put(log, "a", "a", "a")
    log.roll(now_ms=NOW_MS)
    put(log, "a", "a")
    clean(log)
    assert offsets(log) == [2, 3, 4]


def test_segments_that_have_become_small_are_merged_by_the_next_pass(folder: LogFolder) -> None:
    log = folder.log
    assert log.segment_count == 5
    clean(log)
    put(log, *"wxyzwxyz")
    before = log.segment_count
    result = clean(log, 8)
    assert log.segment_count < before
    assert result.statistics.segments_before > result.statistics.segments_after


def test_a_map_with_too_little_room_takes_several_passes(folder: LogFolder) -> None:
    log = folder.log
    passes = 0
    next_dirty = 0
    while next_dirty < 8:
        result = clean(log, next_dirty, memory_bytes=2 * SLOT_BYTES)
        assert result.next_dirty_offset > next_dirty
        next_dirty = result.next_dirty_offset
        passes += 1
    assert passes > 1
    assert offsets(log) == [3, 5, 6, 7, 8]


def test_a_segment_with_more_keys_than_the_map_has_room_for_is_cleaned_in_parts(tmp_path: Path) -> None:
    log = LogFolder(tmp_path, log_config(cleanup_policy="compact")).log
    put(log, *"abcabcdefdefabcdef")
    log.roll(now_ms=NOW_MS)
    next_dirty = 0
    while next_dirty < log.log_end_offset:
        result = clean(log, next_dirty, memory_bytes=2 * SLOT_BYTES)
        assert result.next_dirty_offset > next_dirty
        next_dirty = result.next_dirty_offset
    assert offsets(log) == [12, 13, 14, 15, 16, 17]


def test_the_new_segment_is_as_old_as_the_last_one_it_was_made_from(folder: LogFolder) -> None:
    """Retention goes by that where records have no timestamps."""
    log, files = folder.log, folder.log.directory.files
    for number, segment in enumerate(log.segments.all[:2]):
        files.set_modified_ms(segment.path(LOG), NOW_MS - 1000 * (2 - number))
    clean(log)
    assert files.modified_ms(log.segments.all[0].path(LOG)) in (NOW_MS - 2000, NOW_MS - 1000)


def test_leftovers_of_a_cleaning_that_failed_are_removed_first(folder: LogFolder) -> None:
    leftover = Path(folder.log.folder, "00000000000000000000.log" + CLEANED)
    leftover.write_bytes(b"half")
    clean(folder.log)
    assert not leftover.exists()


def test_a_missing_index_keeps_no_segment_from_being_cleaned(folder: LogFolder) -> None:
    Path(folder.log.segments.all[0].path(OFFSET_INDEX)).unlink()
    clean(folder.log)
    assert offsets(folder.log) == [3, 5, 6, 7, 8]


# When something comes in between


def test_a_pass_that_is_stopped_leaves_the_log_whole(folder: LogFolder) -> None:
    """Whenever that is: what was cleaned before stays clean."""
    before = read_values(folder.log)
    outcomes = set()
    for looks in range(60):
        stopped = map(bool, [*[0] * looks, *[1] * 1000]).__next__
        try:
            cleaner().clean(folder.log, to_clean(folder.log), NOW_MS, on_owner=on_owner, stopped=stopped)
            outcomes.add("done")
        except CleaningStopped:
            outcomes.add("stopped")
        found = read_values(folder.log)
        assert set(found) <= set(before)
        assert {3, 5, 6, 7, 8} <= {offset for offset, _ in found}
        assert folder.names(CLEANED, SWAP) == []
    assert outcomes == {"done", "stopped"}


@pytest.mark.parametrize("stop_cleanly", [True, False])
@pytest.mark.parametrize("call", [1, 2])
def test_a_stopped_owner_leaves_the_log_whole(folder: LogFolder, call: int, stop_cleanly: bool) -> None:
    calls = iter(range(1, 10))

    def gone(log: Log, work: Callable[[], None]) -> None:
        if next(calls) == call:
            raise CleaningStopped("the broker has stopped")
        work()

    before = read_values(folder.log)
    with pytest.raises(CleaningStopped):
        cleaner().clean(folder.log, to_clean(folder.log), NOW_MS, on_owner=gone)
    assert read_values(folder.log) == before
    kept = [offset for offset, _ in read_values(folder.reopen(clean=stop_cleanly))]
    assert {3, 5, 6, 7, 8} <= set(kept)
    assert folder.names(CLEANED, SWAP) == []


def test_a_log_that_is_truncated_meanwhile_is_not_touched(folder: LogFolder) -> None:
    def truncating(log: Log, work: Callable[[], None]) -> None:
        truncate_to(log, 5, now_ms=NOW_MS)
        work()

    with pytest.raises(CleaningStopped):
        cleaner().clean(folder.log, to_clean(folder.log), NOW_MS, on_owner=truncating)
    assert offsets(folder.log) == [0, 1, 2, 3, 4]
    assert folder.names(CLEANED, SWAP) == []


def test_what_a_truncation_cut_off_is_no_damage(folder: LogFolder) -> None:
    log = folder.log
    looked_at = to_clean(log)

    def truncate() -> bool:
        if not log.local.truncations:
            # In the middle of a segment: what was about to be read of it is no longer there.
            truncate_to(log, 1, now_ms=NOW_MS)
        return False

    with pytest.raises(CleaningStopped):
        cleaner().clean(log, looked_at, NOW_MS, on_owner=on_owner, stopped=truncate)
    assert offsets(log) == [0]


def test_segments_that_retention_takes_away_stop_the_pass(folder: LogFolder) -> None:
    def retaining(log: Log, work: Callable[[], None]) -> None:
        log.delete_old_segments(4, now_ms=NOW_MS)
        work()

    with pytest.raises(CleaningStopped):
        cleaner().clean(folder.log, to_clean(folder.log), NOW_MS, on_owner=retaining)
    assert offsets(folder.log) == [4, 5, 6, 7, 8]
    assert folder.log.directory.online


def test_a_deleted_log_stops_the_pass(folder: LogFolder) -> None:
    def deleting(log: Log, work: Callable[[], None]) -> None:
        folder.manager.delete([log.topic_partition])
        work()

    with pytest.raises(CleaningStopped):
        cleaner().clean(folder.log, to_clean(folder.log), NOW_MS, on_owner=deleting)
    assert folder.log.directory.online


def test_damage_is_reported_and_left_as_it_is(folder: LogFolder) -> None:
    segment = folder.log.segments.all[1]
    path = Path(segment.path(LOG))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedSegment, match=str(path)):
        clean(folder.log)
    assert path.read_bytes() == content
    assert folder.names(CLEANED, SWAP) == []


def test_a_full_disk_refuses_and_leaves_the_group_as_it_was(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = LogFolder(tmp_path, COMPACTED, files)
    put(folder.log, *"abacabad", "z")
    files.bytes_left = 50
    with pytest.raises(Refused):
        clean(folder.log)
    assert offsets(folder.log) == [2, 3, 4, 5, 6, 7, 8], "only the first segment, of which nothing stays, is cleaned"
    assert folder.names(CLEANED, SWAP) == []
    assert folder.log.directory.online
    files.recover()
    clean(folder.log)
    assert offsets(folder.log) == [3, 5, 6, 7, 8]


@pytest.mark.parametrize("call", ["fsync", "fsync_dir", "rename"])
def test_a_failing_disk_takes_the_directory_offline_and_a_start_finds_a_whole_log(tmp_path: Path, call: str) -> None:
    files = FaultyFiles()
    folder = LogFolder(tmp_path, COMPACTED, files)
    put(folder.log, *"abacabad", "z")
    folder.log.flush()
    files.fail(call, errno.EIO)
    with pytest.raises(StorageFailure):
        clean(folder.log)
    assert not folder.log.directory.online
    files.recover()
    folder.manager.abandon()
    assert {3, 5, 6, 7, 8} <= set(offsets(folder.open_again()))


# Groups


def sized(*sizes: int, offsets_each: int = 10, index_size: int = 0) -> list[SegmentSize]:
    return [SegmentSize(number * offsets_each, size, index_size, index_size) for number, size in enumerate(sizes)]


def test_segments_are_merged_as_long_as_one_segment_could_hold_them() -> None:
    config = log_config(segment_bytes=100)
    assert group_sizes(sized(60, 40, 1, 99, 100, 5), config, 60) == [2, 2, 1, 1]
    assert group_sizes([], config, 0) == []


def test_segments_are_merged_as_long_as_its_indexes_could() -> None:
    config = log_config(segment_bytes=1000, segment_index_bytes=96)
    assert group_sizes(sized(1, 1, 1, 1, 1, index_size=40), config, 50) == [2, 2, 1]


def test_segments_are_merged_as_long_as_their_offsets_have_31_bits() -> None:
    config = log_config(segment_bytes=1000)
    most = (1 << 31) - 1
    assert group_sizes(sized(1, 1, 1, offsets_each=1 << 30), config, (1 << 31) + 9) == [2, 1]
    assert group_sizes(sized(1, 1, offsets_each=10), config, most + 1) == [2]
    assert group_sizes(sized(1, 1, offsets_each=10), config, most + 2) == [1, 1]
    assert group_sizes(sized(1, 0, offsets_each=10), config, most + 2) == [2], "what is empty adds no offset"


def test_only_so_many_segments_are_merged_at_once_that_the_owner_does_not_stand_still() -> None:
    sizes = sized(*[1] * (2 * MOST_SEGMENTS_IN_A_GROUP + 6))
    groups = group_sizes(sizes, log_config(segment_bytes=1000), 10 * len(sizes))
    assert groups == [MOST_SEGMENTS_IN_A_GROUP, MOST_SEGMENTS_IN_A_GROUP, 6]
