"""Producing and replaying on a real broker: the bytes that were meant, once, where they belong."""

import random

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kaspar.base.errors import Refused
from kaspar.client.cluster import Client
from kaspar.console.messages.producing import HeaderPart, NewRecord, Part, produce
from kaspar.console.messages.reading.positions import Cursor, Direction, End
from kaspar.console.messages.reading.scanning import Budget, Query, read_page
from kaspar.console.messages.replaying import (
    Replay,
    count_letters,
    read_one,
    replay_letters,
    replay_one,
)
from kaspar.console.problems import NotThere, Unacceptable
from kaspar.records.builder import build_batch
from kaspar.records.record import Header, Record
from tests.integration.console.messages.conftest import NewTopic
from tests.peers.process import BrokerProcess

BINARY = bytes(range(256))


def letter(origin: str, number: int, partition: int = 1) -> Record:
    headers: tuple[Header, ...] = (
        ("own", BINARY),
        ("__connect.errors.topic", origin.encode()),
        ("__connect.errors.partition", b"%d" % partition),
        ("__connect.errors.offset", b"%d" % number),
        ("__connect.errors.exception.message", b"no JSON"),
        ("__kaspar.errors.timestamp", b"%d" % (1_000 + number)),
    )
    return Record(5_000_000, b"key", b"\x00%d" % number, headers)


def records_of(client: Client, topic: str) -> list[tuple[int, Record]]:
    page = read_page(client, Query(topic, End.OLDEST, Direction.FORWARD, Budget(10_000)))
    return [(each.where.partition, each.record) for each in page.records]


def test_a_produced_record_is_what_a_consumer_gets(
    client: Client, messages_broker: BrokerProcess, new_topic: NewTopic
) -> None:
    topic = new_topic(3)
    new = NewRecord(
        Part("hex", "00 ff"),
        Part("json", '{"a": 1.10}'),
        (HeaderPart("h", Part("text", "grün")), HeaderPart("h", Part("null"))),
        partition=2,
        timestamp=1_700_000_000_123,
    )
    written = produce(client, topic, new, None)
    assert (written.partition, written.offset, written.timestamp) == (2, 0, 1_700_000_000_123)
    consumer = Consumer({"bootstrap.servers": messages_broker.bootstrap, "group.id": "none", "log_level": 0})
    consumer.assign([TopicPartition(topic, 2, 0)])
    message = consumer.poll(10)
    consumer.close()
    assert message is not None
    assert (message.key(), message.value()) == (b"\x00\xff", b'{"a": 1.10}')
    assert message.headers() == [("h", "grün".encode()), ("h", None)]
    assert message.timestamp()[1] == 1_700_000_000_123


def test_keys_choose_the_partition_that_javas_producer_would(
    client: Client, messages_broker: BrokerProcess, new_topic: NewTopic
) -> None:
    topic, other = new_topic(7), new_topic(7)
    producer = Producer(
        {"bootstrap.servers": messages_broker.bootstrap, "partitioner": "murmur2_random", "log_level": 0}
    )
    for number in range(20):
        produce(client, topic, NewRecord(Part("text", f"key-{number}"), Part("null")), None)
        producer.produce(other, None, f"key-{number}")
    producer.flush()
    mine, theirs = ({(where, each.key) for where, each in records_of(client, name)} for name in (topic, other))
    assert mine == theirs


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        (NewRecord(Part("json", "{")), "The key is not valid JSON"),
        (NewRecord(value=Part("hex", "0g")), "The value is not hexadecimal"),
        (NewRecord(value=Part("integer", "x")), "is not a 64-bit integer"),
        (NewRecord(value=Part("avro", "x")), "unknown format"),
        (NewRecord(value=Part("schema", "{}")), "No schema registry is configured"),
        (NewRecord(headers=(HeaderPart("h", Part("hex", "1")),)), "The header h is not hexadecimal"),
        (NewRecord(timestamp=-1), "negative"),
        (NewRecord(timestamp=1 << 63), "64 bits"),
    ],
)
def test_what_cannot_be_written_is_refused(client: Client, new_topic: NewTopic, new: NewRecord, sentence: str) -> None:
    topic = new_topic(1)
    with pytest.raises(Unacceptable, match=sentence):
        produce(client, topic, new, None)
    assert records_of(client, topic) == []


def test_a_missing_topic_or_partition_is_said(client: Client, new_topic: NewTopic) -> None:
    with pytest.raises(NotThere, match="no topic nowhere"):
        produce(client, "nowhere", NewRecord(), None)
    with pytest.raises(NotThere, match="no partition 5"):
        produce(client, new_topic(1), NewRecord(partition=5), None)
    with pytest.raises(NotThere, match="no partition -1"):
        produce(client, new_topic(1), NewRecord(partition=-1), None)


