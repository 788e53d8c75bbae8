"""Records that are gone stop a query with the reason, or it goes on where there are some; gaps are no loss."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from kaspar.client import Client
from kaspar.client.cluster import EARLIEST_TIMESTAMP
from tests.peers.kaspar import KasparProcess
from tests.spark.streams import Stream
from tests.spark.topics import Topics, wait_until


def read(spark: SparkSession, broker: KasparProcess, **options: str) -> list[bytes]:
    frame = spark.read.format("kaspar").options(**{"kafka.bootstrap.servers": broker.bootstrap, **options}).load()
    return [bytes(row.value) for row in frame.orderBy("partition", "offset").collect()]


def test_deleted_records_stop_a_stream_or_are_skipped(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"one"])
    with Stream(spark, broker.bootstrap, tmp_path, available_now=True, subscribe=orders) as stream:
        assert stream.values == [b"one"]
    topics.produce(orders, [b"two", b"three", b"four"])
    topics.delete_records(orders, before=3)
    with (
        pytest.raises(Exception, match=f"The records of {orders}-0 from offset 1 to 2 are gone: DeleteRecords"),
        Stream(spark, broker.bootstrap, tmp_path, available_now=True, subscribe=orders),
    ):
        pass
    lasting = Stream(spark, broker.bootstrap, tmp_path, available_now=True, subscribe=orders, failOnDataLoss=False)
    with lasting:
        assert lasting.values == [b"four"]


def test_retention_is_named_with_the_settings_of_the_topic(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    orders = topics.create(config={"segment.bytes": "1048576", "retention.bytes": "2000"})
    topics.produce(orders, [bytes(500_000)] * 12)  # two to a segment
    options = {"subscribe": orders, "startingOffsets": f'{{"{orders}":{{"0":0}}}}', "failOnDataLoss": "false"}
    with Client(broker.bootstrap) as client:
        wait_until(lambda: client.offset_at(orders, 0, EARLIEST_TIMESTAMP) > 0, "retention has removed some")
    with pytest.raises(
        AnalysisException, match=r"from offset 0 to \d+ are gone: retention removed them.*retention.bytes=2000"
    ):
        read(spark, broker, **options | {"failOnDataLoss": "true"})
    assert 0 < len(read(spark, broker, **options)) < 12


def test_a_recreated_topic_stops_a_running_stream_or_is_read_from_its_beginning(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"old"])
    strict = Stream(spark, broker.bootstrap, tmp_path / "strict", subscribe=orders)
    lasting = Stream(spark, broker.bootstrap, tmp_path / "lasting", subscribe=orders, failOnDataLoss=False)
    with strict, lasting:
        strict.wait_for([b"old"])
        lasting.wait_for([b"old"])
        topics.delete(orders)
        topics.create(name=orders)
        topics.produce(orders, [b"new", b"newer"])
        lasting.wait_for([b"old", b"new", b"newer"])
        assert f"{orders}' was deleted and recreated" in strict.failure() or "the topic was deleted" in strict.failure()


def test_a_deleted_topic_stops_a_running_stream(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"one"])
    with Stream(spark, broker.bootstrap, tmp_path, subscribe=orders) as stream:
        stream.wait_for([b"one"])
        topics.delete(orders)
        assert f"{orders}-0 no longer exists: the topic was deleted" in stream.failure()


def test_an_offset_that_is_not_there_is_refused_or_read_as_far_as_there_is_something(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"one", b"two"])
    beyond = {"subscribe": orders, "endingOffsets": f'{{"{orders}":{{"0":9}}}}'}
    with pytest.raises(AnalysisException, match=f"Offset 9 of {orders}-0 does not exist: its log goes from 0 to 2"):
        read(spark, broker, **beyond)
    assert read(spark, broker, **beyond, failOnDataLoss="false") == [b"one", b"two"]


def test_gaps_of_transactions_are_no_loss(spark: SparkSession, broker: KasparProcess, topics: Topics) -> None:
    orders = topics.create()
    topics.transact(orders, [b"aborted"], commit=False)
    topics.transact(orders, [b"committed"], commit=True)
    assert read(spark, broker, **{"subscribe": orders, "kafka.isolation.level": "read_committed"}) == [b"committed"]
    assert read(spark, broker, subscribe=orders) == [b"aborted", b"committed"]
