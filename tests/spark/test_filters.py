"""A filter says which rows a query gets, and never which rows another query of the same DataFrame gets."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.peers.kaspar import KasparProcess
from tests.spark.topics import Message, Topics

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    """What Spark needs to offer filters to Python data sources."""
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.unset(PUSHDOWN)


@pytest.mark.usefixtures("pushdown")
def test_queries_of_one_frame_do_not_share_their_filters(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    orders = topics.create(partitions=2)
    topics.produce(orders, [Message(b"%d" % number, partition=number % 2) for number in range(6)])
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": orders}
    rows = spark.read.format("kaspar").options(**options).load()

    def values(condition: str) -> list[int]:
        return sorted(int(row.value) for row in rows.where(condition).collect())

    assert values("partition = 0") == [0, 2, 4]
    assert values("true") == list(range(6))
    assert values(f"topic = '{orders}' AND partition IN (1) AND offset >= 1") == [3, 5]
    both = rows.where("partition = 0").union(rows.where("partition = 1"))
    assert sorted(int(row.value) for row in both.collect()) == list(range(6))
