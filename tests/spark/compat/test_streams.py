"""Streaming reads: rows, batches and offsets are those of Spark's own connector, over restarts and changed topics."""

import json
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.peers.process import BrokerProcess
from tests.spark.compat.comparing import OURS, THEIRS, Options, both_streams, stream
from tests.spark.compat.menagerie import BEGAN_MS, Menagerie
from tests.spark.topics import Message, Topics

MIXED = "animals-mixed"
STREAMS: dict[str, Options] = {
    "from earliest": {"subscribe": MIXED, "startingOffsets": "earliest"},
    "from latest": {"subscribe": MIXED},
    "from offsets": {"subscribe": MIXED, "startingOffsets": json.dumps({MIXED: {"0": 80, "1": -1, "2": -2}})},
    "from a timestamp": {"subscribe": MIXED, "startingTimestamp": BEGAN_MS + 80_000},
    "so many offsets a batch": {"subscribe": MIXED, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 100},
    "committed, so many offsets a batch": {
        "subscribe": "animals-transactions",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 20,
        "kafka.isolation.level": "read_committed",
    },
    "at least so many offsets": {
        "subscribe": MIXED,
        "startingOffsets": "earliest",
        "minOffsetsPerTrigger": 10_000,
        "maxTriggerDelay": "1s",
    },
    "a compacted topic": {"subscribe": "animals-compacted", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 40},
    "headers": {"subscribePattern": "animals-(mixed|codecs)", "startingOffsets": "earliest", "includeHeaders": "true"},
}


@pytest.mark.long_on_kafka("from latest", "from offsets", "at least so many offsets", "headers")
@pytest.mark.parametrize("case", STREAMS)
def test_rows_and_batches_are_those_of_sparks_own_connector(
    spark: SparkSession, side: BrokerProcess, menagerie: Menagerie, tmp_path: Path, case: str
) -> None:
    ours, theirs = both_streams(spark, side.bootstrap, STREAMS[case], tmp_path)
    assert ours.rows == theirs.rows
    assert ours.batches == theirs.batches
    assert bool(theirs.rows) is (case != "from latest")


@pytest.mark.parametrize("first", [OURS, THEIRS])
def test_a_checkpoint_goes_on_where_it_was(
    spark: SparkSession, side: BrokerProcess, side_topics: Topics, tmp_path: Path, first: str
) -> None:
    """Written by either source: a query that used format("kafka") before keeps its place."""
    name = side_topics.create(partitions=2)
    options = {"subscribe": name, "startingOffsets": "earliest"}
    side_topics.produce(name, [Message(b"old", partition=number % 2) for number in range(5)])
    before = stream(spark, first, side.bootstrap, options, tmp_path)
    side_topics.produce(name, [Message(f"new {number}".encode(), partition=number % 2) for number in range(5)])
    after = stream(spark, OURS, side.bootstrap, options, tmp_path)
    assert len(before.rows) == 5
    assert sorted(row["value"] for row in after.rows) == [f"new {number}".encode() for number in range(5)]


def test_new_partitions_are_read_from_their_start(
    spark: SparkSession, side: BrokerProcess, side_topics: Topics, tmp_path: Path
) -> None:
    name = side_topics.create()
    options = {"subscribe": name}
    side_topics.produce(name, [b"before"])
    both_streams(spark, side.bootstrap, options, tmp_path)
    side_topics.grow(name, 3)
    side_topics.produce(name, [Message(f"{number}".encode(), partition=number % 3) for number in range(6)])
    ours, theirs = both_streams(spark, side.bootstrap, options, tmp_path)
    assert ours == theirs
    assert len(ours.rows) == 6


def test_new_topics_of_a_pattern_are_read_from_their_start(
    spark: SparkSession, side: BrokerProcess, side_topics: Topics, tmp_path: Path
) -> None:
    first = side_topics.create()
    options = {"subscribePattern": f"{first}.*"}
    side_topics.produce(first, [b"before"])
    both_streams(spark, side.bootstrap, options, tmp_path)
    second = side_topics.create(name=f"{first}-too", partitions=2)
    side_topics.produce(first, [b"after"])
    side_topics.produce(second, [Message(b"there", partition=1)])
    ours, theirs = both_streams(spark, side.bootstrap, options, tmp_path)
    assert ours == theirs
    assert [row["value"] for row in ours.rows] == [b"after", b"there"]


def test_lost_records_stop_a_query_unless_it_may_go_on(
    spark: SparkSession, side: BrokerProcess, side_topics: Topics, tmp_path: Path
) -> None:
    name = side_topics.create()
    options = {"subscribe": name, "startingOffsets": "earliest"}
    side_topics.produce(name, [b"seen"])
    both_streams(spark, side.bootstrap, options, tmp_path)
    side_topics.produce(name, [f"{number}".encode() for number in range(5)])
    side_topics.delete_records(name, 4)
    for source in (OURS, THEIRS):
        with pytest.raises(StreamingQueryException):
            stream(spark, source, side.bootstrap, options, tmp_path / source)
    may_go_on = {**options, "failOnDataLoss": "false"}
    ours, theirs = both_streams(spark, side.bootstrap, may_go_on, tmp_path)
    assert ours.rows == theirs.rows
    assert [row["value"] for row in ours.rows] == [b"3", b"4"]
