"""What a producer may send, and the code with which everything else is refused. Each rule holds in both forms."""

import threading
from types import ModuleType

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.records import Codec, Octets, Record, TakesTooLong, TimestampType, build_batch
from tests.unit.records.batches import (
    NOW_MS,
    batch_of,
    compressed,
    octets,
    plain_record,
    record,
    some_records,
    varint,
    with_fields,
    with_stale_crc,
)


def refusal(core: ModuleType, batch: Octets) -> Refused:
    with pytest.raises(Refused) as caught:
        core.check_batch(batch, 0, len(batch))
    return caught.value


@pytest.mark.parametrize("codec", Codec)
def test_checked_batch_describes_a_valid_batch(core: ModuleType, codec: Codec) -> None:
    records = [Record(NOW_MS, b"a", b"1"), Record(NOW_MS + 9, None, b"2"), Record(NOW_MS - 5, b"c", None)]
    records += [Record(NOW_MS + 9, b"d", b"4", (("name", b"value"),))]
    batch = build_batch(
        records, codec=codec, producer_id=7, producer_epoch=3, base_sequence=11, transactional=True, leader_epoch=5
    )
    buffer = b"before" + bytes(batch)
    checked = core.check_batch(buffer, 6, len(buffer))
    assert (checked.start, checked.end, checked.size) == (6, len(buffer), len(batch))
    assert (checked.base_offset, checked.last_offset, checked.next_offset) == (0, 3, 4)
    assert (checked.producer_id, checked.producer_epoch, checked.base_sequence) == (7, 3, 11)
    assert (checked.count, checked.leader_epoch, checked.magic, checked.codec) == (4, 5, 2, codec)
    assert (checked.min_timestamp, checked.max_timestamp, checked.header_max_timestamp) == (
        NOW_MS - 5,
        NOW_MS + 9,
        NOW_MS + 9,
    )
    assert checked.delta_of_max_timestamp == 1
    assert checked.has_keyless
    assert checked.is_transactional
    assert not checked.is_control
    assert not checked.is_log_append_time


def test_batch_whose_records_all_have_keys_has_none_keyless(core: ModuleType) -> None:
    batch = build_batch([Record(NOW_MS, b"", b"an empty key is a key")])
    assert not core.check_batch(batch, 0, len(batch)).has_keyless


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_read(core: ModuleType, make: type[bytes] | type[bytearray] | type[memoryview]) -> None:
    batch = make(bytes(build_batch(some_records())))
    assert core.check_batch(batch, 0, len(batch)).count == 10


def test_max_timestamp_is_that_of_the_records_whatever_the_header_says(core: ModuleType) -> None:
    batch = with_fields(build_batch(some_records()), max_timestamp=123)
    checked = core.check_batch(batch, 0, len(batch))
    assert (checked.max_timestamp, checked.header_max_timestamp) == (NOW_MS + 9, 123)


def test_records_of_a_log_append_time_batch_have_the_time_of_the_header(core: ModuleType) -> None:
    batch = build_batch(some_records(), timestamp_type=TimestampType.LOG_APPEND_TIME)
    batch = with_fields(batch, max_timestamp=NOW_MS + 1000)
    checked = core.check_batch(batch, 0, len(batch))
    assert (checked.min_timestamp, checked.max_timestamp) == (NOW_MS + 1000, NOW_MS + 1000)
    assert checked.delta_of_max_timestamp == 0


def test_records_without_a_time_give_the_batch_none(core: ModuleType) -> None:
    batch = build_batch([Record(-1, None, b""), Record(-1, None, b"")])
    checked = core.check_batch(batch, 0, len(batch))
    assert (checked.min_timestamp, checked.max_timestamp, checked.delta_of_max_timestamp) == (-1, -1, 0)


def test_timestamps_wrap_around_as_in_java(core: ModuleType) -> None:
    largest = (1 << 63) - 1
    batch = batch_of(plain_record(0) + plain_record(1, timestamp_delta=1), count=2, base_timestamp=largest)
    checked = core.check_batch(batch, 0, len(batch))
    assert (checked.min_timestamp, checked.max_timestamp) == (-largest - 1, largest)


