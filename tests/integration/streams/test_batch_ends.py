"""Where limited micro-batches end by the timestamps of records at a broker."""

from collections.abc import Iterator

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.spark.reading.offset_reader import OffsetReader
from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import Limits
from kaspar.spark.reading.stream_planner import StreamPlanner
from kaspar.testing import Broker
from tests.spark.topics import Message, Topics

OLD = 1_000_000_000_000
TABLE, STREAM = TopicPartition("profiles", 0), TopicPartition("orders", 0)


@pytest.fixture
def topics() -> Iterator[Topics]:
    with Broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        for where in (TABLE, STREAM):
            topics.create(name=where.topic, config={"retention.ms": "-1"})
        yield topics


def batches(topics: Topics, max_offsets: int) -> list[dict[TopicPartition, int]]:
    """The ends of all batches."""
    options = ReadOptions.of(
        {
            "kafka.bootstrap.servers": topics.bootstrap,
            "subscribe": "profiles,orders",
            "kafka.isolation.level": "read_committed",
            "limitByTimestamp": "true",
        }
    )
    reader = OffsetReader(options)
    planner = StreamPlanner(options, reader)
    at, ends = {TABLE: 0, STREAM: 0}, []
    try:
        while (end := planner.next_end(at, Limits(max_offsets=max_offsets))) != at:
            assert end is not None
            ends.append(end)
            at = end
    finally:
        reader.close()
    return ends


def messages(first: int, count: int) -> list[Message]:
    return [Message(b"value", b"key", timestamp_ms=OLD + number) for number in range(first, first + count)]


def test_what_is_older_is_read_first(topics: Topics) -> None:
    topics.produce("profiles", messages(0, 50))
    topics.produce("orders", messages(1000, 50))
    assert batches(topics, 30) == [
        {TABLE: 30, STREAM: 0},
        {TABLE: 50, STREAM: 0},
        {TABLE: 50, STREAM: 30},
        {TABLE: 50, STREAM: 50},
    ]


def test_transaction_markers_have_no_event_time(topics: Topics) -> None:
    """They carry the time of the broker's clock, at which ListOffsets stops."""
    for number in range(5):
        topics.transact("profiles", messages(20 * number, 10), commit=True)
        topics.transact("orders", messages(20 * number + 10, 10), commit=True)
    read = [(end[TABLE] - end[TABLE] // 11, end[STREAM] - end[STREAM] // 11) for end in batches(topics, 22)]
    assert read[:5] == [(10, 10), (20, 20), (30, 30), (40, 40), (50, 50)]
