"""Spark's own connector reads from and writes to our broker, batch and streaming."""

from pyspark.sql import SparkSession

from tests.peers.kaspar import KasparProcess
from tests.spark.topics import Message, Topics


def test_a_batch_is_read(spark: SparkSession, broker: KasparProcess, topics: Topics) -> None:
    orders = topics.create(partitions=2)
    topics.produce(orders, [Message(b"one", key=b"k", headers=(("h", None),)), Message(b"two", partition=1)])
    topics.transact(orders, [b"three"], commit=False)
    topics.transact(orders, [b"four"], commit=True)
    found = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", orders)
        .load()
        .select("value")
        .collect()
    )
    assert sorted(bytes(row["value"]) for row in found) == [b"four", b"one", b"two"]