def test_a_broker_that_refuses_is_heard(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(1, {"cleanup.policy": "compact"})
    with pytest.raises(Refused):
        produce(client, topic, NewRecord(value=Part("text", "without a key")), None)


def test_a_replayed_record_has_the_same_bytes(client: Client, new_topic: NewTopic) -> None:
    topic, other = new_topic(1), new_topic(4)
    original = Record(1_000, BINARY, BINARY[::-1], (("a", None), ("a", BINARY)))
    client.produce(topic, 0, bytes(build_batch([original])))
    to, written = replay_one(client, topic, Replay(0, 0, topic=other, to_partition=3, keep_timestamp=True))
    assert (to, written.partition, written.offset) == (other, 3, 0)
    assert records_of(client, other) == [(3, original._replace(offset=0))]
    replay_one(client, topic, Replay(0, 0))
    again = records_of(client, topic)[1][1]
    assert again[1:4] == original[1:4]
    assert again.timestamp > 1_000_000


def test_a_large_record_that_was_compressed_can_be_replayed(client: Client, new_topic: NewTopic) -> None:
    from kaspar.records.codec import Codec

    topic = new_topic(1)
    client.produce(topic, 0, bytes(build_batch([Record(1_000, None, b"x" * 3_000_000)], codec=Codec.ZSTD)))
    replay_one(client, topic, Replay(0, 0))
    assert [len(each.value or b"") for _, each in records_of(client, topic)] == [3_000_000] * 2


def test_a_tombstone_is_replayed_as_one(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    client.produce(topic, 0, bytes(build_batch([Record(1_000, b"k", None)])))
    replay_one(client, topic, Replay(0, 0))
    assert [each.value for _, each in records_of(client, topic)] == [None, None]


def test_what_is_not_there_cannot_be_replayed(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    with pytest.raises(NotThere, match="no record at offset 3"):
        replay_one(client, topic, Replay(0, 3))
    with pytest.raises(NotThere):
        read_one(client, topic, 0, 0)


def test_a_dead_letter_goes_to_its_partition_of_origin(client: Client, new_topic: NewTopic) -> None:
    origin, dead = new_topic(3), new_topic(1)
    client.produce(dead, 0, bytes(build_batch([letter(origin, 7, partition=2)])))
    to, written = replay_one(client, dead, Replay(0, 0, as_dead_letter=True, keep_timestamp=True))
    assert (to, written.partition) == (origin, 2)
    assert records_of(client, origin) == [(2, Record(1_007, b"key", b"\x007", (("own", BINARY),), 0))]


def test_a_record_that_is_no_letter_is_not_replayed_as_one(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    client.produce(topic, 0, bytes(build_batch([Record(1, None, b"v"), letter(topic, 1)])))
    with pytest.raises(Unacceptable, match="is not a dead letter"):
        replay_one(client, topic, Replay(0, 0, as_dead_letter=True))
    with pytest.raises(Unacceptable, match="itself"):
        replay_one(client, topic, Replay(0, 1, as_dead_letter=True))


def test_letters_are_counted_and_then_replayed_once_each(client: Client, new_topic: NewTopic) -> None:
    origin, dead = new_topic(2), new_topic(2)
    for partition in range(2):
        mixed = [letter(origin, number, partition) for number in range(600)] + [Record(1, None, b"no letter")]
        client.produce(dead, partition, bytes(build_batch(mixed)))
    counted = count_letters(client, dead, None, None, None)
    assert (counted.found, counted.scanned, counted.is_done) == (1200, 1202, True)
    client.produce(dead, 0, bytes(build_batch([letter(origin, 999, 0)])))  # after the count: not replayed

    position, replayed, steps = counted.start, 0, 0
    while True:
        step = replay_letters(client, dead, position, counted.until, None, keep_timestamp=False)
        position, replayed, steps = step.position, replayed + step.replayed, steps + 1
        assert step.problem is None
        if step.is_done:
            break
    assert (replayed, steps) == (1200, 3)
    for partition in range(2):
        values = [each.value for where, each in records_of(client, origin) if where == partition]
        assert values == [b"\x00%d" % number for number in range(600)]


def test_only_letters_that_match_are_replayed(client: Client, new_topic: NewTopic) -> None:
    origin, dead = new_topic(2), new_topic(1)
    client.produce(dead, 0, bytes(build_batch([letter(origin, number) for number in range(10)])))
    until = Cursor({0: 10})
    step = replay_letters(client, dead, Cursor({0: 0}), until, lambda each: each.offset > 7, keep_timestamp=True)
    assert (step.replayed, step.is_done) == (2, True)
    assert [each.value for _, each in records_of(client, origin)] == [b"\x008", b"\x009"]


def test_a_letter_that_cannot_be_replayed_stops_there(client: Client, new_topic: NewTopic) -> None:
    origin, dead = new_topic(2), new_topic(1)
    letters = [letter(origin, 0), letter("vanished", 1), letter(origin, 2)]
    client.produce(dead, 0, bytes(build_batch(letters)))
    step = replay_letters(client, dead, Cursor({0: 0}), Cursor({0: 3}), None, keep_timestamp=True)
    assert (step.replayed, step.is_done) == (1, False)
    assert step.problem is not None
    assert "no topic vanished" in step.problem
    assert step.position == Cursor({0: 1})
    rest = replay_letters(client, dead, Cursor({0: 2}), Cursor({0: 3}), None, keep_timestamp=True)
    assert (rest.replayed, rest.is_done) == (1, True)


@pytest.mark.parametrize(
    "letters",
    [
        [(400_000, 0), (900_000, 0), (10, 0)],
        [(1, 9_000)] * 200,
    ],
    ids=["values", "headers"],
)
def test_letters_that_fit_one_by_one_are_replayed(
    client: Client, new_topic: NewTopic, letters: list[tuple[int, int]]
) -> None:
    origin, dead = new_topic(2), new_topic(1)
    rng = random.Random(7)
    for number, (value, header) in enumerate(letters):
        record = letter(origin, number)
        large = record._replace(value=rng.randbytes(value), headers=(*record.headers, ("large", rng.randbytes(header))))
        client.produce(dead, 0, bytes(build_batch([large])))
    until = Cursor({0: len(letters)})
    step = replay_letters(client, dead, Cursor({0: 0}), until, None, keep_timestamp=True)
    assert (step.problem, step.replayed, step.is_done) == (None, len(letters), True)
    sent = [each.value for _, each in records_of(client, dead)]
    assert [each.value for _, each in records_of(client, origin)] == sent
