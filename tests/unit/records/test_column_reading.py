import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.records import (
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    TimestampType,
    build_batch,
    build_end_transaction_marker,
    build_leader_change,
    set_max_timestamp,
)
from kaspar.records import column_reading as reading
from kaspar.records.column_reading import offset_behind
from tests.unit.records.batches import NOW_MS, batch_of, plain_record, record, some_records, with_fields, with_stale_crc
from tests.unit.records.columns import Row, offsets_of, read_columns, rows_of
from tests.unit.records.forms import FORMS, core_in_form


@pytest.fixture(params=FORMS, autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs on each form of the compiled core."""
    for name in ("column_filling", "batch_selection"):
        monkeypatch.setattr(reading, name, core_in_form(request.param, f"kaspar.records.core.{name}"))


def batch_at(offset: int, count: int = 3, *, codec: Codec = Codec.NONE, producer: int = -1) -> bytearray:
    return build_batch(
        [Record(NOW_MS + n, b"k%d" % n, b"v" * n) for n in range(count)],
        base_offset=offset,
        codec=codec,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        transactional=producer >= 0,
    )


def marker_at(offset: int, producer: int, control_type: ControlType) -> bytearray:
    marker = EndTransactionMarker(control_type, 0)
    return build_end_transaction_marker(
        marker, producer_id=producer, producer_epoch=0, timestamp=NOW_MS, base_offset=offset
    )


# --- what is in the columns -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_every_column_of_every_codec(codec: Codec) -> None:
    records = [
        Record(NOW_MS, b"key", b"value", (("origin", b"test"), ("empty", None), ("origin", b""))),
        Record(NOW_MS + 5, None, b""),
        Record(NOW_MS - 7, b"", None, (("ü", b"x"),)),
    ]
    (columns,) = read_columns([build_batch(records, base_offset=7, codec=codec)])
    assert rows_of(columns) == [
        Row(b"key", b"value", 7, NOW_MS * 1000, 0, (("origin", b"test"), ("empty", None), ("origin", b""))),
        Row(None, b"", 8, (NOW_MS + 5) * 1000, 0, None),
        Row(b"", None, 9, (NOW_MS - 7) * 1000, 0, (("ü", b"x"),)),
    ]


def test_time_of_the_log_is_that_of_the_batch() -> None:
    batch = batch_at(0)
    set_max_timestamp(batch, 0, TimestampType.LOG_APPEND_TIME, NOW_MS + 99)
    (columns,) = read_columns([batch])
    assert {(row.timestamp_us, row.timestamp_type) for row in rows_of(columns)} == {((NOW_MS + 99) * 1000, 1)}


def test_record_without_a_time_keeps_minus_one() -> None:
    (columns,) = read_columns([build_batch([Record(-1, None, None)])])
    assert rows_of(columns)[0].timestamp_us == -1000


@pytest.mark.parametrize("timestamp", [1 << 62, -(1 << 62)])
def test_timestamp_that_overflows_microseconds_is_reported_and_not_wrapped(timestamp: int) -> None:
    batch = build_batch([Record(timestamp, None, b"v")])
    with pytest.raises(MalformedBytes, match="the timestamp of a record overflows microseconds"):
        read_columns([batch])
    assert read_columns([batch], columns=["value"])[0].rows == 1


def test_only_wanted_columns_take_memory() -> None:
    (columns,) = read_columns([batch_at(0)], columns=["offset", "topic"])
    assert rows_of(columns) == [Row(None, None, offset, None, None, None) for offset in range(3)]
    for buffer in (columns.timestamp, columns.timestamp_type, columns.key.data, columns.value.data):
        assert len(buffer) == 0


def test_rows_are_counted_where_no_column_of_records_is_wanted() -> None:
    assert [columns.rows for columns in read_columns([batch_at(0, 5)], columns=["topic"], max_rows=2)] == [2, 2, 1]


# --- which records ----------------------------------------------------------------------------------------------------


def test_range_starts_and_ends_within_batches() -> None:
    responses = [batch_at(0) + batch_at(3), batch_at(6) + batch_at(9)]
    found = read_columns(responses, start=2, until=7)
    assert [row.offset for columns in found for row in rows_of(columns)] == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_what_comes_twice_is_taken_once(codec: Codec) -> None:
    assert offsets_of(batch_at(0, codec=codec), batch_at(0, codec=codec) + batch_at(3, codec=codec)) == list(range(6))


def test_gaps_and_empty_batches_of_a_compacted_log_are_passed() -> None:
    gaps = batch_of(plain_record(1) + plain_record(7), count=2)
    empty = with_fields(batch_of(b"", count=1), base_offset=10, count=0, last_offset_delta=5)
    assert offsets_of(with_fields(gaps, last_offset_delta=9) + empty + batch_at(16)) == [1, 7, 16, 17, 18]


def test_part_of_a_batch_at_the_end_is_left_out() -> None:
    whole, cut = batch_at(0), batch_at(3)
    for size in (0, 1, 16, 17, 60, 61, len(cut) - 1):
        assert offsets_of(whole + cut[:size]) == [0, 1, 2]


def test_control_batches_are_never_shown() -> None:
    leader_change = with_fields(build_leader_change(1, (1,), (1,), timestamp=NOW_MS, leader_epoch=1), base_offset=3)
    commit = marker_at(4, 5, ControlType.COMMIT)
    assert offsets_of(batch_at(0) + leader_change + commit + batch_at(5)) == [0, 1, 2, 5, 6, 7]


def test_aborted_transactions_are_left_out_up_to_their_marker() -> None:
    response = (
        batch_at(0, producer=7)
        + batch_at(3, producer=8)  # of another producer, whose transaction is committed
        + batch_at(6)  # of none
        + batch_at(9, producer=7)
        + marker_at(12, 7, ControlType.ABORT)
        + batch_at(13, producer=7)  # its next transaction
        + marker_at(16, 8, ControlType.COMMIT)
        + marker_at(17, 7, ControlType.COMMIT)
        + batch_at(18, producer=8)
        + marker_at(21, 8, ControlType.ABORT)
    )
    assert offsets_of(response, aborted=[(8, 18), (7, 0)]) == [3, 4, 5, 6, 7, 8, 13, 14, 15]
    everything = [*range(12), 13, 14, 15, 18, 19, 20]
    assert offsets_of(response) == everything  # read_uncommitted: no transaction is called aborted


def test_transaction_whose_marker_is_not_in_the_response_is_left_out() -> None:
    assert offsets_of(batch_at(0, producer=7) + batch_at(3), aborted=[(7, 0)]) == [3, 4, 5]


# --- how large columns become -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_columns_end_with_the_most_rows_within_batches_and_across_responses(codec: Codec) -> None:
    responses = [batch_at(offset, 5, codec=codec) for offset in range(0, 50, 5)]
    found = read_columns(responses, max_rows=7)
    assert [columns.rows for columns in found] == [7, 7, 7, 7, 7, 7, 7, 1]
    assert [row.offset for columns in found for row in rows_of(columns)] == list(range(50))


def test_columns_end_before_the_most_bytes_and_a_larger_record_is_alone() -> None:
    sizes = [40, 40, 40, 500, 40, 90]
    batch = build_batch([Record(NOW_MS, None, b"v" * size) for size in sizes])
    found = read_columns([batch], max_bytes=100)
    assert [[len(row.value or b"") for row in rows_of(columns)] for columns in found] == [
        [40, 40],
        [40],
        [500],
        [40],
        [90],
    ]


def test_columns_that_were_given_do_not_change() -> None:
    reader = reading.ColumnReader(("topic", 0), ["value"], 0, 100, max_rows=2)  # type: ignore[arg-type]
    batch = build_batch([Record(NOW_MS, None, b"%d" % n) for n in range(4)])
    first, second = [*reader.take(memoryview(batch))], reader.finish()
    assert second is not None
    assert [row.value for columns in [*first, second] for row in rows_of(columns)] == [b"0", b"1", b"2", b"3"]


def test_rest_is_taken_and_the_reader_goes_on() -> None:
    reader = reading.ColumnReader(("topic", 0), ["value"], 0, 100)  # type: ignore[arg-type]
    found = []
    for number in range(2):
        batch = build_batch([Record(NOW_MS, None, b"%d" % number)], base_offset=number)
        assert list(reader.take(memoryview(batch))) == []
        rest = reader.take_rest()
        assert rest is not None
        found += [row.value for row in rows_of(rest)]
    assert found == [b"0", b"1"]
    assert reader.take_rest() is None


def test_columns_grow_with_what_comes() -> None:
    records = [Record(NOW_MS, b"k" * 3000, b"v" * 5000, tuple((f"h{n}", b"x" * 300) for n in range(40)))] * 100
    (columns,) = read_columns([build_batch(records, codec=Codec.LZ4)], max_bytes=1 << 24)
    assert [(row.key, row.value, row.headers) for row in rows_of(columns)] == [record[1:4] for record in records]


# --- damage -----------------------------------------------------------------------------------------------------------


def test_damaged_batch_is_named() -> None:
    damaged = batch_at(1234)
    damaged[-1] ^= 1
    problem = r"topic-3: the batch at offset 1234 is damaged: the CRC is \d+, but the header says \d+"
    with pytest.raises(MalformedBytes, match=problem):
        read_columns([batch_at(1231) + damaged])


def test_damage_is_not_seen_where_nothing_is_read() -> None:
    damaged = batch_at(10)
    damaged[-1] ^= 1
    assert offsets_of(batch_at(7) + damaged, until=10) == [7, 8, 9]


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_refused_with_a_sentence(magic: int) -> None:
    old = with_stale_crc(batch_at(5), magic=magic)
    with pytest.raises(MalformedBytes, match=rf"topic-3: offset 5 has messages in the old format v{magic}"):
        read_columns([old])
    with pytest.raises(MalformedBytes, match="old format"):
        offset_behind(old)


@pytest.mark.parametrize(
    "fields",
    [
        *({"magic": 3}, {"length": 48}, {"length": -1}, {"base_offset": -1}, {"base_offset": (1 << 63) - 1}),
        *({"last_offset_delta": -1}, {"count": -1}, {"attributes": 5}),
    ],
)
def test_header_that_cannot_be_is_refused(fields: dict[str, int]) -> None:
    with pytest.raises(MalformedBytes, match="is damaged"):
        read_columns([with_stale_crc(batch_at(0), **fields)])
    batch = batch_at(0)
    if fields.keys() & {"count", "last_offset_delta", "attributes"}:
        batch = with_fields(batch, **fields)
        with pytest.raises(MalformedBytes, match="is damaged"):
            read_columns([batch])


@pytest.mark.parametrize(
    ("payload", "count", "problem"),
    [
        (plain_record(0), 2, "the last 1 of its records are missing"),
        (plain_record(0) + plain_record(1), 1, "more records than the batch header says"),
        (plain_record(0) + b"\x80", 2, "cut off or longer than its type"),
        (plain_record(0) + b"\xff\xff\xff\xff\xff\x01", 2, "cut off or longer than its type"),
        (record(b"", 5), 1, "shorter than the smallest possible record"),
        (record(b"\0\0\0\1\1\0", 60), 1, "extends beyond its container"),
        (plain_record(1), 1, "an offset outside its batch"),
        (record(b"\0\0\0\x20\1\0"), 1, "extends beyond its container"),
        (record(b"\0\0\0\1\x20\0"), 1, "extends beyond its container"),
        (record(b"\0\0\0\1\1\0\0"), 1, "does not end where its length says"),
        (record(b"\0\0\0\1\1\1\0"), 1, "an invalid number of headers"),
        (record(b"\0\0\0\1\1\x02\1\1"), 1, "a header without a key"),
        (record(b"\0\0\0\1\1\x02\0\x20"), 1, "extends beyond its container"),
        (record(b"\0\0\0\1\1\x02\0\0\0"), 1, "does not end where its length says"),
    ],
)
def test_record_that_cannot_be_is_refused(payload: bytes, count: int, problem: str) -> None:
    with pytest.raises(MalformedBytes, match=f"topic-3: the batch at offset 0 is damaged: .*{problem}"):
        read_columns([batch_of(payload, count=count)])


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_data_that_does_not_inflate_is_refused(codec: Codec) -> None:
    batch = build_batch(some_records(), codec=codec)
    half = 61 + (len(batch) - 61) // 2
    cut = with_fields(batch[:half], length=half - 12)
    with pytest.raises(MalformedBytes, match="topic-3: the batch at offset 0 is damaged"):
        read_columns([cut])


# --- where to fetch next ----------------------------------------------------------------------------------------------


def test_next_offset_is_behind_the_last_whole_batch() -> None:
    assert offset_behind(b"") is None
    assert offset_behind(batch_at(0)[:-1]) is None
    assert offset_behind(batch_at(0) + batch_at(3, 7) + batch_at(10)[:-1]) == 10
    with pytest.raises(MalformedBytes, match="offset 3 is damaged"):
        offset_behind(batch_at(0) + with_stale_crc(batch_at(3), length=5))
