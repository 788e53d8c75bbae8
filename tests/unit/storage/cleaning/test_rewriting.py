"""What a new segment holds that is made of old ones, and what is left when it cannot be made."""

import errno
import math
from pathlib import Path

import pytest

from kaspar.base.clock import ManualClock
from kaspar.records import Codec, iter_headers, iter_records
from kaspar.storage import Log
from kaspar.storage.cleaning import rewriting
from kaspar.storage.cleaning.errors import CleaningStopped, DamagedSegment, OverfullSegment
from kaspar.storage.cleaning.rewriting import rewrite
from kaspar.storage.cleaning.throttle import UNLIMITED, Pace, Throttle
from kaspar.storage.cleaning.transactions import CleanedTransactions
from kaspar.storage.disk.file_names import CLEANED, LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX
from kaspar.storage.segments.indexes import OffsetIndex, TimeIndex
from kaspar.storage.segments.transaction_index import AbortedTransaction, TransactionIndex
from tests.unit.storage.cleaning.segments import (
    compacted_folder,
    content,
    filled,
    offsets,
    old_segments,
    put,
    rewritten,
)
from tests.unit.storage.faulty_files import FaultyFiles
from tests.unit.storage.logs import NOW_MS, LogFolder, end_transaction

DAY_MS = 24 * 60 * 60 * 1000


def roll(log: Log) -> None:
    log.roll(now_ms=NOW_MS)


def leftovers(folder: LogFolder) -> list[str]:
    return folder.names(CLEANED)


@pytest.mark.parametrize("codec", Codec)
def test_group_of_segments_becomes_one(tmp_path: Path, codec: Codec) -> None:
    folder = compacted_folder(tmp_path)
    put(folder.log, [b"a", b"b"], codec=codec)
    roll(folder.log)
    put(folder.log, [b"a", b"c"], codec=codec, timestamp=NOW_MS + 5)
    put(folder.log, [b"d"], codec=codec, timestamp=NOW_MS + 3)
    roll(folder.log)
    result = rewritten(folder.log)
    segment = result.segment
    assert offsets(segment) == [1, 2, 3, 4]
    assert (segment.base_offset, segment.size) == (0, len(content(segment)))
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (NOW_MS + 5, 3)
    assert (result.records_read, result.records_kept, result.records_without_key) == (5, 4, 0)
    assert result.bytes_read == sum(old.size for old in old_segments(folder.log))
    assert result.bytes_kept == segment.size
    assert leftovers(folder) == [
        "00000000000000000000.index.cleaned",
        "00000000000000000000.log.cleaned",
        "00000000000000000000.timeindex.cleaned",
    ]


@pytest.mark.parametrize("chunk_bytes", [61, 100, 300, 1000, 1 << 20])
def test_pieces_of_any_size_give_the_same_segment(tmp_path: Path, chunk_bytes: int) -> None:
    folder = compacted_folder(tmp_path)
    for number in range(40):
        put(folder.log, [b"%d" % (number * count % 13) for count in range(1, 9)], codec=Codec(number % 5))
    roll(folder.log)
    expected = content(rewritten(folder.log).segment)
    assert content(rewritten(folder.log, chunk_bytes=chunk_bytes).segment) == expected


def test_indexes_are_those_that_appends_would_have_made(tmp_path: Path) -> None:
    folder = compacted_folder(tmp_path, index_interval_bytes=300)
    for number in range(30):
        put(folder.log, [b"%d" % number], value=bytes(70), timestamp=NOW_MS + (number * 7) % 30)
    roll(folder.log)
    (old,) = old_segments(folder.log)
    segment = rewritten(folder.log).segment
    for suffix in (LOG, OFFSET_INDEX, TIME_INDEX):
        assert content(segment, suffix) == Path(old.path(suffix)).read_bytes()
    assert len(content(segment, OFFSET_INDEX)) > 8