def test_bytes_of_a_number_beyond_its_type_are_dropped_as_in_java(core: ModuleType) -> None:
    body = b"\0" + varint(0) + b"\x80\x80\x80\x80\x70" + octets(None) + octets(None) + varint(0)
    batch = batch_of(record(body))
    assert core.check_batch(batch, 0, len(batch)).count == 1


@pytest.mark.parametrize("size", range(61 + 40))
def test_part_of_a_batch_is_no_batch(core: ModuleType, size: int) -> None:
    batch = build_batch(some_records(3))
    assert refusal(core, batch[:size]).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("after", "code"),
    [
        (b"\0" * 11, None),
        (b"\0" * 12, ErrorCode.CORRUPT_MESSAGE),
        (b"\0" * 8 + b"\0\0\0\x0e", None),
        (b"\0" * 8 + b"\0\0\0\x0e\0\0\0\0\x02", None),
        (b"\0" * 8 + b"\0\0\0\x0e\0\0\0\0\x03", ErrorCode.CORRUPT_MESSAGE),
        (b"\0" * 8 + b"\0\0\0\x0e\0\0\0\0\x02" + b"\0" * 9, ErrorCode.INVALID_RECORD),
    ],
)
def test_what_follows_the_batch_is_judged_as_kafka_does(core: ModuleType, after: bytes, code: ErrorCode | None) -> None:
    batch = build_batch(some_records())
    if code is None:
        assert core.check_batch(batch + after, 0, len(batch) + len(after)).end == len(batch)
    else:
        assert refusal(core, batch + after).code is code


def test_second_batch_is_refused(core: ModuleType) -> None:
    batch = build_batch(some_records())
    assert refusal(core, batch + batch).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"magic": 0}, ErrorCode.INVALID_RECORD),
        ({"magic": 1}, ErrorCode.INVALID_RECORD),
        ({"magic": 3}, ErrorCode.CORRUPT_MESSAGE),
        ({"magic": -1}, ErrorCode.CORRUPT_MESSAGE),
        ({"length": -1}, ErrorCode.CORRUPT_MESSAGE),
        ({"length": 13}, ErrorCode.CORRUPT_MESSAGE),
        ({"length": 0x7FFF_FFFF}, ErrorCode.INVALID_RECORD),
        ({"crc": 1}, ErrorCode.CORRUPT_MESSAGE),
        ({"base_timestamp": 1}, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_wrong_header_is_refused(core: ModuleType, fields: dict[str, int], code: ErrorCode) -> None:
    batch = with_stale_crc(build_batch(some_records()), **fields)
    assert refusal(core, batch).code is code


def test_batch_smaller_than_its_header_is_corrupt(core: ModuleType) -> None:
    batch = with_stale_crc(build_batch(some_records()), length=61 - 12 - 1)[:60]
    assert refusal(core, batch).code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    "fields",
    [
        {"count": 0, "last_offset_delta": -1},
        {"count": -1, "last_offset_delta": -2},
        {"count": 9},
        {"last_offset_delta": 10},
        {"count": -0x8000_0000, "last_offset_delta": 0x7FFF_FFFF},
        {"count": 0x7FFF_FFFF, "last_offset_delta": 0x7FFF_FFFE},
        {"count": 9, "last_offset_delta": 8},
        {"count": 11, "last_offset_delta": 10},
    ],
)
@pytest.mark.parametrize("codec", Codec)
def test_wrong_count_is_refused(core: ModuleType, codec: Codec, fields: dict[str, int]) -> None:
    batch = with_fields(build_batch(some_records(), codec=codec), **fields)
    assert refusal(core, batch).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("number", [5, 6, 7])
def test_codec_nobody_knows_is_refused_as_kafka_does(core: ModuleType, number: int) -> None:
    batch = with_fields(build_batch(some_records()), attributes=number)
    assert refusal(core, batch).code is ErrorCode.UNKNOWN_SERVER_ERROR


