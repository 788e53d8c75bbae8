"""Rows on their way into topics: which topic and partition, what is refused, and how much memory it takes."""

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import WriterCommitMessage

from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition
from kaspar.client.delivery_terms import TopicPartitions
from kaspar.records import iter_records
from kaspar.records.identity import batch_count, identify
from kaspar.spark.writing.arrow_columns import UnwritableRow
from kaspar.spark.writing.at_least_once import RowsWritten
from kaspar.spark.writing.encoding import write_rows
from kaspar.spark.writing.options import WriteOptions

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Written:
    """A guarantee and its one task, which keeps what it is given."""

    def __init__(self, partitions: dict[str, list[int]] | None = None) -> None:
        self.partitions = partitions or {}
        self.batches: list[tuple[TopicPartition, memoryview]] = []
        self.end_offsets: dict[TopicPartition, int] = {}
        self.sends = 0
        self.end: str | None = None
        self.trouble: Exception | None = None

    def begin(self) -> "Written":
        return self

    def publish(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        raise AssertionError("not in a task")

    abort = publish

    def partitions_of(self, topic: str, at_least: int = 1) -> TopicPartitions:
        counts = self.partitions.get(topic, [1])
        count = counts.pop(0) if len(counts) > 1 else counts[0]
        return TopicPartitions(count, tuple(range(count)))

    def send(self, batches: Sequence[tuple[TopicPartition, memoryview]]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.sends += 1
        for _, data in batches:
            identify(data, None, -1)
        self.batches.extend(batches)

    def finish(self, rows: int) -> WriterCommitMessage:
        self.end = "finished"
        for where, data in self.batches:
            self.end_offsets[where] = self.end_offsets.get(where, 0) + batch_count(memoryview(data))
        return RowsWritten(rows)

    def abandon(self) -> None:
        self.end = "abandoned"

    def values(self) -> dict[str, list[bytes | None]]:
        found: dict[str, list[bytes | None]] = {}
        for where, data in self.batches:
            found.setdefault(str(where), []).extend(record.value for record in iter_records(data))
        return found


def options(**given: str) -> WriteOptions:
    return WriteOptions.of(
        {"kafka.bootstrap.servers": "h:1", **{name.replace("__", "."): v for name, v in given.items()}}
    )


def write(batches: Sequence[pa.RecordBatch], written: Written | None = None, **given: str) -> Written:
    written = written or Written()
    stored = write_rows(iter(batches), options(**given), written)
    assert stored.message == RowsWritten(sum(batch.num_rows for batch in batches))
    assert written.end == "finished"
    return written


def rows(**columns: Any) -> pa.RecordBatch:
    types = {"topic": pa.string(), "partition": pa.int32(), "headers": HEADERS, "timestamp": pa.timestamp("us", "UTC")}
    return pa.record_batch({name: pa.array(given, types.get(name)) for name, given in columns.items()})


def test_a_task_without_rows_writes_nothing() -> None:
    assert write([], topic="t").batches == []
    assert write([rows(value=[b"a"]).slice(0, 0)], topic="t").batches == []


def test_rows_go_to_the_topic_of_their_column() -> None:
    batch = rows(topic=["b", "a", "b"], value=["1", "2", "3"])
    assert write([batch]).values() == {"b-0": [b"1", b"3"], "a-0": [b"2"]}


def test_the_option_wins_over_the_topic_column() -> None:
    assert write([rows(topic=["b", None], value=["1", "2"])], topic="t").values() == {"t-0": [b"1", b"2"]}


def test_many_topics_in_one_batch_and_slices_of_it() -> None:
    names = [f"t{number % 17}" for number in range(200)]
    batch = rows(topic=names, value=[str(number) for number in range(200)]).slice(13, 150)
    assert write([batch]).values() == {
        f"{name}-0": [b"%d" % number for number in range(13, 163) if names[number] == name]
        for name in sorted(set(names))
    }


@pytest.mark.parametrize("index", [pa.int8(), pa.int32()])
def test_topics_may_be_given_as_a_dictionary(index: pa.DataType) -> None:
    topics = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2, 0], index), ["a", "unused", "b"])
    batch = pa.record_batch({"topic": topics, "value": pa.array(["0", "1", "2", "3"])}).slice(1)
    assert write([batch]).values() == {"a-0": [b"1", b"3"], "b-0": [b"2"]}


