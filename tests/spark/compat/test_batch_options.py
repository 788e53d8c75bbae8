"""Every option of a batch read: the rows, all columns of them, are those of Spark's own connector."""

import json

import pytest
from pyspark.sql import SparkSession

from tests.peers.kaspar import KasparProcess
from tests.peers.process import BrokerProcess
from tests.spark.compat.comparing import OURS, THEIRS, Options, both, read, rows
from tests.spark.compat.menagerie import BEGAN_MS, MIXED_PARTITIONS, MIXED_RECORDS, Menagerie
from tests.spark.topics import Message, Topics

EARLIEST, LATEST = -2, -1
A_THIRD_MS, TWO_THIRDS_MS = BEGAN_MS + 30_000, BEGAN_MS + 60_000


def by_partition(name: str, *offsets: int) -> str:
    return json.dumps({name: {str(partition): offset for partition, offset in enumerate(offsets)}})


MIXED = "animals-mixed"
READS: dict[str, Options] = {
    "subscribe": {"subscribe": MIXED},
    "several topics": {"subscribe": f"{MIXED},animals-empty,animals-codecs"},
    "a pattern": {"subscribePattern": "animals-(mixed|co.*)"},
    "a pattern of a part of the name": {"subscribePattern": "als-(mix|empty)"},
    "assign": {"assign": json.dumps({MIXED: [0, 2], "animals-empty": [1]})},
    "headers": {"subscribe": MIXED, "includeHeaders": "true"},
    "from earliest to latest": {"subscribe": MIXED, "startingOffsets": "earliest", "endingOffsets": "latest"},
    "from offsets": {"subscribe": MIXED, "startingOffsets": by_partition(MIXED, 10, 20, EARLIEST)},
    "to offsets": {"subscribe": MIXED, "endingOffsets": by_partition(MIXED, 10, LATEST, 0)},
    "between offsets": {
        "subscribe": MIXED,
        "startingOffsets": by_partition(MIXED, 5, 6, 7),
        "endingOffsets": by_partition(MIXED, 6, 6, 30),
    },
    "from a timestamp": {"subscribe": MIXED, "startingTimestamp": A_THIRD_MS},
    "to a timestamp": {"subscribe": MIXED, "endingTimestamp": A_THIRD_MS},
    "between timestamps": {"subscribe": MIXED, "startingTimestamp": A_THIRD_MS, "endingTimestamp": TWO_THIRDS_MS},
    "between timestamps that no record has": {
        "subscribe": MIXED,
        "startingTimestamp": A_THIRD_MS - 999,
        "endingTimestamp": TWO_THIRDS_MS + 1,
    },
    "from timestamps of partitions": {
        "subscribe": MIXED,
        "startingOffsetsByTimestamp": by_partition(MIXED, BEGAN_MS, A_THIRD_MS, TWO_THIRDS_MS),
    },
    "to timestamps of partitions": {
        "subscribe": MIXED,
        "endingOffsetsByTimestamp": by_partition(MIXED, BEGAN_MS, A_THIRD_MS, TWO_THIRDS_MS * 2),
    },
    "timestamps go before offsets": {
        "subscribe": MIXED,
        "startingTimestamp": A_THIRD_MS,
        "startingOffsetsByTimestamp": by_partition(MIXED, BEGAN_MS, BEGAN_MS, BEGAN_MS),
        "startingOffsets": by_partition(MIXED, 1, 1, 1),
    },
    "no record so late, strategy latest": {
        "subscribe": MIXED,
        "startingTimestamp": TWO_THIRDS_MS * 2,
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "more tasks than partitions": {"subscribe": MIXED, "minPartitions": "7"},
    "fewer tasks than partitions": {"subscribe": MIXED, "minPartitions": "1"},
    "so many records a task": {"subscribe": MIXED, "maxRecordsPerPartition": "25"},
    "an empty topic": {"subscribe": "animals-empty"},
    "every codec": {"subscribe": "animals-codecs"},
    "committed": {"subscribe": "animals-transactions", "kafka.isolation.level": "read_committed"},
    "uncommitted": {"subscribe": "animals-transactions", "kafka.isolation.level": "read_uncommitted"},
    "uncommitted by default": {"subscribe": "animals-transactions"},
    "committed in small pieces": {
        "subscribe": "animals-transactions",
        "kafka.isolation.level": "read_committed",
        "minPartitions": "9",
    },
    "up to an undecided transaction": {"subscribe": "animals-undecided", "kafka.isolation.level": "read_committed"},
    "an undecided transaction": {"subscribe": "animals-undecided"},
    "a compacted topic": {"subscribe": "animals-compacted"},
    "a compacted topic in pieces": {"subscribe": "animals-compacted", "minPartitions": "6"},
    "LogAppendTime": {"subscribe": "animals-appended"},
    "records that were deleted before": {"subscribe": "animals-cut"},
    "deleted offsets, without failing": {
        "subscribe": "animals-cut",
        "startingOffsets": by_partition("animals-cut", 3),
        "failOnDataLoss": "false",
    },
    "small fetches": {"subscribe": MIXED, "kafka.max.partition.fetch.bytes": "500", "kafka.fetch.max.bytes": "500"},
}
EMPTY = {"an empty topic", "no record so late, strategy latest"}
ABOUT_OPTIONS = (
    "several topics",
    "a pattern of a part of the name",
    "headers",
    "from earliest to latest",
    "from offsets",
    "to offsets",
    "between timestamps",
    "to timestamps of partitions",
    "timestamps go before offsets",
    "no record so late, strategy latest",
    "more tasks than partitions",
    "fewer tasks than partitions",
    "so many records a task",
    "an empty topic",
    "uncommitted",
    "uncommitted by default",
    "a compacted topic in pieces",
)
"""What both kinds of broker respond alike to: ranges of offsets, and how they are split into tasks."""


@pytest.mark.long_on_kafka(*ABOUT_OPTIONS)
@pytest.mark.parametrize("case", READS)
def test_rows_are_those_of_sparks_own_connector(
    spark: SparkSession, side: BrokerProcess, menagerie: Menagerie, case: str
) -> None:
    ours, theirs = both(spark, side.bootstrap, READS[case])
    assert ours == theirs
    assert bool(theirs) is (case not in EMPTY)


def test_rows_are_what_was_produced(spark: SparkSession, side: BrokerProcess, menagerie: Menagerie) -> None:
    """Not only equal to the connector's: the whole of it."""
    found = rows(read(spark, "kaspar", side.bootstrap, {"subscribe": menagerie.mixed, "includeHeaders": "true"}))
    assert [row["offset"] for row in found] == list(range(MIXED_RECORDS)) * MIXED_PARTITIONS
    assert found[2]["value"] == b"value 2value 2"
    assert found[2]["key"] == b"key 2"
    assert [(header["key"], header["value"]) for header in found[2]["headers"]] == [
        ("twice", b"a"),
        ("twice", b"b"),
        ("", b""),
    ]
    assert found[2]["timestamp"].timestamp() * 1000 == BEGAN_MS + 2000
    assert found[0]["value"] is None
    assert found[1]["value"] == b""
    assert found[0]["headers"] is None


def test_an_open_transaction_ends_what_is_read(spark: SparkSession, side: BrokerProcess, menagerie: Menagerie) -> None:
    """As long as it is open: otherwise the comparisons above would compare nothing."""
    options = {"subscribe": menagerie.undecided, "kafka.isolation.level": "read_committed"}
    assert [row["value"] for row in rows(read(spark, "kaspar", side.bootstrap, options))] == [b"decided"]


def test_a_data_frame_that_is_used_again_has_what_came_and_not_what_went_meanwhile(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    """Spark plans its tasks once: they look up again where the topic begins and ends if the options give no offsets."""
    name = topics.create(partitions=3)
    topics.produce(name, [b"one", b"two"])
    to_offsets = {"subscribe": name, "endingOffsets": by_partition(name, 2, 0, 0)}
    both_to_latest = [read(spark, source, broker.bootstrap, {"subscribe": name}) for source in (OURS, THEIRS)]
    both_to_offsets = [read(spark, source, broker.bootstrap, to_offsets) for source in (OURS, THEIRS)]

    def counts() -> tuple[list[int], list[int]]:
        return [frame.count() for frame in both_to_latest], [frame.count() for frame in both_to_offsets]

    assert counts() == ([2, 2], [2, 2])
    topics.produce(name, [Message(b"three"), Message(b"into an empty partition", partition=2)])
    assert counts() == ([4, 4], [2, 2])
    topics.delete_records(name, 1)
    assert counts() == ([3, 3], [1, 1])