def test_indexes_of_a_shrunken_segment_lead_to_its_batches(tmp_path: Path) -> None:
    folder = compacted_folder(tmp_path, index_interval_bytes=300)
    for number in range(200):
        put(folder.log, [b"%d" % (number % 50), b"x"], value=bytes(70), timestamp=NOW_MS + number)
    roll(folder.log)
    segment = rewritten(folder.log).segment
    data = content(segment)
    batches = {header.last_offset: position for position, header in iter_headers(data, 0, len(data))}
    files = folder.log.directory.files
    index = OffsetIndex.load(files, segment.path(OFFSET_INDEX) + CLEANED)
    assert len(index) > 5
    assert all(batches[offset] == position for offset, position in zip(index.offsets, index.positions, strict=True))
    assert index.is_sound(segment.size)
    last = TimeIndex.load(files, segment.path(TIME_INDEX) + CLEANED)
    assert (last.last_timestamp, last.last_relative_offset) == (NOW_MS + 199, 399)


def test_nothing_left_is_an_empty_segment(tmp_path: Path) -> None:
    folder = compacted_folder(tmp_path)
    put(folder.log, [b"a"])
    roll(folder.log)
    keys = filled(folder.log)
    keys.put(b"a", 5)
    keys.latest_offset = 5
    segment = rewritten(folder.log, keys).segment
    assert (segment.size, segment.max_timestamp) == (0, -1)
    assert content(segment) == content(segment, OFFSET_INDEX) == content(segment, TIME_INDEX) == b""


def test_last_batch_of_a_producer_and_of_the_pass_stay_empty(tmp_path: Path) -> None:
    folder = compacted_folder(tmp_path)
    log = folder.log
    put(log, [b"a"], producer_id=5)
    put(log, [b"a"], producer_id=6)
    put(log, [b"a"], producer_id=6, base_sequence=1)
    put(log, [b"a"])
    put(log, [b"a"])
    roll(log)
    put(log, [b"a"])
    roll(log)
    keys = filled(log)
    result = rewrite(log, log.segments.all[:1], keys, CleanedTransactions(), pace_without_limit(), now_ms=NOW_MS)
    data = content(result.segment)
    headers = [header for _, header in iter_headers(data, 0, len(data))]
    assert [(header.producer_id, header.base_offset, header.count) for header in headers] == [(5, 0, 0), (6, 2, 0)]
    assert log.producers.entries[6].last_sequence == headers[1].base_sequence
    keys.latest_offset = 4
    result = rewrite(log, log.segments.all[:1], keys, CleanedTransactions(), pace_without_limit(), now_ms=NOW_MS)
    data = content(result.segment)
    assert [header.base_offset for _, header in iter_headers(data, 0, len(data))] == [0, 2, 4]


def pace_without_limit() -> Pace:
    return Pace(1 << 16, Throttle(UNLIMITED, ManualClock()))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_aborted_records_go_and_their_marker_and_index_entry_stay_for_one_more_pass(
    tmp_path: Path, codec: Codec
) -> None:
    folder = compacted_folder(tmp_path)
    log = folder.log
    put(log, [b"a"])
    put(log, [b"b"], codec=codec, producer_id=7, transactional=True)
    put(log, [b"c"], codec=codec, producer_id=8, transactional=True)
    roll(log)
    put(log, [b"d"], codec=codec, producer_id=7, base_sequence=1, transactional=True)
    end_transaction(log, 7, committed=False)
    end_transaction(log, 8, committed=True)
    put(log, [b"e"], producer_id=7, base_sequence=2)
    roll(log)
    result = rewritten(log)
    assert offsets(result.segment) == [0, 2, 4, 5, 6]
    index = TransactionIndex(content(result.segment, TRANSACTION_INDEX))
    assert result.segment.aborted_count == len(index) == 1
    assert index[0] == AbortedTransaction(7, 1, 4, 2)
    data = content(result.segment)
    assert all(header.delete_horizon_ms is None for _, header in iter_headers(data, 0, len(data)))


