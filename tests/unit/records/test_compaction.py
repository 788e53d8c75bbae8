"""Which records stay when a log is compacted, and how a batch is written that has lost some. Each rule holds in both
forms of the compiled core."""

import contextlib
import random
import struct
import tracemalloc
from collections.abc import Iterable

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.records import (
    BatchHeader,
    Codec,
    Octets,
    Record,
    TimestampType,
    build_batch,
    compaction,
    crc_matches,
    iter_headers,
    iter_records,
    read_header,
)
from kaspar.records.compaction import BatchFate, BatchFilter, KeyMap
from tests.unit.records.batches import NOW_MS, batch_of, compressed, plain_record, with_fields, with_stale_crc
from tests.unit.records.forms import FORMS, core_in_form

DAY_MS = 24 * 60 * 60 * 1000
EVERYTHING = 1 << 62


@pytest.fixture(params=FORMS, autouse=True)
def _form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("key_table", "key_collecting", "judging", "rebuilding", "batch_scanning"):
        monkeypatch.setattr(compaction, name, core_in_form(request.param, f"kaspar.records.core.{name}"))


def records(*pairs: tuple[bytes | None, bytes | None], step_ms: int = 10) -> list[Record]:
    return [Record(NOW_MS + step_ms * index, key, value) for index, (key, value) in enumerate(pairs)]


def map_all(keys: KeyMap, data: Octets, first_offset: int = 0) -> KeyMap:
    position = 0
    while (position := keys.map_plain(data, position, len(data), first_offset, EVERYTHING)) < len(data):
        header = read_header(data, position)
        if not keys.map_batch(data, position, header, first_offset):
            break
        position += header.size
    return keys


def mapped(data: Octets, first_offset: int = 0) -> KeyMap:
    return map_all(KeyMap(1 << 16), data, first_offset)


def filtered(
    data: Octets,
    keys: KeyMap,
    *,
    fate: BatchFate | None = None,
    last_data_offsets: Iterable[int] = (),
    end_offset: int = -1,
    now_ms: int = NOW_MS,
) -> bytes:
    """What stays; a `fate` is that of every batch."""
    batches = BatchFilter(keys, last_data_offsets, end_offset, now_ms, now_ms + DAY_MS)
    position = 0
    while position < len(data):
        if fate is None:
            position = batches.filter_plain(data, position, len(data))
        if position < len(data):
            header = read_header(data, position)
            batches.filter_batch(data, position, header, fate or BatchFate())
            position += header.size
    kept = bytes(batches.take())
    assert compaction.batch_scanning.whole_batches(kept, 0, len(kept)) == (len(kept), None)
    return kept


def only_header(data: bytes) -> BatchHeader:
    ((_, header),) = iter_headers(data, 0, len(data))
    return header


def keys_and_offsets(data: bytes) -> list[tuple[bytes | None, int]]:
    return [(record.key, record.offset) for record in iter_records(data)]


# --- The map ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "digest"),
    [
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (1, "da87c1d86b99af44347659119b22fc45"),
        (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
    ],
)
def test_keys_are_hashed_as_the_inventors_of_siphash_do(size: int, digest: str) -> None:
    seed = struct.unpack("<QQ", bytes(range(16)))
    table = compaction.key_table.KeyTable(memoryview(bytearray(24)).cast("Q"), 1, seed)
    assert struct.pack("<QQ", *table.hash_of(bytes(range(size)))).hex() == digest


def test_map_knows_the_last_offset_of_each_key_and_no_other_key() -> None:
    keys = KeyMap(1 << 16)
    for offset, key in enumerate([b"a", b"b", b"", b"a"]):
        assert keys.put(key, offset)
    assert [keys.get(key) for key in (b"a", b"b", b"", b"c")] == [3, 1, 2, -1]
    assert len(keys) == 3


def test_map_takes_as_many_keys_as_its_load_factor_allows_and_goes_on_with_those_it_has() -> None:
    keys = KeyMap(24 * 100, 0.9)
    assert keys.capacity == 90
    assert all(keys.put(b"%d" % number, number) for number in range(90))
    assert not keys.put(b"one more", 90)
    assert keys.put(b"5", 91)
    assert all(keys.get(b"%d" % number) == number for number in range(90) if number != 5)


