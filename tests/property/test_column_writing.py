"""Columns against the records they stand for: what is encoded passes a broker's checks and reads back as it was given.

The compiled core and its interpreted form must agree to the byte. No example has a deadline, since the machine may be
busy.
"""

import importlib
import random
from collections.abc import Sequence
from types import ModuleType

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.compiled import load
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client.delivery_terms import TopicPartitions
from kaspar.records import Codec, Record, check_batch, iter_records
from kaspar.records.column_writing import all_rows, group_rows, murmur2, take_batch
from kaspar.records.identity import identify, split_batch
from kaspar.spark.writing.encoding import RowEncoder
from kaspar.spark.writing.options import WriteOptions

NOW_MS = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

OCTETS = st.binary(max_size=40) | st.binary(min_size=120, max_size=300)
HEADER_LISTS = st.none() | st.lists(st.tuples(st.text(max_size=10), st.none() | OCTETS), max_size=3)
MOST_MS = ((1 << 63) - 1) // 1000  # as microseconds
TIMES = st.none() | st.integers(NOW_MS - 100_000, NOW_MS + 100_000) | st.integers(0, MOST_MS)
ROWS = st.lists(st.tuples(st.none() | OCTETS, st.none() | OCTETS, HEADER_LISTS, TIMES), min_size=1, max_size=40)
Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, int | None]


class FixedTopics:
    """Stands where a task's writer does, for a topic of that many partitions."""

    def __init__(self, count: int) -> None:
        self.count = count

    def partitions_of(self, topic: str, at_least: int = 1) -> TopicPartitions:
        return TopicPartitions(self.count, tuple(range(self.count)))


def record_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    keys, values, headers, times = zip(*rows, strict=True)
    pairs = [None if one is None else [{"key": key, "value": value} for key, value in one] for one in headers]
    return pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(pairs, HEADERS),
            "timestamp": pa.array([None if time is None else 1000 * time for time in times], pa.timestamp("us", "UTC")),
        }
    )


def encoded(
    batches: Sequence[pa.RecordBatch], options: dict[str, str] | None = None, *, partitions: int = 1, seed: int = 0
) -> list[tuple[int, memoryview]]:
    """(partition, batch) as they go out; topic "t"."""
    parsed = WriteOptions.of({"kafka.bootstrap.servers": "h:1", "topic": "t", **(options or {})})
    encoder = RowEncoder(parsed, FixedTopics(partitions), now_ms=lambda: NOW_MS, rng=random.Random(seed))  # type: ignore[arg-type]
    ready = list(encoder.encode_all(batches))
    for _, data in ready:
        identify(data, ProducerIdAndEpoch(7, 1), 0)
    return [(where.partition, data) for where, data in ready]


def content(record: Record) -> Row:
    return record.key, record.value, list(record.headers) or None, record.timestamp


def given_content(row: Row) -> Row:
    return row[0], row[1], row[2] or None, NOW_MS if row[3] is None else row[3]


@settings(deadline=None)
@given(ROWS, st.sampled_from(Codec), st.integers(min_value=0, max_value=400))
def test_what_is_encoded_checks_and_reads_back(rows: list[Row], codec: Codec, batch_size: int) -> None:
    options = {"kafka.compression.type": codec.name.lower(), "kafka.batch.size": str(batch_size)}
    records: list[Record] = []
    for _, data in encoded([record_batch(rows)], options):
        checked = check_batch(data, 0, len(data))
        assert (checked.end, checked.codec, checked.producer_id) == (len(data), codec, 7)
        here = list(iter_records(data))
        times = [record.timestamp for record in here]
        assert (checked.min_timestamp, checked.header_max_timestamp) == (min(times), max(times))
        assert codec is not Codec.NONE or checked.count == 1 or len(data) <= batch_size
        records.extend(here)
    assert [content(record) for record in records] == [given_content(row) for row in rows]


@settings(deadline=None)
@given(ROWS, ROWS, st.integers(min_value=0, max_value=10), st.integers(min_value=0, max_value=10))
def test_slices_of_batches_are_their_rows(first: list[Row], second: list[Row], skip: int, most: int) -> None:
    cut = record_batch(first).slice(skip, most)
    data = encoded([cut, record_batch(second)])
    records = [content(record) for _, batch in data for record in iter_records(batch)]
    assert records == [given_content(row) for row in [*first[skip : skip + most], *second]]


