"""Keys become partitions and rows batches, in both forms of the core."""

from types import ModuleType

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


def values_alone(core: ModuleType, *values: bytes) -> object:
    """Columns of rows without keys."""
    ends = [sum(map(len, values[:index])) for index in range(len(values) + 1)]
    return core.RecordColumns(
        core.OctetColumn(len(values)), core.OctetColumn(len(values), int32(*ends), b"".join(values))
    )


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