def test_a_row_without_a_topic_is_refused() -> None:
    with pytest.raises(UnwritableRow, match=r"null topic present in the data\. Use the topic option"):
        write([rows(topic=["a", None], value=["1", "2"])])


def test_the_partition_column_wins_over_the_key() -> None:
    batch = rows(key=["a", "a", None], value=["1", "2", "3"], partition=[2, 0, 1])
    written = write([batch], Written({"t": [3]}), topic="t")
    assert written.values() == {"t-0": [b"2"], "t-1": [b"3"], "t-2": [b"1"]}


def test_a_partition_that_was_added_is_found() -> None:
    written = write([rows(value=["1"], partition=[2])], Written({"t": [2, 3]}), topic="t")
    assert written.values() == {"t-2": [b"1"]}


@pytest.mark.parametrize(
    ("partition", "sentence"), [(2, r"2 is not in the range \[0\.\.\.2\) of topic t"), (-1, "Invalid partition: -1")]
)
def test_a_partition_that_is_not_there_is_refused(partition: int, sentence: str) -> None:
    with pytest.raises(UnwritableRow, match=sentence):
        write([rows(value=["1"], partition=[partition])], Written({"t": [2]}), topic="t")


# --- timestamps -------------------------------------------------------------------------------------------------------


def timestamps_of(written: Written) -> list[int]:
    return [record.timestamp for _, data in written.batches for record in iter_records(data)]


def test_records_have_the_timestamps_of_their_column() -> None:
    batch = rows(value=["1", "2", "3"], timestamp=[5_000_999, 0, 253_402_300_799_999_999])
    assert timestamps_of(write([batch], topic="t")) == [5_000, 0, 253_402_300_799_999]