def test_map_without_a_free_slot_still_finds_out_what_it_has_not() -> None:
    keys = KeyMap(24 * 4, 1.0)
    assert all(keys.put(b"%d" % number, number) for number in range(4))
    assert not keys.put(b"another", 4)
    assert keys.get(b"another") == -1


def test_memory_for_less_than_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        KeyMap(24)


def test_cleared_map_knows_nothing_and_hashes_in_another_way() -> None:
    keys = map_all(KeyMap(24 * 10), build_batch(records(*[(b"%d" % number, b"") for number in range(20)])))
    assert keys.is_full
    before = keys.table.hash_of(b"0")
    keys.clear(5)
    assert (len(keys), keys.latest_offset, keys.is_full, keys.get(b"0")) == (0, -1, False, -1)
    assert keys.table.hash_of(b"0") != before
    assert all(keys.put(b"%d" % number, number) for number in range(5))


@pytest.mark.parametrize("codec", Codec)
def test_records_from_the_first_offset_on_are_mapped_except_those_without_a_key(codec: Codec) -> None:
    data = build_batch(
        records((b"a", b"1"), (b"b", b"2"), (None, b"3"), (b"a", None), (b"c", b"5")), base_offset=10, codec=codec
    )
    keys = mapped(data, first_offset=11)
    assert [keys.get(key) for key in (b"a", b"b", b"c")] == [13, 11, 14]
    assert (len(keys), keys.latest_offset, keys.records_read) == (3, 14, 5)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_batches_of_more_records_than_are_looked_up_at_once_are_mapped(codec: Codec) -> None:
    data = build_batch(records(*[(b"%d" % (number % 150), b"v") for number in range(500)]), codec=codec)
    keys = mapped(data)
    assert [keys.get(b"%d" % number) for number in range(150)] == [
        max(range(number, 500, 150)) for number in range(150)
    ]
    assert keys_and_offsets(filtered(data, keys)) == [(b"%d" % (offset % 150), offset) for offset in range(350, 500)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_full_map_says_up_to_which_record_it_knows_every_key(codec: Codec) -> None:
    data = build_batch(records(*[(b"%d" % (number // 2), b"v") for number in range(40)]), base_offset=100, codec=codec)
    keys = map_all(KeyMap(24 * 10, 0.5), data)
    assert keys.is_full
    assert (len(keys), keys.latest_offset) == (5, 109)


@pytest.mark.parametrize(
    "batch",
    [
        build_batch([Record(NOW_MS, b"k", b"v")], base_offset=1, codec=Codec.LZ4),
        build_batch([Record(NOW_MS, b"k", b"v")], base_offset=1, producer_id=1, transactional=True),
        build_batch([Record(NOW_MS, b"k", b"v")], base_offset=1, producer_id=1, control=True),
    ],
    ids=["compressed", "transactional", "control"],
)
def test_run_of_plain_batches_ends_before_one_that_needs_a_decision(batch: bytes) -> None:
    plain = build_batch([Record(NOW_MS, b"k", b"v")])
    data = bytes(plain + batch)
    keys = KeyMap(1 << 16)
    assert keys.map_plain(data, 0, len(data), 0, EVERYTHING) == len(plain)
    assert keys.latest_offset == 0
    assert BatchFilter(keys, (), -1, NOW_MS, NOW_MS + DAY_MS).filter_plain(data, 0, len(data)) == len(plain)


def test_batches_from_the_end_offset_on_are_not_mapped() -> None:
    first = build_batch(records((b"a", b"1"), (b"b", b"2")))
    data = bytes(first + build_batch(records((b"a", b"3")), base_offset=2))
    keys = KeyMap(1 << 16)
    assert keys.map_plain(data, 0, len(data), 0, 2) == len(first)
    assert (keys.get(b"a"), keys.latest_offset) == (0, 1)


# --- The filter -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("timestamp_type", TimestampType)
def test_of_each_key_the_last_record_stays_where_it_was(codec: Codec, timestamp_type: TimestampType) -> None:
    batch = build_batch(
        [
            Record(NOW_MS + 5, b"a", b"1"),
            Record(NOW_MS + 900, b"b", b"2", (("name", b"value"), ("none", None))),
            Record(NOW_MS - 70_000, b"c", b"3" * 300),
            Record(NOW_MS + 9_999, b"a", b"4"),
        ],
        base_offset=7,
        codec=codec,
        timestamp_type=timestamp_type,
        producer_id=3,
        producer_epoch=4,
        base_sequence=5,
        leader_epoch=6,
    )
    later = build_batch(records((b"a", b"5")), base_offset=11)
    kept = filtered(batch + later, mapped(batch + later))
    assert kept.endswith(later)
    assert list(iter_records(kept)) == [
        record for record in iter_records(batch + later) if record.offset not in (7, 10)
    ]
    old, new = read_header(batch, 0), read_header(kept, 0)
    assert crc_matches(kept, 0, new)
    for field in ("base_offset", "last_offset", "producer_id", "producer_epoch", "base_sequence", "leader_epoch"):
        assert getattr(new, field) == getattr(old, field)
    assert (new.attributes, new.count, new.codec) == (old.attributes, 2, codec)
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        assert new.max_timestamp == new.base_timestamp == old.max_timestamp
    else:
        assert (new.base_timestamp, new.max_timestamp) == (NOW_MS + 900, NOW_MS + 900)


@pytest.mark.parametrize("codec", Codec)
def test_batch_that_loses_nothing_stays_byte_for_byte(codec: Codec) -> None:
    data = bytes(build_batch(records((b"a", b"1"), (b"b", b"2")), base_offset=3, codec=codec, level=1))
    assert filtered(data, mapped(data)) == data


def test_record_that_the_map_has_not_reached_stays_whatever_it_is() -> None:
    mapped_part = build_batch(records((b"a", b"1")))
    rest = build_batch(records((b"a", b"2"), (None, b"no key"), (b"a", b"3")), base_offset=1)
    assert filtered(mapped_part + rest, mapped(mapped_part)) == bytes(mapped_part + rest)


def test_record_older_than_one_that_the_map_has_reached_only_in_part_goes() -> None:
    data = build_batch(records(*[(b"%d" % number, b"v") for number in (1, 2, 1, 3, 4)]))
    keys = map_all(KeyMap(24 * 3, 1.0), data)
    assert keys.latest_offset == 3
    assert keys_and_offsets(filtered(data, keys)) == [(b"2", 1), (b"1", 2), (b"3", 3), (b"4", 4)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_records_without_a_key_go_and_are_counted(codec: Codec) -> None:
    data = build_batch(records((None, b"1"), (b"a", b"2"), (None, b"3")), codec=codec)
    keys = mapped(data)
    batches = BatchFilter(keys, (), -1, NOW_MS, NOW_MS + DAY_MS)
    batches.filter_batch(data, 0, read_header(data, 0), BatchFate())
    assert keys_and_offsets(bytes(batches.take())) == [(b"a", 1)]
    assert (batches.records_read, batches.records_kept, batches.records_without_key) == (3, 1, 2)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("timestamp_type", TimestampType)
def test_tombstone_gives_its_batch_a_delete_horizon_and_goes_when_that_has_come(
    codec: Codec, timestamp_type: TimestampType
) -> None:
    data = build_batch(records((b"a", b"1"), (b"b", None)), codec=codec, timestamp_type=timestamp_type)
    keys = mapped(data)
    marked = filtered(data, keys)
    assert only_header(marked).delete_horizon_ms == NOW_MS + DAY_MS
    assert list(iter_records(marked)) == list(iter_records(data)), "timestamps and all"
    assert filtered(marked, keys, now_ms=NOW_MS + DAY_MS - 1) == marked, "it is set once"
    later = filtered(marked, keys, now_ms=NOW_MS + DAY_MS)
    assert list(iter_records(later)) == list(iter_records(data))[:1]
    assert only_header(later).delete_horizon_ms == NOW_MS + DAY_MS


def test_whether_a_horizon_has_come_and_from_when_on_new_ones_count_are_two_times() -> None:
    data = build_batch(records((b"a", None)))
    keys = mapped(data)
    batches = BatchFilter(keys, (), -1, NOW_MS, NOW_MS + 9 * DAY_MS)
    batches.filter_plain(data, 0, len(data))
    marked = bytes(batches.take())
    assert only_header(marked).delete_horizon_ms == NOW_MS + 9 * DAY_MS
    assert filtered(marked, keys, now_ms=NOW_MS + 9 * DAY_MS - 1) == marked
    assert filtered(marked, keys, now_ms=NOW_MS + 9 * DAY_MS) == b""


def test_tombstone_is_kept_from_what_the_horizon_is_set_on_only_if_it_is_the_last_of_its_key() -> None:
    data = build_batch(records((b"a", None), (b"a", b"1"), (b"b", b"2")))
    kept = filtered(data, mapped(data))
    assert keys_and_offsets(kept) == [(b"a", 1), (b"b", 2)]
    assert only_header(kept).delete_horizon_ms is None


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_batch_with_nothing_left_goes_unless_it_says_the_last_of_its_producer_or_of_the_pass(codec: Codec) -> None:
    batches = [
        build_batch(
            records((b"a", b"1"), (b"a", b"2")),
            base_offset=offset,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=1,
            base_sequence=offset,
        )
        for offset, producer_id in ((0, 8), (2, 9), (4, -1), (6, 8))
    ]
    data = b"".join(map(bytes, batches))
    keys = KeyMap(1 << 16)
    keys.put(b"a", 8)
    keys.latest_offset = 8
    assert filtered(data, keys) == b""
    kept = filtered(data, keys, last_data_offsets=[5, 3], end_offset=8)
    headers = [header for _, header in iter_headers(kept, 0, len(kept))]
    assert [(header.base_offset, header.last_offset, header.count, header.size) for header in headers] == [
        (2, 3, 0, 61),
        (6, 7, 0, 61),
    ]
    assert [(header.producer_id, header.producer_epoch, header.base_sequence) for header in headers] == [
        (9, 1, 2),
        (8, 1, 6),
    ]
    assert {(header.base_timestamp, header.max_timestamp, header.codec) for header in headers} == {
        (-1, NOW_MS + 10, Codec.NONE)
    }
    assert filtered(kept, keys, last_data_offsets=[3]) == kept[:61], "and so it does in the next pass"
    assert list(iter_records(kept)) == []


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_records_of_a_batch_can_be_dropped_whatever_their_keys(codec: Codec) -> None:
    data = build_batch(
        records((b"a", b"1")), codec=codec, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
    )
    keys = mapped(data)
    assert filtered(data, keys, fate=BatchFate(drops_records=True)) == b""
    empty = only_header(filtered(data, keys, fate=BatchFate(drops_records=True), last_data_offsets=[0]))
    assert (empty.count, empty.is_transactional) == (0, True)


def test_marker_stays_and_gets_a_delete_horizon_once_it_ends_nothing() -> None:
    marker = build_batch(
        [Record(NOW_MS, b"\0\0\0\1", b"\0\0\0\0\0\7")],
        producer_id=1,
        producer_epoch=2,
        transactional=True,
        control=True,
    )
    keys = KeyMap(1 << 16)
    keys.put(b"\0\0\0\1", 5)
    keys.latest_offset = 9
    assert filtered(marker, keys, fate=BatchFate()) == marker, "its key is no key"
    marked = filtered(marker, keys, fate=BatchFate(ends_nothing=True))
    assert only_header(marked).delete_horizon_ms == NOW_MS + DAY_MS
    assert list(iter_records(marked)) == list(iter_records(marker))
    assert filtered(marked, keys, fate=BatchFate(drops_records=True, ends_nothing=True)) == b""
    empty = only_header(filtered(marked, keys, fate=BatchFate(drops_records=True, keeps_empty=True)))
    assert (empty.count, empty.is_control, empty.is_transactional, empty.delete_horizon_ms) == (0, True, True, None)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_batch_that_inflates_to_much_is_inflated_twice_rather_than_held(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = records(*[(b"%d" % (number % 700), bytes(2_000)) for number in range(800)])
    data = build_batch(many, codec=codec)
    keys = mapped(data)
    usual = filtered(data, keys)
    assert [record.offset for record in iter_records(usual)] == list(range(100, 800))
    monkeypatch.setattr(compaction, "_HELD_BYTES", 100_000)
    assert filtered(data, keys) == usual


def test_what_was_taken_is_not_given_again() -> None:
    data = build_batch(records((b"a", b"1")))
    batches = BatchFilter(mapped(data), (), -1, NOW_MS, NOW_MS + DAY_MS)
    for _ in range(2):
        batches.filter_plain(data, 0, len(data))
        assert batches.take() == data
        assert len(batches.take()) == 0


# --- Damage -----------------------------------------------------------------------------------------------------------


def test_whole_batches_end_where_one_is_cut_off() -> None:
    one = bytes(build_batch(records((b"a", b"1"))))
    assert compaction.batch_scanning.whole_batches(one + one[:-1], 0, 2 * len(one) - 1) == (len(one), None)
    assert compaction.batch_scanning.whole_batches(one + one[:20], len(one), len(one) + 20) == (len(one), None)


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (with_stale_crc(build_batch(records((b"a", b"1"))), leader_epoch=0, base_timestamp=1), "the checksum is wrong"),
        (with_stale_crc(build_batch(records((b"a", b"1"))), magic=1), "what stands there is no record batch"),
        (with_stale_crc(build_batch(records((b"a", b"1"))), length=48), "what stands there is no record batch"),
        (bytes(80), "what stands there is no record batch"),
    ],
    ids=["crc", "magic", "length", "zeros"],
)
def test_what_is_no_sound_batch_is_found(bad: bytes, problem: str) -> None:
    good = bytes(build_batch(records((b"a", b"1"))))
    assert compaction.batch_scanning.whole_batches(good + bad, 0, len(good) + len(bad)) == (len(good), problem)


@pytest.mark.parametrize(
    "batch",
    [
        with_fields(build_batch(records((b"a", b"1"), (b"b", b"2"))), count=3),
        with_fields(build_batch(records((b"a", b"1"), (b"b", b"2"))), count=1),
        with_fields(build_batch(records((b"a", b"1"), (b"b", b"2")), codec=Codec.LZ4), count=3),
        with_fields(build_batch(records((b"a", b"1"), (b"b", b"2")), codec=Codec.LZ4), count=1),
        with_fields(build_batch(records((b"a", b"1")), codec=Codec.ZSTD), count=0x7FFF_FFFF),
        batch_of(plain_record(0, key=b"k")[:-4]),
        batch_of(b"\xff" * 9),
        batch_of(b"\x0e\0\0\0\x0c" + bytes(3)),
        batch_of(b"no lz4 frame", attributes=3),
        batch_of(bytes(20), attributes=4),
    ],
    ids=[
        *("too few records", "too many records", "too few compressed", "too many compressed", "too many to be true"),
        *("cut off", "no length", "key longer than the record", "broken lz4", "broken zstd"),
    ],
)
def test_records_that_cannot_be_read_are_malformed(batch: bytearray) -> None:
    data = bytes(batch)
    keys = KeyMap(1 << 16)
    with pytest.raises(MalformedBytes):
        map_all(keys, data)
    with pytest.raises(MalformedBytes):
        filtered(data, KeyMap(1 << 16))


@pytest.mark.parametrize("count", [-1, 0, 1, 1000, 0x7FFF_FFFF])
@pytest.mark.parametrize("attributes", [0, 0x10, Codec.LZ4], ids=["plain", "transactional", "compressed"])
def test_batch_that_lies_about_how_many_records_it_has_is_malformed(attributes: int, count: int) -> None:
    payload = bytes(build_batch(records(*[(b"%d" % number, b"") for number in range(500)]))[61:])
    written = compressed(Codec.LZ4, [payload]) if attributes == Codec.LZ4 else payload
    data = bytes(batch_of(written, count=count, attributes=attributes))
    with pytest.raises(MalformedBytes):
        filtered(data, KeyMap(1 << 16))


@pytest.mark.parametrize(
    ("codec", "transactional"),
    [(Codec.NONE, False), (Codec.NONE, True), (Codec.ZSTD, False)],
    ids=["plain", "transactional", "compressed"],
)
def test_large_record_takes_the_memory_of_one_record(codec: Codec, transactional: bool) -> None:
    """And not that of the many small ones which would have as many bytes: a stranger may send it in a few."""
    size = 1 << 20
    data = build_batch(
        records((b"a", b"old"), (b"b", bytes(size)), (b"a", b"new")),
        codec=codec,
        transactional=transactional,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
    )
    keys = mapped(data)
    batches = BatchFilter(keys, (), -1, NOW_MS, NOW_MS + DAY_MS)
    tracemalloc.start()
    try:
        if (position := batches.filter_plain(data, 0, len(data))) < len(data):
            batches.filter_batch(data, position, read_header(data, position), BatchFate())
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert keys_and_offsets(bytes(batches.take())) == [(b"b", 1), (b"a", 2)]
    assert most_bytes < 2.5 * size, "it is inflated, in pieces that are joined, and copied"


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_there_is_room_for_records_that_grow_as_much_as_they_can(codec: Codec) -> None:
    """Timestamps are counted from a horizon as far away as can be, and lengths take another byte."""
    sizes = [0, 50, 51, 52, 53, 54, 55, 56, 57] * 200
    payload = b"".join(plain_record(number, key=bytes(size), value=None) for number, size in enumerate(sizes))
    written = payload if codec is Codec.NONE else compressed(codec, [payload])
    data = bytes(batch_of(written, count=len(sizes), attributes=codec))
    base_timestamp = read_header(data, 0).base_timestamp
    batches = BatchFilter(KeyMap(1 << 16), (), -1, NOW_MS, base_timestamp - (1 << 62))
    batches.filter_plain(data, 0, len(data))
    if codec is not Codec.NONE:
        batches.filter_batch(data, 0, read_header(data, 0), BatchFate())
    kept = bytes(batches.take())
    assert [record.timestamp for record in iter_records(kept)] == [record.timestamp for record in iter_records(data)]
    assert len(kept) > len(data) or codec is not Codec.NONE


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_records_are_they_are_malformed_or_leave_whole_batches(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        some = records(*[(b"%d" % rng.randrange(5), bytes(rng.randrange(40))) for _ in range(rng.randint(1, 80))])
        codec = rng.choice([Codec.NONE, Codec.LZ4])
        payload = bytearray(build_batch(some)[61:])
        for _ in range(rng.randrange(4)):
            payload[rng.randrange(len(payload))] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        written = bytes(payload) if codec is Codec.NONE else compressed(codec, [bytes(payload)])
        data = bytes(batch_of(written, count=len(some), attributes=codec | rng.choice([0, 0x08, 0x40])))
        keys = KeyMap(24 * rng.randint(2, 200))
        with contextlib.suppress(MalformedBytes):
            map_all(keys, data)
        with contextlib.suppress(MalformedBytes):
            filtered(data, keys)


# --- The index --------------------------------------------------------------------------------------------------------


def test_index_names_the_batch_that_comes_after_more_bytes_than_its_interval() -> None:
    batches = [
        bytes(build_batch([Record(timestamp, b"k", bytes(100)), Record(0, b"l", b"")], base_offset=2 * number))
        for number, timestamp in enumerate([500, 900, 700, 800, 950])
    ]
    size = len(batches[0])
    points = compaction.batch_scanning.IndexPoints(2 * size - 1)
    assert points.add(b"".join(batches[:2]), 0) == []
    assert points.add(b"".join(batches[2:]), 2 * size) == [(5, 2 * size, 900, 3), (9, 4 * size, 950, 9)]
    assert (points.max_timestamp, points.offset_of_max_timestamp, points.last_offset) == (950, 9, 9)


# --- All together -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_any_log_keeps_exactly_the_last_record_of_each_key(seed: int) -> None:
    rng = random.Random(seed)
    data = b""
    offset = 0
    for _ in range(rng.randint(1, 8)):
        count = rng.randint(1, 100 if seed == 0 else 12)
        some = [
            Record(
                1000 + rng.randrange(10 ** rng.randint(1, 12)),
                rng.choice([None, *(b"%d" % number for number in range(9))]),
                rng.choice([None, bytes(rng.randrange(300))]),
                (("header", b"x"),) * rng.randrange(3),
            )
            for _ in range(count)
        ]
        kind = rng.choice(list(TimestampType))
        data += build_batch(some, base_offset=offset, codec=rng.choice(list(Codec)), timestamp_type=kind)
        offset += count
    first_offset = rng.randrange(offset)
    keys = mapped(data, first_offset)
    last = {record.key: record.offset for record in iter_records(data) if record.offset >= first_offset}
    expected = [
        record for record in iter_records(data) if record.key is not None and record.offset >= last.get(record.key, -1)
    ]
    kept = filtered(data, keys)
    assert list(iter_records(kept)) == expected
    assert filtered(kept, keys) == kept
    later = filtered(kept, keys, now_ms=NOW_MS + DAY_MS)
    assert list(iter_records(later)) == [record for record in expected if record.value is not None]
