"""A partition fetched ahead and read into columns has the rows that a stock consumer is given."""

import datetime
from collections.abc import Iterator
from uuid import UUID

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kaspar.client.fetching import OffsetGone, TopicRecreated, fetch_ahead
from kaspar.records.column_reading import ColumnReader
from kaspar.spark.reading.arrow_columns import ArrowColumns
from tests.compat.scenario import eventually
from tests.peers.brokers import Brokers
from tests.spark.topics import Message, Stored, Topics

COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")
ISOLATION_LEVELS = ["read_uncommitted", "read_committed"]


@pytest.fixture
def topics(broker: Brokers) -> Topics:
    return Topics(broker.bootstrap)


@pytest.fixture
def client(broker: Brokers) -> Iterator[Client]:
    with Client(broker.bootstrap) as client:
        yield client


def topic_id_of(client: Client, topic: str) -> UUID:
    client.refresh_metadata([topic])
    return client.topic_id_of(topic)


def rows_of(
    client: Client,
    topic: str,
    start: int,
    until: int,
    *,
    isolation_level: str = "read_committed",
    max_bytes: int = 1000,
) -> list[Stored]:
    partition = TopicPartition(topic, 0)
    reader = ColumnReader(partition, COLUMNS, start, until, max_rows=7)
    arrow = ArrowColumns(partition, COLUMNS)
    found = []
    for fetched in fetch_ahead(
        client,
        partition,
        start,
        until=until,
        topic_id=topic_id_of(client, topic),
        isolation_level=ISOLATION_LEVELS.index(isolation_level),
        max_bytes=max_bytes,
    ):
        found += [arrow.record_batch(columns) for columns in reader.take(fetched.records, fetched.aborted)]
    rest = reader.finish()
    found += [] if rest is None else [arrow.record_batch(rest)]
    return [
        Stored(
            0,
            row["offset"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"] or ()),
            (row["timestampType"] + 1, _milliseconds(row["timestamp"])),  # the client counts types from 1
        )
        for batch in found
        for row in batch.to_pylist()
    ]


def _milliseconds(time: datetime.datetime) -> int:
    return (time - datetime.datetime.fromtimestamp(0, datetime.UTC)) // datetime.timedelta(milliseconds=1)


@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
def test_every_codec_with_keys_headers_and_nulls(client: Client, topics: Topics, timestamp_type: str) -> None:
    topic = topics.create(config={"message.timestamp.type": timestamp_type})
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        messages = [
            Message(
                None if number % 5 == 4 else b"value-%d" % number * number,
                key=None if number % 3 == 0 else b"key-%d" % number,
                headers=tuple((f"h{each}", None if each == 1 else b"x") for each in range(number % 4)),
            )
            for number in range(20)
        ]
        topics.produce(topic, messages, codec=codec)
    assert rows_of(client, topic, 0, 100) == topics.read(topic)
    assert rows_of(client, topic, 33, 66) == topics.read(topic)[33:66]


@pytest.mark.parametrize("isolation_level", ISOLATION_LEVELS)
def test_transactions_and_their_markers_also_at_the_end_of_the_range(
    client: Client, topics: Topics, isolation_level: str
) -> None:
    topic = topics.create()
    topics.transact(topic, [b"committed"] * 10, commit=True)
    topics.transact(topic, [b"aborted"] * 10, commit=False)
    topics.produce(topic, [b"plain"] * 10)
    topics.transact(topic, [b"aborted at the end"] * 10, commit=False)
    # A transaction is ended for its client before the markers are in all partitions.
    eventually(lambda: client.offset_at(topic, 0, LATEST_TIMESTAMP) == 43, "the last marker is committed")
    everything = topics.read(topic, isolation_level=isolation_level)
    assert len(everything) == (20 if isolation_level == "read_committed" else 40)
    for start, until in ((0, 43), (5, 42), (12, 35), (35, 43), (42, 43)):
        expected = [record for record in everything if start <= record.offset < until]
        assert rows_of(client, topic, start, until, isolation_level=isolation_level) == expected


def test_deleted_records_and_a_recreated_topic_are_reported(client: Client, topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, [b"value"] * 10)
    topics.delete_records(topic, 4)
    with pytest.raises(OffsetGone) as gone:
        rows_of(client, topic, 2, 10)
    assert (gone.value.asked, gone.value.log_start, gone.value.log_end) == (2, 4, 10)
    with pytest.raises(OffsetGone) as beyond:
        rows_of(client, topic, 11, 12)
    assert (beyond.value.asked, beyond.value.log_end) == (11, 10)
    assert client.offset_at(topic, 0, EARLIEST_TIMESTAMP) == 4
    assert [record.offset for record in rows_of(client, topic, 4, 10)] == [4, 5, 6, 7, 8, 9]

    old = topic_id_of(client, topic)
    topics.delete(topic)
    topics.create(name=topic)
    with pytest.raises(TopicRecreated) as recreated:
        list(fetch_ahead(client, TopicPartition(topic, 0), 4, until=10, topic_id=old))
    assert recreated.value.expected == old
    assert recreated.value.found == topic_id_of(client, topic) != old
