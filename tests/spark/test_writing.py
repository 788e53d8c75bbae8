"""Writing topics from Spark: batch and streaming, every column and codec, and the errors of impossible writes."""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.streaming.query import StreamingQuery

import kaspar.spark
from kaspar.base.ids import TopicPartition
from kaspar.records.column_writing import murmur2
from kaspar.spark.writing.in_tasks import run_at_least_once
from tests.peers.kaspar import KasparProcess
from tests.spark.topics import Message, Topics, wait_until

if TYPE_CHECKING:
    import pyarrow as pa

ALL_COLUMNS = "key binary, value string, partition int, headers array<struct<key: string, value: binary>>"


def write(rows: DataFrame, broker: KasparProcess, **options: str) -> None:
    settings = {"kafka.bootstrap.servers": broker.bootstrap, **options}
    rows.write.format("kaspar").options(**settings).mode("append").save()


def in_order(values: Iterable[bytes | None]) -> list[bytes]:
    return sorted(value for value in values if value is not None)


def one_sentence(caught: pytest.ExceptionInfo[PySparkException]) -> str:
    """What a person reads: it must be there without a page of Python."""
    text = str(caught.value)
    assert "Traceback" not in text
    return text


def test_every_column_arrives(spark: SparkSession, broker: KasparProcess, topics: Topics) -> None:
    topic = topics.create(partitions=3)
    rows = [
        (b"k1", "one", 2, [("a", b"1"), ("a", None)]),
        (None, None, 0, None),
        (b"", "", 1, []),
    ]
    write(spark.createDataFrame(rows, ALL_COLUMNS), broker, topic=topic)
    assert [(each.partition, each.key, each.value, each.headers) for each in topics.read(topic)] == [
        (0, None, None, ()),
        (1, b"", b"", ()),
        (2, b"k1", b"one", (("a", b"1"), ("a", None))),
    ]


