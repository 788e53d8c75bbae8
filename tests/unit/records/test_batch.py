import struct
from types import ModuleType

import pytest

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.records import (
    HEADER_SIZE,
    Codec,
    Record,
    TimestampType,
    build_batch,
    check_batch,
    crc_matches,
    iter_headers,
    iter_records,
    place_batch,
    read_header,
    recompress,
    set_max_timestamp,
)
from tests.unit.records.batches import NOW_MS, batch_of, some_records, with_fields, with_stale_crc


def test_header_has_every_field() -> None:
    batch = build_batch(
        some_records(3),
        base_offset=1 << 40,
        codec=Codec.ZSTD,
        producer_id=1 << 50,
        producer_epoch=32_000,
        base_sequence=2_000_000_000,
        transactional=True,
        control=True,
        leader_epoch=77,
    )
    header = read_header(b"xy" + bytes(batch), 2)
    assert (header.base_offset, header.last_offset, header.next_offset) == (1 << 40, (1 << 40) + 2, (1 << 40) + 3)
    assert (header.size, header.count, header.magic, header.leader_epoch) == (len(batch), 3, 2, 77)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1 << 50, 32_000, 2_000_000_000)
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS + 2)
    assert header.codec is Codec.ZSTD
    assert header.is_transactional
    assert header.is_control
    assert not header.is_log_append_time
    assert header.delete_horizon_ms is None
    assert header.crc == int.from_bytes(batch[17:21])
    assert f"base_offset={1 << 40}" in repr(header)


def test_batch_with_a_delete_horizon_keeps_it_in_its_base_timestamp() -> None:
    batch = with_fields(build_batch(some_records()), attributes=0x40, base_timestamp=NOW_MS + 5)
    assert read_header(batch, 0).delete_horizon_ms == NOW_MS + 5


@pytest.mark.parametrize(("field", "value"), [("magic", 1), ("magic", 3), ("length", 48), ("length", -5)])
def test_what_is_no_header_is_malformed(field: str, value: int) -> None:
    with pytest.raises(MalformedBytes):
        read_header(with_stale_crc(build_batch(some_records()), **{field: value}), 0)


@pytest.mark.parametrize("position", [-1, 1, 10_000])
def test_header_must_lie_within_the_buffer(position: int) -> None:
    with pytest.raises(MalformedBytes):
        read_header(bytes(build_batch(some_records())[:HEADER_SIZE]), position)


def test_unknown_codec_in_a_header_is_malformed() -> None:
    with pytest.raises(MalformedBytes, match="unknown compression codec 6"):
        _ = read_header(with_fields(build_batch(some_records()), attributes=6), 0).codec


def test_headers_end_at_a_partial_batch() -> None:
    first, second = build_batch(some_records(2)), build_batch(some_records(5), base_offset=2)
    whole = bytes(first + second)
    places = [(0, 0), (len(first), 2)]
    assert [(position, header.base_offset) for position, header in iter_headers(whole, 0, len(whole))] == places
    for cut in range(len(first), len(whole)):
        assert [position for position, _ in iter_headers(whole, 0, cut)] == [0]


def test_crc_detects_any_flipped_bit() -> None:
    batch = build_batch(some_records(1))
    header = read_header(batch, 0)
    assert crc_matches(batch, 0, header)
    for position in range(21, len(batch)):
        flipped = bytearray(batch)
        flipped[position] ^= 0x10
        assert not crc_matches(flipped, 0, header)


@pytest.mark.parametrize(("base_offset", "leader_epoch"), [(0, 0), (2**63 - 1, 2**31 - 1), (1 << 40, -1)])
def test_placing_a_batch_changes_its_offset_and_leader_epoch_alone(
    core: ModuleType, base_offset: int, leader_epoch: int
) -> None:
    buffer = bytearray(b"....") + build_batch(some_records())
    expected = bytearray(buffer)
    struct.pack_into(">q", expected, 4, base_offset)
    struct.pack_into(">i", expected, 16, leader_epoch)
    core.place_batch(memoryview(buffer), 4, base_offset, leader_epoch)
    assert buffer == expected


@pytest.mark.parametrize(("position", "size"), [(-1, 100), (40, 100), (0, 60)])
def test_batch_is_placed_only_where_one_can_be(core: ModuleType, position: int, size: int) -> None:
    with pytest.raises(ValueError, match="no batch can be"):
        core.place_batch(bytearray(size), position, 0, 0)


def test_placing_a_batch_leaves_its_crc_valid() -> None:
    buffer = bytearray(b"head") + build_batch(some_records())
    place_batch(buffer, 4, 1_000_000, 9)
    checked = check_batch(buffer, 4, len(buffer))
    assert (checked.base_offset, checked.leader_epoch, checked.next_offset) == (1_000_000, 9, 1_000_010)


