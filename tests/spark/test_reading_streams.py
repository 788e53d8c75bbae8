"""A stream reads what comes, however much at a time, and goes on where it was, be it a checkpoint of Spark's own."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.peers.kaspar import KasparProcess
from tests.spark.streams import TIMEOUT_SECONDS, Stream
from tests.spark.topics import Message, Topics, wait_until


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%04d" % number for number in range(first, last)]


def test_a_stream_reads_what_is_there_and_what_comes(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create(partitions=2)
    topics.produce(orders, [Message(b"one"), Message(b"two", partition=1)])
    with Stream(spark, broker.bootstrap, tmp_path, subscribe=orders) as stream:
        stream.wait_for([b"one", b"two"])
        topics.produce(orders, [b"three"])
        stream.wait_for([b"one", b"two", b"three"])
    assert stream.end_offsets() == {orders: {"0": 2, "1": 1}}


def test_a_new_stream_starts_at_the_latest(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"before"])
    with Stream(spark, broker.bootstrap, tmp_path, subscribe=orders, startingOffsets="latest") as stream:
        wait_until((tmp_path / "offsets" / "0").exists, "the query has begun", seconds=TIMEOUT_SECONDS)
        topics.produce(orders, [b"after"])
        stream.wait_for([b"after"])


def test_available_now_reads_what_is_there_in_batches_of_the_given_size(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    topics.produce(orders, numbers(0, 10))
    first = Stream(spark, broker.bootstrap, tmp_path, available_now=True, subscribe=orders, maxOffsetsPerTrigger=4)
    with first:
        assert [len(batch) for batch in first.batches] == [4, 4, 2]
    topics.produce(orders, numbers(10, 12))
    again = Stream(spark, broker.bootstrap, tmp_path, available_now=True, subscribe=orders, minOffsetsPerTrigger=100)
    with again:
        assert again.values == numbers(10, 12), "it goes on where it was, and does not wait for more"


def test_a_micro_batch_keeps_a_limit_in_bytes(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    for _ in range(10):  # so many batches of the log, each of about 10 kB
        topics.produce(orders, [bytes(1000)] * 10)
    stream = Stream(spark, broker.bootstrap, tmp_path, available_now=True, subscribe=orders, maxBytesPerTrigger=25_000)
    with stream:
        sizes = [len(batch) for batch in stream.batches]
    assert sum(sizes) == 100
    assert 4 <= len(sizes) <= 6, f"a quarter of it at a time, and not {sizes}"


def test_partitions_that_are_added_are_read_from_their_beginning(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"one"])
    with Stream(spark, broker.bootstrap, tmp_path, subscribe=orders) as stream:
        stream.wait_for([b"one"])
        topics.grow(orders, 2)
        topics.produce(orders, [Message(b"two", partition=1)])
        stream.wait_for([b"one", b"two"])


def test_topics_that_a_pattern_matches_are_read_when_they_come(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    with Stream(spark, broker.bootstrap, tmp_path, subscribePattern="pattern-.*") as stream:
        for number in range(2):
            topics.create(name=f"pattern-{number}")
            topics.produce(f"pattern-{number}", [b"of %d" % number])
            stream.wait_for([b"of %d" % each for each in range(number + 1)])
    for number in range(2):
        topics.delete(f"pattern-{number}")


@pytest.mark.parametrize(("before", "after"), [("kafka", "kaspar"), ("kaspar", "kafka")])
def test_a_query_changes_its_format_and_keeps_its_checkpoint(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path, before: str, after: str
) -> None:
    orders = topics.create(partitions=2)
    topics.produce(orders, [Message(b"one"), Message(b"two", partition=1)])
    with Stream(spark, broker.bootstrap, tmp_path, source=before, available_now=True, subscribe=orders) as stream:
        assert sorted(stream.values) == [b"one", b"two"]
    topics.produce(orders, [b"three"])
    with Stream(spark, broker.bootstrap, tmp_path, source=after, available_now=True, subscribe=orders) as stream:
        assert stream.values == [b"three"]


def test_a_stream_outlives_a_restart_of_the_broker(spark: SparkSession, tmp_path: Path) -> None:
    with KasparProcess(tmp_path / "broker") as own:
        topics = Topics(own.bootstrap)
        orders = topics.create()
        topics.produce(orders, [b"one"])
        with Stream(spark, own.bootstrap, tmp_path / "checkpoint", subscribe=orders) as stream:
            stream.wait_for([b"one"])
            own.stop()
            own.start()
            topics.produce(orders, [b"two"])
            stream.wait_for([b"one", b"two"])
