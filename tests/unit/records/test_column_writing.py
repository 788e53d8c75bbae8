"""Keys become partitions and rows batches, in both forms of the core."""

from types import ModuleType
from typing import Any

import pytest

from kaspar.records import Codec, iter_records, read_header
from kaspar.records.column_writing import all_rows, take_batch
from tests.unit.records.forms import FORMS, core_in_form


@pytest.fixture(params=FORMS)
def core(request: pytest.FixtureRequest) -> ModuleType:
    return core_in_form(request.param, "kaspar.records.core.column_writing")


@pytest.fixture(params=FORMS)
def grouping(request: pytest.FixtureRequest) -> ModuleType:
    return core_in_form(request.param, "kaspar.records.core.row_grouping")


def int32(*numbers: int) -> memoryview:
    return memoryview(b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)).cast("i")


def int64(*numbers: int) -> memoryview:
    return memoryview(b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)).cast("q")


def octets(core: ModuleType, *values: bytes | None) -> Any:
    found = [value or b"" for value in values]
    ends = [sum(map(len, found[:index])) for index in range(len(found) + 1)]
    valid = sum((value is not None) << index for index, value in enumerate(values))
    return core.OctetColumn(len(found), int32(*ends), b"".join(found), valid.to_bytes(len(found) // 8 + 1, "little"))


def values_alone(core: ModuleType, *values: bytes, timestamps: object = None) -> object:
    """Columns of rows without keys."""
    return core.RecordColumns(core.OctetColumn(len(values)), octets(core, *values), timestamps=timestamps)


# What org.apache.kafka.common.utils.Utils.murmur2 of Kafka's clients gives for the UTF-8 of these texts.
VECTORS = {
    "": 275646681,
    "a": -1563381124,
    "ab": 316155434,
    "abc": 479470107,
    "abcd": -1323649548,
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "über-€": 1810166613,
}


@pytest.mark.parametrize(("text", "hashed"), VECTORS.items())
def test_murmur2_is_that_of_kafkas_clients_without_its_sign(core: ModuleType, text: str, hashed: int) -> None:
    assert core.murmur2(text.encode()) == hashed & 0x7FFF_FFFF


def test_murmur2_is_that_of_kafkas_clients_for_every_length_and_octet(core: ModuleType) -> None:
    chained = 0
    for size in range(257):
        chained = (chained * 31 + core.murmur2(bytes(range(size % 257)))) % 1_000_000_007
    assert chained == 636879536


@pytest.mark.parametrize("count", [1, 2, 7, 50, 2_000_000_000])
def test_partition_of_a_key_is_that_of_kafkas_clients(core: ModuleType, count: int) -> None:
    assert [core.partition_of(text.encode(), count) for text in VECTORS] == [
        (hashed & 0x7FFF_FFFF) % count for hashed in VECTORS.values()
    ]


def test_a_column_of_keys_becomes_a_column_of_partitions(core: ModuleType) -> None:
    keys = [text.encode() for text in VECTORS]
    found = core.partitions_of_keys(octets(core, *keys), 7)
    assert found.tolist() == [core.partition_of(key, 7) for key in keys]


def test_null_keys_have_the_partitions_that_are_given_for_them(core: ModuleType) -> None:
    keys = octets(core, b"a", None, b"", None)
    others = int32(40, 41, 42, 43)
    assert core.partitions_of_keys(keys, 7, others).tolist() == [
        core.partition_of(b"a", 7),
        41,
        core.partition_of(b"", 7),
        43,
    ]
    assert core.partitions_of_keys(core.OctetColumn(2), 7, int32(5, 6)).tolist() == [5, 6]
    with pytest.raises(ValueError, match="a key is null"):
        core.partitions_of_keys(keys, 7)


def test_partitions_need_a_topic_that_has_some_and_one_for_each_key(core: ModuleType) -> None:
    with pytest.raises(ValueError, match="no partitions"):
        core.partition_of(b"a", 0)
    with pytest.raises(ValueError, match="no partitions"):
        core.partitions_of_keys(octets(core, b"a"), 0)
    with pytest.raises(ValueError, match="3 partitions for 1 keys"):
        core.partitions_of_keys(octets(core, b"a"), 1, int32(0, 0, 0))


def test_sticky_partitions_take_turns_by_bytes(core: ModuleType) -> None:
    columns = values_alone(core, *[b"x" * 42] * 8)
    partitioner = core.Partitioner(3, int32(2, 0, 1), 100)
    assert partitioner.assign(columns, all_rows(8), 0, 5).tolist() == [2, 2, 0, 0, 1]
    assert partitioner.assign(columns, all_rows(8), 5, 8).tolist() == [1, 2, 2]


def test_a_requested_partition_wins_and_an_unknown_one_is_reported(core: ModuleType) -> None:
    columns = values_alone(core, b"", b"", b"")
    partitioner = core.Partitioner(3, int32(1), 100)
    asked = partitioner.assign(columns, all_rows(3), 0, 3, int32(9, 0, 7, 2), bytes([0b1010]), 1)
    assert asked.tolist() == [0, 1, 2]
    assert not partitioner.out_of_range
    partitioner.assign(columns, all_rows(3), 0, 3, int32(0, 3, 1))
    assert (partitioner.out_of_range, partitioner.stranger) == (True, 3)


def test_rows_are_grouped_in_their_order(grouping: ModuleType) -> None:
    rows, starts = grouping.group_rows(int32(2, 0, 2, 0), 4, int32(9, 5, 6, 7, 8), 1)
    assert (rows.tolist(), starts.tolist()) == ([6, 8, 5, 7], [0, 2, 2, 4, 4])


@pytest.mark.parametrize("group", [-1, 3])
def test_a_row_of_no_group_is_refused(grouping: ModuleType, group: int) -> None:
    with pytest.raises(ValueError, match="none of 3 groups"):
        grouping.group_rows(int32(0, group), 3, all_rows(2), 0)


def test_a_batch_ends_where_it_is_full(core: ModuleType) -> None:
    columns = values_alone(core, *[b"x" * 30] * 5)
    builder = core.BatchBuilder(140, 1000)
    rows = all_rows(5)
    taken = builder.append(columns, rows, 0, 5, 7)
    first = take_batch(builder, Codec.NONE, None)
    assert (taken, len(first) <= 140, read_header(first, 0).count) == (2, True, 2)
    assert builder.append(columns, rows, taken, 3, 9) == 3
    assert builder.append(columns, rows, 3, 4, 8) == 4
    second = take_batch(builder, Codec.NONE, None)
    header = read_header(second, 0)
    assert (header.base_timestamp, header.max_timestamp, header.last_offset_delta) == (9, 9, 1)
    assert [record.timestamp for record in iter_records(second)] == [9, 8]
    assert bytes(first) == bytes(first)  # the second did not take its memory


def test_the_time_of_a_row_that_is_not_taken_is_not_that_of_the_batch(core: ModuleType) -> None:
    columns = values_alone(core, b"x" * 60, b"x" * 60)
    builder = core.BatchBuilder(140, 1000)
    assert builder.append(columns, all_rows(2), 0, 1, 1000) == 1
    assert builder.append(columns, all_rows(2), 1, 2, 99_999) == 1
    assert read_header(take_batch(builder, Codec.NONE, None), 0).max_timestamp == 1000
    assert builder.append(columns, all_rows(2), 1, 2, 99_999) == 2
    assert read_header(take_batch(builder, Codec.NONE, None), 0).max_timestamp == 99_999


def test_records_have_the_timestamps_of_their_column(core: ModuleType) -> None:
    times = core.TimestampColumn(4, int64(7, 50, 3, 99, 1 << 62), False, bytes([0b10110]), 1)
    builder = core.BatchBuilder(1000, 1000)
    assert builder.append(values_alone(core, b"a", b"b", b"c", b"d", timestamps=times), all_rows(4), 0, 4, 60) == 4
    batch = take_batch(builder, Codec.NONE, None)
    header = read_header(batch, 0)
    assert [record.timestamp for record in iter_records(batch)] == [50, 3, 60, 1 << 62]
    assert (header.base_timestamp, header.max_timestamp) == (50, 1 << 62)


def test_microseconds_are_cut_to_milliseconds(core: ModuleType) -> None:
    times = core.TimestampColumn(3, int64(1999, 2000, (1 << 63) - 1), True)
    builder = core.BatchBuilder(1000, 1000)
    builder.append(values_alone(core, b"a", b"b", b"c", timestamps=times), all_rows(3), 0, 3, 60)
    batch = take_batch(builder, Codec.NONE, None)
    assert [record.timestamp for record in iter_records(batch)] == [1, 2, ((1 << 63) - 1) // 1000]


def test_the_first_record_that_is_taken_sets_the_base_timestamp_and_the_taken_ones_the_largest(
    core: ModuleType,
) -> None:
    times = core.TimestampColumn(3, int64(70, 40, 90), False)
    columns = values_alone(core, b"x" * 30, b"x" * 30, b"x" * 30, timestamps=times)
    builder = core.BatchBuilder(140, 1000)
    headers = []
    first = 0
    while first < 3:
        first = builder.append(columns, all_rows(3), first, 3, 0)
        headers.append(read_header(take_batch(builder, Codec.NONE, None), 0))
    assert [(one.count, one.base_timestamp, one.max_timestamp) for one in headers] == [(2, 70, 70), (1, 90, 90)]


def test_columns_with_and_without_timestamps_share_a_batch(core: ModuleType) -> None:
    builder = core.BatchBuilder(1000, 1000)
    timed = values_alone(core, b"b", timestamps=core.TimestampColumn(1, int64(5), False))
    for columns, now_ms in ((values_alone(core, b"a"), 20), (timed, 21), (values_alone(core, b"c"), 22)):
        builder.append(columns, all_rows(1), 0, 1, now_ms)
    batch = take_batch(builder, Codec.NONE, None)
    assert [record.timestamp for record in iter_records(batch)] == [20, 5, 22]
    assert (read_header(batch, 0).base_timestamp, read_header(batch, 0).max_timestamp) == (20, 22)


@pytest.mark.parametrize("in_us", [False, True])
def test_negative_timestamps_are_seen_and_not_written(core: ModuleType, in_us: bool) -> None:
    hidden = core.TimestampColumn(2, int64(7, -7), in_us, bytes([0b01]))
    assert hidden.lowest_ms == 0
    negative = core.TimestampColumn(3, int64(7, -7001, -1), in_us)
    assert negative.lowest_ms == (-8 if in_us else -7001)
    with pytest.raises(ValueError, match="is negative"):
        values_alone(core, b"a", b"b", b"c", timestamps=negative)


def test_timestamps_that_are_not_there_are_not_read(core: ModuleType) -> None:
    with pytest.raises(ValueError, match="1 timestamps are too few for 2 rows from 0 on"):
        core.TimestampColumn(2, int64(1), False)
    with pytest.raises(ValueError, match="bytes of validity are too few"):
        core.TimestampColumn(2, int64(*range(9)), False, b"\1", 7)
    with pytest.raises(ValueError, match="1 timestamps and 2 values"):
        values_alone(core, b"a", b"b", timestamps=core.TimestampColumn(1, int64(1), False))


def test_a_large_record_is_a_batch_of_its_own_and_one_too_large_is_reported(core: ModuleType) -> None:
    columns = values_alone(core, b"x" * 300, b"x" * 2000)
    builder = core.BatchBuilder(100, 1000)
    rows = all_rows(2)
    assert builder.append(columns, rows, 0, 2, 0) == 1
    assert (builder.count, builder.too_large) == (1, 0)
    take_batch(builder, Codec.NONE, None)
    assert builder.append(columns, rows, 1, 2, 0) == 1
    assert builder.too_large == 61 + 2000 + 9


def test_rows_that_are_not_there_are_not_read(core: ModuleType) -> None:
    builder = core.BatchBuilder(100, 1000)
    assert builder.append(values_alone(core, b"x"), int32(0, 1), 0, 2, 0) == 1