def test_marker_with_nothing_left_to_end_is_kept_until_its_delete_horizon(tmp_path: Path) -> None:
    folder = compacted_folder(tmp_path)
    log = folder.log
    put(log, [b"a"], producer_id=7)
    end_transaction(log, 7, committed=True)
    put(log, [b"b"])
    roll(log)
    put(log, [b"c"])
    roll(log)
    keys = filled(log)
    first = rewritten(log, keys)
    data = content(first.segment)
    horizons = [header.delete_horizon_ms for _, header in iter_headers(data, 0, len(data)) if header.is_control]
    assert horizons == [NOW_MS + DAY_MS]
    old = Path(log.segments.all[0].path(LOG))
    old.write_bytes(data[: len(data) - len(Path(log.segments.all[1].path(LOG)).read_bytes())])
    log.segments.all[0].size = old.stat().st_size
    log.directory.readers.forget(log.segments.all[0])
    assert offsets(rewritten(log, keys, now_ms=NOW_MS + DAY_MS - 1).segment) == [0, 1, 2, 3]
    assert offsets(rewritten(log, keys, now_ms=NOW_MS + DAY_MS).segment) == [0, 2, 3]


@pytest.mark.parametrize(("wall_ms", "expected"), [(NOW_MS + 5 * DAY_MS, 6 * DAY_MS), (NOW_MS - DAY_MS, DAY_MS)])
def test_new_delete_horizons_count_from_the_later_of_the_believed_time_and_the_wall_clock(
    tmp_path: Path, wall_ms: int, expected: int
) -> None:
    folder = compacted_folder(tmp_path)
    put(folder.log, [b"a"], value=None)
    roll(folder.log)
    data = content(rewritten(folder.log, now_ms=NOW_MS, wall_ms=wall_ms).segment)
    assert [header.delete_horizon_ms for _, header in iter_headers(data, 0, len(data))] == [NOW_MS + expected]


def test_wall_clock_that_is_not_believed_ends_no_delete_horizon(tmp_path: Path) -> None:
    folder = compacted_folder(tmp_path)
    put(folder.log, [b"a"], value=None)
    roll(folder.log)
    data = content(rewritten(folder.log).segment)
    old = old_segments(folder.log)[0]
    Path(old.path(LOG)).write_bytes(data)
    old.size = len(data)
    folder.log.directory.readers.forget(old)
    keys = filled(folder.log)
    assert content(rewritten(folder.log, keys, wall_ms=NOW_MS + 365 * DAY_MS).segment) == data


