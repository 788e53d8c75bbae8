"""Consuming with every client that can name its partition: from every position, and waiting for what comes."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from tests.compat.drivers.api import (
    EARLIEST,
    LATEST,
    Ability,
    Codec,
    Driver,
    Position,
    Record,
    at_offset,
    at_timestamp,
)
from tests.compat.scenario import NewTopic, came, needs, refusal, sent

pytestmark = needs(Ability.CONSUME)

HOUR_MS = 3_600_000


def test_from_the_beginning(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    records = [Record(b"%d" % n, b"key") for n in range(100)]
    reference.produce(topic, records)
    received = driver.consume(topic, start=EARLIEST, count=100)
    assert [record.offset for record in received] == list(range(100))
    assert came(received) == sent(records)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_from_an_offset_inside_a_batch(driver: Driver, reference: Driver, new_topic: NewTopic, codec: Codec) -> None:
    topic = new_topic()
    records = [Record(b"value-%d" % n * 10) for n in range(20)]
    reference.produce(topic, records, codec=codec)
    received = driver.consume(topic, start=at_offset(7), count=13)
    assert [record.offset for record in received] == list(range(7, 20))
    assert came(received) == sent(records[7:])


def test_from_a_timestamp(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    start = int(time.time() * 1000) - HOUR_MS
    records = [Record(b"%d" % n, timestamp_ms=start + 1000 * n) for n in range(10)]
    reference.produce(topic, records[:4])
    reference.produce(topic, records[4:])
    received = driver.consume(topic, start=at_timestamp(start + 4500), count=5)
    assert [(record.offset, record.timestamp_ms) for record in received] == [
        (n, start + 1000 * n) for n in range(5, 10)
    ]
    exactly = driver.consume(topic, start=at_timestamp(start + 2000), count=1)
    assert exactly[0].offset == 2


def test_at_the_end_sees_only_what_comes_later(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    reference.produce(topic, [Record(b"old")] * 3)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(driver.consume, topic, start=LATEST, count=1)
        for number in itertools.count():  # when the consumer stands at the end cannot be seen from outside
            reference.produce(topic, [Record(b"new-%d" % number)])
            if wait([reading], timeout=0.1).done:
                break
    (received,) = reading.result()
    assert received.offset >= 3
    assert received.value == b"new-%d" % (received.offset - 3)


def test_a_waiting_consumer_is_woken(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    reference.produce(topic, [Record(b"first")])
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(driver.consume, topic, start=at_offset(0), count=3)
        assert not wait([reading], timeout=1.0).done
        reference.produce(topic, [Record(b"second"), Record(b"third")])
        received = reading.result()
    assert [record.value for record in received] == [b"first", b"second", b"third"]


@pytest.mark.parametrize("start", [at_offset(100), at_offset(1_000_000_000_000)])
def test_an_offset_after_the_end_is_reset(
    driver: Driver, reference: Driver, new_topic: NewTopic, start: Position
) -> None:
    topic = new_topic()
    reference.produce(topic, [Record(b"only")])
    received = driver.consume(topic, start=start, count=1, reset="earliest")
    assert [(record.offset, record.value) for record in received] == [(0, b"only")]


def test_an_offset_before_the_start_is_reset(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    reference.produce(topic, [Record(b"%d" % n) for n in range(5)])
    reference.delete_records(topic, 3)
    received = driver.consume(topic, start=at_offset(1), count=2, reset="earliest")
    assert [record.offset for record in received] == [3, 4]


def test_without_a_reset_policy_an_offset_out_of_range_is_an_error(
    driver: Driver, reference: Driver, new_topic: NewTopic
) -> None:
    topic = new_topic()
    reference.produce(topic, [Record(b"only")])
    outcome = refusal(lambda: driver.consume(topic, start=at_offset(100), count=1, reset="none"))
    assert outcome == "OFFSET_OUT_OF_RANGE"


def test_many_batches_come_in_order(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(config={"segment.bytes": "1048576"})
    values = [b"%06d" % n + b"x" * 10_000 for n in range(400)]
    reference.produce(topic, [Record(value) for value in values])
    received = driver.consume(topic, start=EARLIEST, count=400)
    assert [record.offset for record in received] == list(range(400))
    assert [record.value for record in received] == values


def test_a_record_of_a_megabyte_is_read(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    records = [Record(b"before"), Record(bytes(range(250)) * 4000), Record(b"after")]
    reference.produce(topic, records)
    assert came(driver.consume(topic, start=EARLIEST, count=3)) == sent(records)