def test_rows_without_a_timestamp_get_the_time_of_the_write() -> None:
    before_ms = time.time_ns() // 1_000_000
    batches = [rows(value=["1", "2"], timestamp=[None, 5_000]), rows(value=["3"], timestamp=[None]), rows(value=["4"])]
    first, given, *others = timestamps_of(write(batches, topic="t"))
    assert given == 5
    assert all(before_ms <= each <= time.time_ns() // 1_000_000 for each in (first, *others))


def test_programs_in_tasks_may_count_milliseconds() -> None:
    times = pa.array([None, 7, 9, None], pa.int64()).view(pa.timestamp("ms")).slice(1, 2)
    batch = pa.record_batch({"value": pa.array(["1", "2"]), "timestamp": times})
    assert timestamps_of(write([batch], topic="t")) == [7, 9]


@pytest.mark.parametrize(("micros", "millis"), [(-1, -1), (-1000, -1), (-1001, -2), (-(1 << 63), -9223372036854776)])
def test_a_negative_timestamp_is_refused(micros: int, millis: int) -> None:
    with pytest.raises(UnwritableRow, match=rf"^Invalid timestamp: {millis}\. Timestamp should always be non-negative"):
        write([rows(value=["1", "2", "3"], timestamp=[1, micros, None])], topic="t")


def test_a_negative_number_under_a_null_does_not_matter() -> None:
    valid, times = pa.py_buffer(bytes([0b01])), pa.array([7, -7], pa.int64()).buffers()[1]
    hidden = pa.Array.from_buffers(pa.timestamp("ms"), 2, [valid, times])
    assert timestamps_of(write([pa.record_batch({"value": ["1", "2"], "timestamp": hidden})], topic="t"))[0] == 7


def test_numbers_that_do_not_say_their_unit_are_no_timestamps() -> None:
    with pytest.raises(UnwritableRow, match="timestamp has the unsupported type int64"):
        write([pa.record_batch({"value": ["1"], "timestamp": pa.array([7], pa.int64())})], topic="t")


# --- partitions -------------------------------------------------------------------------------------------------------


def test_keys_are_ignored_where_the_producer_option_says_so() -> None:
    batch = rows(key=[str(number) for number in range(50)], value=["x"] * 50)
    assert len(write([batch], Written({"t": [8]}), topic="t", kafka__partitioner__ignore__keys="true").values()) == 1


def test_rows_without_a_key_are_spread_over_all_partitions() -> None:
    batch = rows(value=["x" * 90] * 4000)
    values = write([batch], Written({"t": [4]}), topic="t", kafka__batch__size="10000").values()
    counts = [len(here) for here in values.values()]
    assert len(counts) == 4
    assert max(counts) - min(counts) <= 2 * 10_000 // 90


@pytest.mark.parametrize("kind", [pa.large_string(), pa.large_binary(), pa.string(), pa.binary()])
def test_every_type_of_text_and_bytes_is_taken(kind: pa.DataType) -> None:
    values = [None, b"", b"abc", b"d"]
    column = pa.array(values, pa.binary()).cast(kind).slice(1)
    written = write([pa.record_batch({"value": column, "key": column})], topic="t")
    assert [(record.key, record.value) for _, data in written.batches for record in iter_records(data)] == [
        (value, value) for value in values[1:]
    ]


@pytest.mark.parametrize("headers", [[None], [{"key": None, "value": b"x"}]], ids=["null header", "no key"])
def test_a_header_without_a_key_is_refused(headers: list[Any]) -> None:
    with pytest.raises(UnwritableRow, match="a header needs a key"):
        write([rows(value=["1"], headers=[headers])], topic="t")


def test_a_record_larger_than_a_request_may_be_is_refused_with_its_size() -> None:
    with pytest.raises(UnwritableRow, match=r"topic t is 1070 bytes .* larger than 1000, .*max\.request\.size"):
        write([rows(value=["x" * 1000])], topic="t", kafka__max__request__size="1000")


def test_batches_go_out_as_they_get_full() -> None:
    values = rows(value=["x" * 90] * 100)
    written = write([values], topic="t", kafka__batch__size="1000", kafka__max__request__size="1000")
    assert written.sends == len(written.batches) > 10


def test_full_batches_of_several_partitions_go_out_together_as_far_as_a_request_takes_them() -> None:
    sent: list[list[int]] = []

    class Watched(Written):
        def send(self, batches: Sequence[tuple[TopicPartition, memoryview]]) -> None:
            sent.append([len(data) for _, data in batches])
            super().send(batches)

    values = rows(value=["x" * 90] * 400)
    write([values], Watched({"t": [4]}), topic="t", kafka__batch__size="1000", kafka__max__request__size="3500")
    assert max(map(sum, sent)) <= 3500
    assert all(sum(sizes) + following[0] > 3500 for sizes, following in pairwise(sent))


def test_many_partitions_do_not_take_more_than_the_buffer() -> None:
    held: list[int] = []

    class Watched(Written):
        def send(self, batches: Sequence[tuple[TopicPartition, memoryview]]) -> None:
            held.append(sum(len(data) for _, data in batches))
            super().send(batches)

    given = (rows(value=["x" * 1000] * 500, partition=list(range(500))) for _ in range(20))
    write_rows(given, options(topic="t", kafka__buffer__memory="4000000"), Watched({"t": [500]}))
    assert held[-1] <= 2_000_000


def test_what_fails_is_abandoned() -> None:
    written = Written()
    written.trouble = KasparError("the broker says no")
    with pytest.raises(KasparError, match="says no"):
        write([rows(value=["1"])], written, topic="t")
    assert written.end == "abandoned"


def test_a_lost_connection_is_reported_in_a_sentence() -> None:
    written = Written()
    written.trouble = ConnectionRefusedError("refused")
    with pytest.raises(KasparError, match=r"No response from a broker of h:1 .*: refused"):
        write([rows(value=["1"])], written, topic="t")


def test_where_the_records_end_is_known_when_all_are_stored() -> None:
    stored = write_rows([rows(topic=["a", "b", "a"], value=["1", "2", "3"])], options(), Written())
    assert stored.end_offsets == {TopicPartition("a", 0): 2, TopicPartition("b", 0): 1}


def test_an_error_of_the_source_is_not_taken_for_one_of_a_broker() -> None:
    def unreadable() -> Iterator[pa.RecordBatch]:
        yield rows(value=["1"])
        raise OSError("no space left on device")

    with pytest.raises(OSError, match=r"^no space left on device$"):
        write_rows(unreadable(), options(topic="t"), Written())


def test_rows_that_upstream_fails_to_give_are_abandoned() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield rows(value=["1"])
        raise RuntimeError("a user's function")

    written = Written()
    with pytest.raises(RuntimeError, match="user's function"):
        write_rows(broken(), options(topic="t"), written)
    assert written.end == "abandoned"
