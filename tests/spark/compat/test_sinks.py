"""What is written: the same records, in the same partitions and order, as Spark's own connector writes."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.peers.process import BrokerProcess
from tests.spark.compat.comparing import OURS, THEIRS, Options
from tests.spark.topics import Stored, Topics

HEADERS = "array(named_struct('key', 'h', 'value', cast('1' AS binary)), named_struct('key', 'none', 'value', null))"
FRAMES: dict[str, tuple[str, Options]] = {
    "values": ("SELECT cast(concat('value ', id) AS binary) AS value FROM range(0, 100, 1, 1)", {}),
    "strings": ("SELECT string(id) AS key, concat('ö', id) AS value FROM range(0, 100, 1, 1)", {}),
    "nothing": ("SELECT string(id) AS key, cast(null AS string) AS value FROM range(0, 10, 1, 1)", {}),
    "empty": ("SELECT '' AS key, '' AS value FROM range(0, 10, 1, 1)", {}),
    "headers": (
        f"SELECT string(id) AS key, string(id) AS value, if(id % 3 = 0, null, {HEADERS}) AS headers "
        "FROM range(0, 30, 1, 1)",
        {"includeHeaders": "true"},
    ),
    "partitions": ("SELECT string(id) AS value, int(id % 3) AS partition FROM range(0, 100, 1, 1)", {}),
    "partitions of some": (
        "SELECT string(id) AS key, string(id) AS value, if(id % 2 = 0, int(id % 3), null) AS partition "
        "FROM range(0, 100, 1, 1)",
        {},
    ),
    "no rows": ("SELECT string(id) AS value FROM range(0)", {}),
    "large": ("SELECT string(id) AS key, repeat('x', 5000) AS value FROM range(0, 1000, 1, 1)", {}),
    **{
        codec: (
            "SELECT string(id) AS key, repeat(string(id), 50) AS value FROM range(0, 500, 1, 1)",
            {"kafka.compression.type": codec},
        )
        for codec in ("gzip", "snappy", "lz4", "zstd")
    },
}


@pytest.fixture
def two_topics(side_topics: Topics) -> dict[str, str]:
    """One for each of the two that write."""
    return {writer: side_topics.create(partitions=3) for writer in (OURS, THEIRS)}


def without_time(records: list[Stored]) -> list[tuple[object, ...]]:
    return [(each.partition, each.offset, each.key, each.value, each.headers) for each in records]


@pytest.mark.long_on_kafka("nothing", "empty", "partitions", "no rows", "gzip", "snappy", "lz4")
@pytest.mark.parametrize("case", FRAMES)
def test_a_batch_becomes_the_records_of_sparks_own_connector(
    spark: SparkSession, side: BrokerProcess, side_topics: Topics, two_topics: dict[str, str], case: str
) -> None:
    query, options = FRAMES[case]
    frame = spark.sql(query)
    for writer, name in two_topics.items():
        _write(frame, writer, side.bootstrap, {**options, "topic": name})
    ours, theirs = (side_topics.read(two_topics[writer]) for writer in (OURS, THEIRS))
    if "key" in frame.columns or "partition" in frame.columns:
        assert without_time(ours) == without_time(theirs)
    else:  # where records without key and partition go is a matter of chance
        assert sorted(str(each.value) for each in ours) == sorted(str(each.value) for each in theirs)
    assert bool(theirs) is (case != "no rows")


def test_rows_choose_their_topic(
    spark: SparkSession, side: BrokerProcess, side_topics: Topics, two_topics: dict[str, str]
) -> None:
    """The option goes before the column."""
    first, second = two_topics.values()
    frame = spark.sql(f"SELECT if(id % 2 = 0, '{first}', '{second}') AS topic, string(id) AS value FROM range(10)")
    _write(frame, OURS, side.bootstrap, {})
    assert sorted(map(str, side_topics.values(first))) == [f"b'{number}'" for number in (0, 2, 4, 6, 8)]
    _write(frame, OURS, side.bootstrap, {"topic": second})
    assert len(side_topics.values(first)) == 5
    assert len(side_topics.values(second)) == 15


WAYS = {"ours": (OURS, OURS), "to ours": (THEIRS, OURS), "from ours": (OURS, THEIRS), "theirs": (THEIRS, THEIRS)}


@pytest.mark.long_on_kafka("to ours", "from ours", "theirs")
@pytest.mark.parametrize("case", WAYS)
def test_a_stream_from_topic_to_topic(
    spark: SparkSession, side: BrokerProcess, side_topics: Topics, tmp_path: Path, case: str
) -> None:
    """Any source with any sink; twice, with what came in between."""
    source, sink = WAYS[case]
    taken, given = side_topics.create(partitions=2), side_topics.create(partitions=2)
    for values in ([b"1", b"2"], [b"3"]):
        side_topics.produce(taken, values)
        query = (
            spark.readStream.format(source)
            .options(**{"kafka.bootstrap.servers": side.bootstrap}, subscribe=taken, startingOffsets="earliest")
            .load()
            .select("key", "value")
            .writeStream.format(sink)
            .options(**{"kafka.bootstrap.servers": side.bootstrap}, topic=given)
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert sorted(map(str, side_topics.values(given))) == ["b'1'", "b'2'", "b'3'"]


def _write(frame: DataFrame, writer: str, bootstrap: str, options: Options) -> None:
    given = {name: str(value) for name, value in options.items()}
    frame.write.format(writer).options(**{"kafka.bootstrap.servers": bootstrap, **given}).mode("append").save()
