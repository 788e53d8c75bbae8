"""Spark's own connector on our broker, apart from any of our data source: batches and streams, in and out."""

from pathlib import Path

from pyspark.sql import SparkSession

from tests.peers.kaspar import KasparProcess
from tests.spark.compat.comparing import THEIRS, read, rows
from tests.spark.topics import Message, Topics


def test_a_batch_is_written_and_read(spark: SparkSession, broker: KasparProcess, topics: Topics) -> None:
    name = topics.create(partitions=2)
    frame = spark.sql("SELECT string(id) AS key, string(id) AS value FROM range(100)")
    frame.write.format(THEIRS).options(**{"kafka.bootstrap.servers": broker.bootstrap}, topic=name).save()
    found = rows(read(spark, THEIRS, broker.bootstrap, {"subscribe": name}))
    assert sorted(int(row["value"]) for row in found) == list(range(100))


def test_only_committed_records_are_read(spark: SparkSession, broker: KasparProcess, topics: Topics) -> None:
    name = topics.create(partitions=2)
    topics.produce(name, [Message(b"one", key=b"k", headers=(("h", None),)), Message(b"two", partition=1)])
    topics.transact(name, [b"three"], commit=False)
    topics.transact(name, [b"four"], commit=True)
    options = {"subscribe": name, "kafka.isolation.level": "read_committed"}
    found = rows(read(spark, THEIRS, broker.bootstrap, options))
    assert [row["value"] for row in found] == [b"one", b"four", b"two"]


def test_a_stream_goes_from_topic_to_topic(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    source, target = topics.create(partitions=2), topics.create()
    servers = {"kafka.bootstrap.servers": broker.bootstrap}
    for values in ([b"1", b"2"], [b"3"]):
        topics.produce(source, values)
        rows_in = (
            spark.readStream.format(THEIRS).options(**servers, subscribe=source, startingOffsets="earliest").load()
        )
        writer = rows_in.select("value").writeStream.format(THEIRS).options(**servers, topic=target)
        writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    assert sorted(map(str, topics.values(target))) == ["b'1'", "b'2'", "b'3'"]