GOOD_HEAD = b"\0" + varint(0) + varint(0)  # attributes, timestamp delta, offset delta
NO_HEADERS = varint(0)


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        (b"", "the batch ends within record 0 of 1"),
        (varint(6), "the batch ends within record 0 of 1"),
        (varint(70) + b"\0" * 60, "does not end where its length says"),
        (varint(5) + b"\0" * 5, "shorter than the smallest possible record"),
        (varint(-1) + b"\0" * 5, "shorter than the smallest possible record"),
        (b"\x80" * 5 + b"\0", "longer than its type"),
        (b"\x80", "the batch ends within record 0 of 1"),
        (record(b"\0" + b"\x80" * 10 + b"\0" * 9), "longer than its type"),
        (record(b"\0" + varint(0) + b"\x80" * 5 + b"\0" * 9), "longer than its type"),
        (plain_record(1), "an offset delta other than"),
        (plain_record(-1), "an offset delta other than"),
        (record(GOOD_HEAD + varint(100) + octets(b"v") + NO_HEADERS), "extends beyond the record"),
        (record(GOOD_HEAD + varint(0x7FFF_FFFF) + octets(b"v") + NO_HEADERS), "extends beyond the record"),
        (record(GOOD_HEAD + octets(b"k") + varint(100) + NO_HEADERS), "extends beyond the record"),
        (record(GOOD_HEAD + octets(b"k") + octets(b"v") + varint(-1)), "an invalid number of headers"),
        (record(GOOD_HEAD + octets(b"k") + octets(b"v") + varint(5) + b"\0\0"), "an invalid number of headers"),
        (record(GOOD_HEAD + octets(b"k") + octets(b"v") + varint(1) + octets(None) + octets(None)), "without a key"),
        (
            record(GOOD_HEAD + octets(b"k") + octets(b"v") + varint(1) + varint(9) + octets(b"v")),
            "extends beyond the rec",
        ),
        (
            record(GOOD_HEAD + octets(b"k") + octets(b"v") + varint(1) + octets(b"n") + varint(9)),
            "extends beyond the rec",
        ),
        (record(GOOD_HEAD + octets(b"k") + octets(b"v") + NO_HEADERS + b"more"), "does not end where its length says"),
        (record(GOOD_HEAD + octets(b"k") + octets(b"v") + NO_HEADERS, length=9) + b"\0", "does not end where its len"),
        (plain_record(0) + b"\0", "bytes follow the last of 1 records"),
        (plain_record(0) + plain_record(1), "bytes follow the last of 1 records"),
    ],
)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_wrong_record_is_refused(core: ModuleType, codec: Codec, payload: bytes, sentence: str) -> None:
    refused = refusal(core, batch_of(compressed(codec, [payload]), attributes=codec))
    assert refused.code is ErrorCode.INVALID_RECORD
    assert sentence in refused.message


def test_record_may_be_cut_anywhere_between_pieces(core: ModuleType) -> None:
    payload = bytes(build_batch(some_records(4, value_size=5))[61:])
    for cut in range(len(payload) + 1):
        for second_cut in range(cut, len(payload) + 1, 7):
            walk = core.RecordWalk(4, NOW_MS)
            assert all(walk.feed(piece) for piece in (payload[:cut], payload[cut:second_cut], payload[second_cut:]))
            assert walk.finish(), walk.explain()
            assert (walk.min_timestamp, walk.max_timestamp) == (NOW_MS, NOW_MS + 3)
            assert not walk.has_keyless


def test_walk_of_bytes_one_by_one_finds_a_missing_end(core: ModuleType) -> None:
    payload = bytes(build_batch(some_records(2, value_size=5))[61:])
    for size in range(len(payload)):
        walk = core.RecordWalk(2, NOW_MS)
        assert all(walk.feed(payload[index : index + 1]) for index in range(size))
        assert not walk.finish()


def test_place_outside_the_buffer_is_the_callers_mistake(core: ModuleType) -> None:
    batch = build_batch(some_records())
    for start, end in ((-1, len(batch)), (0, len(batch) + 1)):
        with pytest.raises(ValueError, match="is outside a buffer of"):
            core.check_batch(batch, start, end)