@settings(deadline=None)
@given(ROWS, st.integers(min_value=1, max_value=7), st.integers())
def test_every_key_goes_to_its_partition_and_rows_keep_their_order(rows: list[Row], partitions: int, seed: int) -> None:
    found: dict[int, list[Row]] = {}
    for partition, data in encoded([record_batch(rows)], partitions=partitions, seed=seed):
        found.setdefault(partition, []).extend(content(record) for record in iter_records(data))
    assert sorted(repr(row) for here in found.values() for row in here) == sorted(
        repr(given_content(row)) for row in rows
    )
    for partition in range(partitions):
        here = [row for row in found.get(partition, []) if row[0] is not None]
        assert here == [
            given_content(row) for row in rows if row[0] is not None and murmur2(row[0]) % partitions == partition
        ]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.none() | OCTETS, OCTETS, HEADER_LISTS, TIMES), min_size=2, max_size=30),
    st.sampled_from(Codec),
)
def test_a_batch_cut_in_two_holds_the_same_records(rows: list[Row], codec: Codec) -> None:
    ((_, data),) = encoded([record_batch(rows)], {"kafka.compression.type": codec.name.lower()})
    halves = split_batch(data)
    for half in halves:
        identify(half, None, -1)
        assert check_batch(half, 0, len(half)).codec is codec
    assert [content(record) for half in halves for record in iter_records(half)] == [given_content(row) for row in rows]


# --- both forms of the core -------------------------------------------------------------------------------------------

FORMS = [importlib.import_module("kaspar.records.core.column_writing"), load("kaspar.records.core.column_writing")]


def int32(numbers: Sequence[int]) -> memoryview:
    return memoryview(b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)).cast("i")


def octet_column(core: ModuleType, values: Sequence[bytes | None]) -> object:
    offsets, data, bits = [0], bytearray(), 0
    for index, value in enumerate(values):
        data += value or b""
        offsets.append(len(data))
        bits |= (value is not None) << index
    valid = bits.to_bytes(len(values) // 8 + 1, "little")
    return core.OctetColumn(len(values), int32(offsets), bytes(data), valid)


def timestamp_column(core: ModuleType, times: Sequence[int | None], *, in_us: bool) -> object:
    bits = sum((time is not None) << index for index, time in enumerate(times))
    data = b"".join((time or 0).to_bytes(8, "little") for time in times)
    return core.TimestampColumn(
        len(times), memoryview(data).cast("q"), in_us, bits.to_bytes(len(times) // 8 + 1, "little")
    )


@settings(deadline=None)
@given(ROWS, st.integers(min_value=62, max_value=600), st.integers(min_value=1, max_value=9), st.booleans())
def test_both_forms_of_the_core_write_the_same_bytes(rows: list[Row], limit: int, partitions: int, in_us: bool) -> None:
    results = []
    for core in FORMS:
        keys, values = [row[0] for row in rows], [row[1] for row in rows]
        times = timestamp_column(core, [row[3] for row in rows], in_us=in_us)
        columns = core.RecordColumns(octet_column(core, keys), octet_column(core, values), timestamps=times)
        partitioner = core.Partitioner(partitions, int32(range(partitions)), 100)
        assigned = partitioner.assign(columns, all_rows(len(rows)), 0, len(rows))
        grouped, starts = group_rows(assigned, partitions, all_rows(len(rows)), 0)
        builder = core.BatchBuilder(limit, 1 << 20)
        made = []
        first = 0
        while (first := builder.append(columns, grouped, first, len(rows), NOW_MS)) < len(rows):
            made.append(bytes(take_batch(builder, Codec.NONE, None)))
        made.append(bytes(take_batch(builder, Codec.NONE, None)))
        of_keys = core.partitions_of_keys(octet_column(core, keys), partitions, all_rows(len(rows))).tolist()
        results.append((assigned.tolist(), grouped.tolist(), starts.tolist(), made, of_keys))
    assert results[0] == results[1]


@given(st.binary(max_size=70))
def test_both_forms_hash_keys_alike(key: bytes) -> None:
    interpreted, loaded = FORMS
    assert interpreted.murmur2(key) == loaded.murmur2(key)
    assert interpreted.partition_of(key, 1009) == loaded.partition_of(key, 1009) == loaded.murmur2(key) % 1009


@pytest.mark.parametrize("core", FORMS, ids=["interpreted", "loaded"])
@pytest.mark.parametrize("offsets", [[0, 5, 3], [0, 2, 9], [-1, 2, 3]], ids=["fall", "beyond the bytes", "before them"])
def test_offsets_that_lead_astray_are_refused(core: ModuleType, offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="decrease or exceed"):
        core.OctetColumn(2, int32(offsets), b"12345")