def test_segment_that_would_grow_past_the_largest_position_cannot_be_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timestamps that are counted from the delete horizon take more bytes than they did."""
    folder = compacted_folder(tmp_path)
    put(folder.log, [b"%d" % number for number in range(100)], value=None)
    roll(folder.log)
    (old,) = old_segments(folder.log)
    monkeypatch.setattr(rewriting, "_LARGEST_POSITION", old.size)
    with pytest.raises(OverfullSegment, match=f"would be larger than the {old.size} bytes that a segment can have"):
        rewritten(folder.log)
    assert leftovers(folder) == []


def test_marker_is_kept_empty_while_it_alone_holds_the_epoch_of_its_producer(tmp_path: Path) -> None:
    folder = compacted_folder(tmp_path)
    log = folder.log
    end_transaction(log, 9, committed=True, epoch=3)
    put(log, [b"a"])
    roll(log)
    keys = filled(log)
    data = content(rewritten(log, keys, now_ms=NOW_MS - DAY_MS).segment)
    old = Path(log.segments.all[0].path(LOG))
    old.write_bytes(data)
    log.segments.all[0].size = len(data)
    log.directory.readers.forget(log.segments.all[0])
    data = content(rewritten(log, keys).segment)
    (marker, _) = (header for _, header in iter_headers(data, 0, len(data)))
    assert (marker.producer_id, marker.producer_epoch, marker.is_control, marker.count) == (9, 3, True, 0)
    assert [record.key for record in iter_records(data)] == [b"a"]


def test_everything_is_synced_before_it_is_handed_over(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = compacted_folder(tmp_path, files)
    put(folder.log, [b"a"])
    put(folder.log, [b"b"], producer_id=7, transactional=True)
    end_transaction(folder.log, 7, committed=False)
    roll(folder.log)
    keys = filled(folder.log)
    before = files.calls["fsync"]
    rewritten(folder.log, keys)
    assert files.calls["fsync"] - before == 4


@pytest.mark.parametrize("call", ["open", "pwrite", "fsync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_failure_leaves_no_file_behind(tmp_path: Path, call: str, number: int) -> None:
    files = FaultyFiles()
    folder = compacted_folder(tmp_path, files)
    put(folder.log, [b"a"])
    roll(folder.log)
    keys = filled(folder.log)
    files.fail(call, number)
    with pytest.raises(OSError) as caught:
        rewritten(folder.log, keys)
    assert caught.value.errno == number
    files.recover()
    assert leftovers(folder) == []
    assert offsets(rewritten(folder.log, keys).segment) == [0]


def test_disk_that_fills_up_half_way_leaves_no_file_behind(tmp_path: Path) -> None:
    files = FaultyFiles()
    folder = compacted_folder(tmp_path, files)
    for number in range(50):
        put(folder.log, [b"%d" % number])
    roll(folder.log)
    keys = filled(folder.log)
    files.bytes_left = 1000
    with pytest.raises(OSError) as caught:
        rewritten(folder.log, keys, chunk_bytes=400)
    assert caught.value.errno == errno.ENOSPC
    assert leftovers(folder) == []


def test_damage_leaves_no_file_behind(tmp_path: Path) -> None:
    folder = compacted_folder(tmp_path)
    put(folder.log, [b"a"])
    put(folder.log, [b"b"])
    roll(folder.log)
    keys = filled(folder.log)
    path = Path(folder.log.segments.all[0].path(LOG))
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"\x55")
    with pytest.raises(DamagedSegment, match="the checksum is wrong"):
        rewritten(folder.log, keys)
    path.write_bytes(data[:-20])
    with pytest.raises(DamagedSegment, match="truncated"):
        rewritten(folder.log, keys)
    assert leftovers(folder) == []


def test_stop_in_the_middle_leaves_no_file_behind(tmp_path: Path) -> None:
    folder = compacted_folder(tmp_path)
    for number in range(50):
        put(folder.log, [b"%d" % number])
    roll(folder.log)
    keys = filled(folder.log)
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        return asked > 20

    pace = Pace(200, Throttle(UNLIMITED, ManualClock()), stopped)
    with pytest.raises(CleaningStopped):
        rewrite(folder.log, old_segments(folder.log), keys, CleanedTransactions(), pace, now_ms=NOW_MS)
    assert leftovers(folder) == []


def test_what_is_read_and_what_is_written_counts_for_the_throttle(tmp_path: Path) -> None:
    folder = compacted_folder(tmp_path)
    put(folder.log, [b"a"] * 100)
    put(folder.log, [b"b"])
    roll(folder.log)
    keys = filled(folder.log)
    clock = ManualClock()
    waited = 0.0

    def sleep(seconds: float) -> None:
        nonlocal waited
        waited += seconds
        clock.advance(math.ceil(seconds * 1000))

    result = rewrite(
        folder.log,
        old_segments(folder.log),
        keys,
        CleanedTransactions(),
        Pace(1 << 16, Throttle(1000, clock, sleep)),
        now_ms=NOW_MS,
    )
    assert waited == pytest.approx((result.bytes_read + result.bytes_kept) / 1000, abs=0.01)
