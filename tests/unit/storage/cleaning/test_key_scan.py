"""Which keys of a log the cleaner learns, and how far."""

from pathlib import Path

import pytest

from kaspar.base.clock import ManualClock
from kaspar.records import Codec
from kaspar.records.compaction import KeyMap
from kaspar.storage.cleaning.errors import CleaningStopped, DamagedSegment
from kaspar.storage.cleaning.key_scan import fill
from kaspar.storage.cleaning.throttle import UNLIMITED, Pace, Throttle
from kaspar.storage.disk.file_names import LOG
from tests.unit.storage.cleaning.segments import compacted_folder, filled, pace, put
from tests.unit.storage.logs import NOW_MS, end_transaction


@pytest.mark.parametrize("codec", Codec)
def test_every_key_of_the_old_segments_is_known_with_its_last_offset(tmp_path: Path, codec: Codec) -> None:
    log = compacted_folder(tmp_path).log
    put(log, [b"a", b"b"], codec=codec)
    log.roll(now_ms=NOW_MS)
    put(log, [b"a"], codec=codec)
    log.roll(now_ms=NOW_MS)
    put(log, [b"b"], codec=codec)
    keys = KeyMap(1 << 16)
    scan = fill(keys, log, 0, 3, pace())
    assert (keys.get(b"a"), keys.get(b"b"), keys.latest_offset) == (2, 1, 2)
    assert scan.records_read == 3
    assert scan.bytes_read == sum(segment.size for segment in log.segments.all[:-1])


def test_scan_begins_and_ends_within_segments(tmp_path: Path) -> None:
    log = compacted_folder(tmp_path, index_interval_bytes=0).log
    for key in (b"a", b"b", b"c", b"d"):
        put(log, [key])
    log.roll(now_ms=NOW_MS)
    keys = KeyMap(1 << 16)
    scan = fill(keys, log, 1, 3, pace())
    assert [keys.get(key) for key in (b"a", b"b", b"c", b"d")] == [-1, 1, 2, -1]
    assert keys.latest_offset == 2
    assert scan.records_read < 4, "the index leads to the first"


def test_nothing_dirty_is_nothing_to_learn(tmp_path: Path) -> None:
    log = compacted_folder(tmp_path).log
    put(log, [b"a"])
    keys = KeyMap(1 << 16)
    assert fill(keys, log, 1, 1, pace()) == (0, 0)
    assert (len(keys), keys.latest_offset) == (0, 0)


def test_gap_at_the_end_counts_as_known(tmp_path: Path) -> None:
    log = compacted_folder(tmp_path).log
    put(log, [b"a"])
    log.roll(now_ms=NOW_MS)
    keys = filled(log, 0, 1)
    assert keys.latest_offset == 0
    keys = KeyMap(1 << 16)
    fill(keys, log, 0, 500, pace())
    assert keys.latest_offset == 499


def test_full_map_ends_the_scan_and_the_next_one_goes_on_from_there(tmp_path: Path) -> None:
    log = compacted_folder(tmp_path).log
    for number in range(6):
        put(log, [b"%d" % number, b"%d" % number])
        log.roll(now_ms=NOW_MS)
    keys = filled(log, most_keys=4)
    assert (keys.is_full, len(keys), keys.latest_offset) == (True, 4, 7)
    fill(keys, log, 8, 12, pace())
    assert (keys.is_full, len(keys), keys.latest_offset) == (False, 2, 11)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_aborted_records_are_nobodys_last_value(tmp_path: Path, codec: Codec) -> None:
    log = compacted_folder(tmp_path).log
    put(log, [b"a"])
    put(log, [b"a", b"b"], codec=codec, producer_id=7, transactional=True)
    put(log, [b"c"], codec=codec, producer_id=8, transactional=True)
    log.roll(now_ms=NOW_MS)
    end_transaction(log, 7, committed=False)
    end_transaction(log, 8, committed=True)
    log.roll(now_ms=NOW_MS)
    keys = filled(log, 0, 4)
    assert [keys.get(key) for key in (b"a", b"b", b"c")] == [0, -1, 3]
    keys = filled(log)
    assert [keys.get(key) for key in (b"a", b"b", b"c")] == [0, -1, 3]
    assert len(keys) == 2, "markers have no keys"
    assert keys.latest_offset == 5


def test_batch_larger_than_a_piece_is_read_whole(tmp_path: Path) -> None:
    log = compacted_folder(tmp_path).log
    put(log, [b"%d" % number for number in range(100)])
    put(log, [b"last"])
    log.roll(now_ms=NOW_MS)
    keys = KeyMap(1 << 16)
    fill(keys, log, 0, 101, pace(chunk_bytes=200))
    assert len(keys) == 101


@pytest.mark.parametrize("place", [8, 30, 70])
def test_damage_is_reported_with_its_position(tmp_path: Path, place: int) -> None:
    log = compacted_folder(tmp_path).log
    put(log, [b"a"])
    first_size = log.size
    put(log, [b"b"])
    log.roll(now_ms=NOW_MS)
    path = Path(log.segments.all[0].path(LOG))
    data = bytearray(path.read_bytes())
    data[first_size + place] ^= 0x55
    path.write_bytes(data)
    with pytest.raises(DamagedSegment) as caught:
        filled(log)
    assert (caught.value.path, caught.value.position) == (str(path), first_size)


def test_stop_is_noticed(tmp_path: Path) -> None:
    log = compacted_folder(tmp_path).log
    put(log, [b"a"])
    log.roll(now_ms=NOW_MS)
    with pytest.raises(CleaningStopped):
        fill(KeyMap(1 << 16), log, 0, 1, Pace(1024, Throttle(UNLIMITED, ManualClock()), lambda: True))