def test_setting_the_max_timestamp_recomputes_the_crc() -> None:
    buffer = bytearray(b"head") + build_batch(some_records(), transactional=True)
    set_max_timestamp(buffer, 4, TimestampType.LOG_APPEND_TIME, NOW_MS + 99)
    checked = check_batch(buffer, 4, len(buffer))
    assert checked.is_log_append_time
    assert checked.is_transactional
    assert checked.max_timestamp == NOW_MS + 99
    assert {record.timestamp for record in iter_records(buffer, 4)} == {NOW_MS + 99}
    set_max_timestamp(buffer, 4, TimestampType.CREATE_TIME, NOW_MS + 9)
    assert buffer[4:] == build_batch(some_records(), transactional=True)


def test_setting_the_max_timestamp_it_has_changes_nothing() -> None:
    batch = with_stale_crc(build_batch(some_records()), crc=1)
    set_max_timestamp(batch, 0, TimestampType.CREATE_TIME, NOW_MS + 9)
    assert read_header(batch, 0).crc == 1


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("target", Codec)
def test_recompressed_batch_has_the_same_records_and_header(source: Codec, target: Codec) -> None:
    records = some_records(500)
    buffer = b"head" + bytes(build_batch(records, codec=source, producer_id=5, producer_epoch=1, base_sequence=8))
    result = recompress(buffer, check_batch(buffer, 4, len(buffer)), target)
    checked = check_batch(result, 0, len(result))
    assert (checked.codec, checked.count, checked.producer_id, checked.base_sequence) == (target, 500, 5, 8)
    assert list(iter_records(result)) == list(iter_records(buffer, 4))


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, [-1, 1, 9]), (Codec.LZ4, [1, 9, 17]), (Codec.ZSTD, [-7, 1, 3, 19]), (Codec.SNAPPY, [None])],
)
def test_every_level_of_kafkas_settings_works(codec: Codec, levels: list[int | None]) -> None:
    batch = build_batch(some_records(300))
    for level in levels:
        result = recompress(batch, check_batch(batch, 0, len(batch)), codec, level)
        assert check_batch(result, 0, len(result)).count == 300


def test_reading_goes_on_over_batches_and_stops_at_a_partial_one() -> None:
    first = build_batch(some_records(3), codec=Codec.GZIP)
    second = build_batch(some_records(2), base_offset=3)
    whole = bytes(first + second)
    assert [record.offset for record in iter_records(whole)] == [0, 1, 2, 3, 4]
    assert [record.offset for record in iter_records(whole[:-1])] == [0, 1, 2]
    assert [record.offset for record in iter_records(whole, len(first))] == [3, 4]
    assert [record.offset for record in iter_records(whole, 0, len(first) + 5)] == [0, 1, 2]


@pytest.mark.parametrize("codec", Codec)
def test_record_larger_than_many_pieces_is_read(codec: Codec) -> None:
    records = [Record(NOW_MS, b"small", b"1"), Record(NOW_MS, b"large", bytes(30_000_000)), Record(NOW_MS, b"s", b"3")]
    assert [record.value for record in iter_records(build_batch(records, codec=codec))] == [
        record.value for record in records
    ]


@pytest.mark.parametrize(
    "batch",
    [
        with_fields(build_batch(some_records()), count=11),
        with_fields(build_batch(some_records()), count=9),
        batch_of(b"\x80" * 6),
        batch_of(b"\x02\0" + bytes(100)),
        batch_of(b"no gzip", attributes=1),
        batch_of(bytes([2 * 9]) + b"\0\0\0\1\1\x04\0\0\0"),
    ],
)
def test_records_that_cannot_be_read_are_malformed(batch: bytearray) -> None:
    with pytest.raises(MalformedBytes):
        list(iter_records(batch))


def test_batch_emptied_by_compaction_has_no_records() -> None:
    batch = with_fields(build_batch([Record(NOW_MS, None, None)])[:61], length=61 - 12, count=0, last_offset_delta=4)
    assert list(iter_records(batch)) == []
    with pytest.raises(Refused) as caught:
        check_batch(batch, 0, len(batch))
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_offsets_may_have_gaps_when_built_so() -> None:
    records = [Record(NOW_MS, b"a", b"", (), 100), Record(NOW_MS, b"b", b"", (), 107), Record(NOW_MS, b"c", b"")]
    batch = build_batch(records, base_offset=95)
    assert [record.offset for record in iter_records(batch)] == [100, 107, 108]
    assert read_header(batch, 0).last_offset == 108


@pytest.mark.parametrize("offsets", [[4], [5, 5], [6, 5], [5, 5 + (1 << 31)]])
def test_offsets_that_no_batch_can_hold_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="cannot follow"):
        build_batch([Record(NOW_MS, None, None, (), offset) for offset in offsets], base_offset=5)


def test_batch_needs_a_record() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        build_batch([])


def test_header_key_that_is_not_utf8_survives() -> None:
    payload = b"\0\0\0\1\1\x02" + b"\x04\xff\xfe" + b"\x01"
    batch = batch_of(bytes([2 * len(payload)]) + payload)
    (record,) = iter_records(batch)
    assert record.headers == (("\udcff\udcfe", None),)
    assert build_batch([record])[61:] == batch[61:]