def test_keys_choose_partitions_as_the_java_client_does(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    topic = topics.create(partitions=5)
    write(spark.range(200).selectExpr("cast(id as string) key", "cast(id as string) value"), broker, topic=topic)
    stored = topics.read(topic)
    assert sorted(int(each.value or b"") for each in stored) == list(range(200))
    assert all(each.partition == murmur2(each.key or b"") % 5 for each in stored)


def test_rows_go_to_the_topics_of_their_column(spark: SparkSession, broker: KasparProcess, topics: Topics) -> None:
    even, odd = topics.create(), topics.create()
    rows = spark.range(20).selectExpr(
        f"if(id % 2 = 0, '{even}', '{odd}') topic", "cast(id as string) value", "id other"
    )
    write(rows, broker)
    assert in_order(topics.values(even)) == sorted(b"%d" % number for number in range(0, 20, 2))
    assert in_order(topics.values(odd)) == sorted(b"%d" % number for number in range(1, 20, 2))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read_by_a_stock_client(
    spark: SparkSession, broker: KasparProcess, topics: Topics, codec: str
) -> None:
    topic = topics.create()
    rows = spark.range(0, 5000, numPartitions=1).selectExpr("concat('row ', id) value")
    write(rows, broker, topic=topic, **{"kafka.compression.type": codec, "kafka.batch.size": "20000"})
    assert topics.values(topic) == [b"row %d" % number for number in range(5000)]


def test_batches_larger_than_the_topic_takes_are_split(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    topic = topics.create(config={"max.message.bytes": "2000"})
    write(spark.range(0, 1000, numPartitions=1).selectExpr("concat('row ', id) value"), broker, topic=topic)
    assert topics.values(topic) == [b"row %d" % number for number in range(1000)]


# --- timestamps -------------------------------------------------------------------------------------------------------


FOR_EVER = {"retention.ms": "-1"}  # old records would be deleted at once


def times(topics: Topics, topic: str) -> list[int]:
    return [each.timestamp[1] for each in topics.read(topic)]


def test_records_have_the_timestamps_of_their_column(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    topic = topics.create()
    given = (
        "(1, timestamp_micros(86400000001)), (2, null), (3, timestamp_millis(5)), (4, timestamp_seconds(1700000000))"
    )
    rows = spark.sql(f"SELECT string(col1) AS value, col2 AS timestamp FROM VALUES {given}").coalesce(1)
    before_ms = time.time_ns() // 1_000_000
    write(rows, broker, topic=topic)
    first, stamped, third, fourth = times(topics, topic)
    assert (first, third, fourth) == (86_400_000, 5, 1_700_000_000_000)
    assert before_ms <= stamped <= time.time_ns() // 1_000_000


def test_a_copy_of_a_topic_keeps_its_timestamps_unless_the_column_is_dropped(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    given, kept, stamped = (topics.create(config=FOR_EVER) for _ in range(3))
    topics.produce(given, [Message(b"%d" % number, timestamp_ms=1_600_000_000_000 + number) for number in range(4)])
    rows = source(spark, broker, given)
    before_ms = time.time_ns() // 1_000_000
    assert stream(rows, broker, kept, tmp_path / "kept").awaitTermination(60)
    assert stream(rows.drop("timestamp"), broker, stamped, tmp_path / "stamped").awaitTermination(60)
    assert times(topics, kept) == [1_600_000_000_000 + number for number in range(4)]
    assert min(times(topics, stamped)) >= before_ms


@pytest.mark.parametrize(
    ("timestamp", "sentence"),
    [
        ("timestamp_millis(-1)", "Invalid timestamp: -1. Timestamp should always be non-negative or null."),
        ("current_timestamp() + interval 1 day", "INVALID_TIMESTAMP"),
    ],
    ids=["before 1970", "tomorrow"],
)
def test_a_timestamp_that_cannot_be_is_reported(
    spark: SparkSession, broker: KasparProcess, topics: Topics, timestamp: str, sentence: str
) -> None:
    topic = topics.create()
    with pytest.raises(PySparkException) as caught:
        write(spark.sql(f"SELECT 'x' AS value, {timestamp} AS timestamp"), broker, topic=topic)
    assert sentence in one_sentence(caught)
    assert topics.values(topic) == []


# --- programs in tasks ------------------------------------------------------------------------------------------------


def test_a_program_in_the_tasks_writes_at_least_once_and_knows_where_its_records_end(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    even, odd = topics.create(config=FOR_EVER), topics.create(partitions=2, config=FOR_EVER)

    class Splitting:
        """Local, so that Spark's workers need not find this module."""

        def process(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
            import pyarrow as pa

            for batch in batches:
                numbers = batch.column(0).to_pylist()
                yield pa.record_batch(
                    {
                        "topic": [odd if number % 2 else even for number in numbers],
                        "value": [str(number) for number in numbers],
                        "partition": pa.array([1 if number % 2 else None for number in numbers], pa.int32()),
                        "timestamp": pa.array(numbers, pa.int64()).view(pa.timestamp("ms")),
                    }
                )

        def finished(self, message: WriterCommitMessage, end_offsets: Mapping[TopicPartition, int]) -> bytes:
            return repr(sorted((str(where), end) for where, end in end_offsets.items())).encode()

    rows = spark.range(0, 9, numPartitions=1)
    options = {"kafka.bootstrap.servers": broker.bootstrap}
    for run in (1, 2):
        assert run_at_least_once(rows, Splitting(), options=options) == [
            f"[('{even}-0', {5 * run}), ('{odd}-1', {4 * run})]".encode()
        ]
    assert run_at_least_once(rows.where("id < 0"), Splitting(), options=options) == [b"[]"]
    assert topics.values(even) == 2 * [b"0", b"2", b"4", b"6", b"8"]
    assert times(topics, odd) == 2 * [1, 3, 5, 7]


# --- streams ----------------------------------------------------------------------------------------------------------


def stream(rows: DataFrame, broker: KasparProcess, topic: str, folder: Path, mode: str = "append") -> StreamingQuery:
    return (
        rows.writeStream.format("kaspar")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .outputMode(mode)
        .trigger(availableNow=True)
        .start()
    )


def source(spark: SparkSession, broker: KasparProcess, topic: str) -> DataFrame:
    settings = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    return spark.readStream.format("kaspar").options(**settings).option("maxOffsetsPerTrigger", "3").load()


def test_a_stream_appends_what_is_new(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    given, made = topics.create(partitions=2), topics.create()
    topics.produce(given, [Message(b"%d" % number, partition=number % 2) for number in range(7)])
    for _ in range(2):
        query = stream(source(spark, broker, given).select("value"), broker, made, tmp_path)
        assert query.awaitTermination(60)
    assert in_order(topics.values(made)) == [b"%d" % number for number in range(7)]
    topics.produce(given, [b"7"])
    assert stream(source(spark, broker, given).select("value"), broker, made, tmp_path).awaitTermination(60)
    assert in_order(topics.values(made)) == [b"%d" % number for number in range(8)]


def test_complete_mode_writes_every_result_in_full(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    given, made = topics.create(), topics.create()
    topics.produce(given, [b"a", b"a", b"b", b"a", b"b"])
    counted = source(spark, broker, given).groupBy("value").count()
    rows = counted.select(functions.col("value").alias("key"), functions.col("count").cast("string").alias("value"))
    assert stream(rows, broker, made, tmp_path, "complete").awaitTermination(60)
    results = [(each.key, each.value) for each in topics.read(made)]
    assert sorted(results) == [(b"a", b"2"), (b"a", b"3"), (b"b", b"1"), (b"b", b"2")]


def test_update_mode_writes_what_has_changed_through_foreach_batch(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    given, made = topics.create(), topics.create()
    topics.produce(given, [b"a", b"a", b"b", b"a", b"c"])
    counted = source(spark, broker, given).groupBy("value").count()

    def publish(rows: DataFrame, batch_id: int) -> None:
        changed = rows.selectExpr("value AS key", "string(count) AS value")
        options = {"kafka.bootstrap.servers": broker.bootstrap}
        kaspar.spark.write_batch(changed, batch_id=batch_id, topic=made, options=options)

    writer = counted.writeStream.outputMode("update").foreachBatch(publish).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    assert query.awaitTermination(60)
    expected = [(b"a", b"2"), (b"a", b"3"), (b"b", b"1"), (b"c", b"1")]  # b has not changed, and is not written again
    wait_until(lambda: len(topics.read(made)) >= len(expected), "the last transaction is committed")
    assert sorted((each.key, each.value) for each in topics.read(made)) == expected


# --- what cannot be done ----------------------------------------------------------------------------------------------


def test_columns_that_do_not_fit_are_reported_before_anything_is_written(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    topic = topics.create()
    with pytest.raises(PySparkException) as caught:
        write(spark.range(3), broker, topic=topic)
    assert "Required attribute 'value' not found" in one_sentence(caught)
    assert topics.values(topic) == []


def test_an_unreachable_cluster_is_reported(spark: SparkSession) -> None:
    rows = spark.range(3).selectExpr("cast(id as string) value").write.format("kaspar").option("topic", "t")
    with pytest.raises(PySparkException) as caught:
        rows.option("kafka.bootstrap.servers", "127.0.0.1:1").option("kafka.max.block.ms", "200").mode("append").save()
    assert "No broker responds at 127.0.0.1:1" in one_sentence(caught)


def test_overwriting_a_topic_is_refused(spark: SparkSession, broker: KasparProcess, topics: Topics) -> None:
    rows = spark.range(3).selectExpr("cast(id as string) value").write.format("kaspar").mode("overwrite")
    with pytest.raises(PySparkException) as caught:
        rows.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", topics.create()).save()
    assert "which only grow: use mode('append')" in one_sentence(caught)


def test_a_record_too_large_is_reported_with_its_size(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    topic = topics.create(config={"max.message.bytes": "500"})
    rows = spark.range(1).selectExpr("repeat('x', 1000) value")
    with pytest.raises(PySparkException) as caught:
        write(rows, broker, topic=topic)
    assert "a record of 1070 bytes is larger than the topic's max.message.bytes" in one_sentence(caught)
    assert "it is 500 bytes" in str(caught.value)
    with pytest.raises(PySparkException) as caught:
        write(rows, broker, topic=topic, **{"kafka.max.request.size": "400"})
    assert "1070 bytes when serialized, which is larger than 400" in one_sentence(caught)


def test_an_unknown_partition_is_reported(spark: SparkSession, broker: KasparProcess, topics: Topics) -> None:
    topic = topics.create(partitions=2)
    with pytest.raises(PySparkException) as caught:
        write(spark.createDataFrame([("x", 2)], "value string, partition int"), broker, topic=topic)
    assert "2 is not in the range [0...2)" in one_sentence(caught)
