import datetime

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from kaspar.base.ids import TopicPartition
from kaspar.records import Codec, Record, build_batch
from kaspar.records.column_reading import ColumnReader
from kaspar.spark.reading.arrow_columns import ArrowColumns
from kaspar.spark.reading.options import COLUMNS, ReadOptions
from kaspar.spark.reading.schema import schema_of
from tests.unit.records.batches import NOW_MS, batch_of, octets, record, varint

PARTITION = TopicPartition("topic", 3)
NOW = datetime.datetime.fromtimestamp(NOW_MS / 1000, datetime.UTC)


def batches_of(batch: bytes | bytearray, names: tuple[str, ...] = COLUMNS, max_rows: int = 100) -> list[pa.RecordBatch]:
    reader = ColumnReader(PARTITION, names, 0, 1 << 40, max_rows=max_rows)
    arrow = ArrowColumns(PARTITION, names)
    found = [arrow.record_batch(columns) for columns in reader.take(memoryview(batch))]
    rest = reader.finish()
    found += [] if rest is None else [arrow.record_batch(rest)]
    for each in found:
        each.validate(full=True)
    return found


def test_schema_is_to_the_letter_what_spark_expects() -> None:
    options = ReadOptions.of({"kafka.bootstrap.servers": "host:1", "subscribe": "t", "includeHeaders": "true"})
    expected = to_arrow_schema(schema_of(options), timezone="UTC")
    assert ArrowColumns(PARTITION, options.columns).schema.equals(expected)


def test_rows_are_those_of_the_records() -> None:
    records = [
        Record(NOW_MS, b"key", b"value", (("a", b"1"), ("b", None))),
        Record(NOW_MS, None, None),
        Record(NOW_MS, b"", b"", (("", b""),)),
    ]
    (found,) = batches_of(build_batch(records, base_offset=9, codec=Codec.SNAPPY))
    same = {"topic": "topic", "partition": 3, "timestamp": NOW, "timestampType": 0}
    assert found.to_pylist() == [
        same
        | {"key": b"key", "value": b"value", "offset": 9}
        | {"headers": [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]},
        same | {"key": None, "value": None, "offset": 10, "headers": None},
        same | {"key": b"", "value": b"", "offset": 11, "headers": [{"key": "", "value": b""}]},
    ]


def test_columns_come_in_the_order_in_which_they_are_named() -> None:
    (found,) = batches_of(build_batch([Record(NOW_MS, b"k", b"v")]), ("offset", "topic", "value"))
    assert found.to_pylist() == [{"offset": 0, "topic": "topic", "value": b"v"}]
    assert found.schema.names == ["offset", "topic", "value"]


def test_constant_columns_have_as_many_rows_as_the_others() -> None:
    batch = build_batch([Record(NOW_MS, None, b"v")] * 5)
    found = batches_of(batch, ("topic", "partition", "value"), max_rows=2)
    assert [each.num_rows for each in found] == [2, 2, 1]
    assert {(row["topic"], row["partition"]) for each in found for row in each.to_pylist()} == {("topic", 3)}


@pytest.mark.parametrize(
    ("key", "text"), [("schlüssel".encode(), "schlüssel"), (b"a\xffb", "a\ufffdb"), (b"\xe2\x82", "\ufffd")]
)
def test_header_key_is_text_whatever_its_bytes(key: bytes, text: str) -> None:
    body = b"\0" + varint(0) + varint(0) + octets(None) + octets(None) + varint(1) + octets(key) + octets(b"v")
    (found,) = batches_of(batch_of(record(body)), ("headers",))
    assert found.to_pylist() == [{"headers": [{"key": text, "value": b"v"}]}]