def test_check_is_given_up_between_two_pieces_when_time_is_out(core: ModuleType) -> None:
    batch = build_batch([Record(NOW_MS, None, bytes(1000))] * 1000, codec=Codec.LZ4)  # sixteen blocks
    asked = iter([False] * 5 + [True] * 100)
    with pytest.raises(TakesTooLong):
        core.check_batch(batch, 0, len(batch), lambda: next(asked))
    assert len(list(asked)) == 99
    assert core.check_batch(batch, 0, len(batch), lambda: False).count == 1000


def test_large_batch_is_checked_in_several_threads_at_once(core: ModuleType) -> None:
    """Above a certain size the walk gives the GIL away, and shares nothing."""
    batch = bytes(build_batch([Record(NOW_MS, b"k", b"v" * 10_000)] * 60))
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda: counts.append(core.check_batch(batch, 0, len(batch)).count)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [60] * 4


TERMS = (1000, 10, 5000, 5000, False)


def test_plain_batch_is_handed_on_with_what_a_log_wants_to_know(core: ModuleType) -> None:
    batch = build_batch(some_records(3), producer_id=7, producer_epoch=2, base_sequence=9)
    buffer = bytearray(b"....") + batch
    end = len(buffer)
    expected = (buffer, 4, end, 2, NOW_MS + 2, 7, 2, 9, False, -1)
    assert core.check_plain_batch(buffer, 4, end, core.PlainTerms(len(batch), 3, 0, 2, True), NOW_MS) == expected


@pytest.mark.parametrize(
    ("batch", "terms"),
    [
        (build_batch(some_records(1)), (60, 10, 5000, 5000, False)),
        (build_batch(some_records(2)), (1000, 1, 5000, 5000, False)),
        (build_batch(some_records(1)), (1000, 10, -1, 5000, False)),
        (build_batch(some_records(1)), (1000, 10, 5000, -1, False)),
        (batch_of(plain_record(0)), (1000, 10, 5000, 5000, True)),
        (build_batch(some_records(1), codec=Codec.LZ4), TERMS),
        (build_batch(some_records(1), control=True), TERMS),
        (build_batch(some_records(1), producer_id=1, producer_epoch=0, base_sequence=0, transactional=True), TERMS),
        (build_batch(some_records(1), producer_id=1, producer_epoch=0, base_sequence=-1), TERMS),
        (with_fields(build_batch(some_records(1)), base_offset=1), TERMS),
        (with_fields(build_batch(some_records(1)), attributes=8), TERMS),
        (with_fields(build_batch(some_records(1)), max_timestamp=NOW_MS + 1), TERMS),
        (build_batch(some_records(1)) + b"more", TERMS),
        (bytearray(b"short"), TERMS),
    ],
)
def test_batch_that_asks_for_a_closer_look_is_not_plain(
    core: ModuleType, batch: bytearray, terms: tuple[int, int, int, int, bool]
) -> None:
    assert core.check_plain_batch(batch, 0, len(batch), core.PlainTerms(*terms), NOW_MS) is None


def test_plain_batch_is_found_in_a_view_too(core: ModuleType) -> None:
    view = memoryview(b"...." + build_batch(some_records(2)))
    assert core.check_plain_batch(view, 4, len(view), core.PlainTerms(*TERMS), NOW_MS)[:4] == (view, 4, len(view), 1)
    with pytest.raises(ValueError, match="is outside a buffer of"):
        core.check_plain_batch(view, 4, len(view) + 1, core.PlainTerms(*TERMS), NOW_MS)


def test_batch_that_is_bad_is_refused_as_any_other_check_refuses_it(core: ModuleType) -> None:
    batch = with_stale_crc(build_batch(some_records(1)), crc=1)
    expected = refusal(core, batch)
    with pytest.raises(Refused) as caught:
        core.check_plain_batch(batch, 0, len(batch), core.PlainTerms(*TERMS), NOW_MS)
    assert (caught.value.code, caught.value.message) == (expected.code, expected.message)
