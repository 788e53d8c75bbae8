"""Retention as a client sees it: by time and by bytes, changed while the broker runs, over restarts and kills."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from kaspar.records import Record, build_batch
from tests.compat.drivers.api import EARLIEST, LATEST
from tests.compat.drivers.confluent import ConfluentDriver
from tests.peers.observed import ObservedBroker, wait_until

TOPIC = "orders"
SEGMENT_BYTES = 5_000
SMALL = {"internal.segment.bytes": str(SEGMENT_BYTES), "file.delete.delay.ms": "100"}
HOUR_MS = 3_600_000
SETTINGS = {
    "log.retention.check.interval.ms": "50",
    "log.flush.start.offset.checkpoint.interval.ms": "50",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ObservedBroker]:
    with ObservedBroker(tmp_path, overrides=SETTINGS) as running:
        yield running


def fill(broker: ObservedBroker, count: int, *, age_ms: int = 0) -> None:
    """Five records a batch, so that segments are as small as the topic says."""
    timestamp = int(time.time() * 1000) - age_ms
    with broker.client() as client:
        for number in range(0, count, 5):
            batch = build_batch([Record(timestamp, None, b"%d" % number * 50)] * 5)
            assert client.produce_batch(TOPIC, bytes(batch)).error_code == 0


def start_of(client: ConfluentDriver) -> int:
    return client.list_offset(TOPIC, EARLIEST)


def test_records_go_by_their_own_time(broker: ObservedBroker) -> None:
    """Not by when they came: what was old when it came goes, what is young stays."""
    client = ConfluentDriver(broker.bootstrap)
    client.create_topic(TOPIC, config=SMALL | {"retention.ms": "-1"})
    fill(broker, 200, age_ms=2 * HOUR_MS)
    fill(broker, 200)
    client.alter_config(TOPIC, {"retention.ms": str(HOUR_MS)})
    wait_until(lambda: start_of(client) > 150, "what is older than an hour is deleted")
    start = start_of(client)
    assert start <= 200
    assert client.list_offset(TOPIC, LATEST) == 400
    received = client.consume(TOPIC, start=EARLIEST, count=400 - start)
    assert [record.offset for record in received] == list(range(start, 400))


def test_a_topic_keeps_its_size(broker: ObservedBroker) -> None:
    client = ConfluentDriver(broker.bootstrap)
    client.create_topic(TOPIC, config=SMALL | {"retention.bytes": "20000"})
    fill(broker, 600)
    wait_until(lambda: broker.log_size(TOPIC) < 20_000 + SEGMENT_BYTES, "the oldest segments are deleted")
    assert broker.log_size(TOPIC) >= 20_000 - SEGMENT_BYTES
    before = start_of(client)
    assert before > 0
    client.alter_config(TOPIC, {"retention.bytes": "10000"})
    wait_until(lambda: broker.log_size(TOPIC) < 10_000 + SEGMENT_BYTES, "the new setting counts at once")
    assert start_of(client) > before
    assert client.list_offset(TOPIC, LATEST) == 600


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_log_start_offset_survives(broker: ObservedBroker, end: str) -> None:
    """That of retention, and that of DeleteRecords, which lies within a segment."""
    client = ConfluentDriver(broker.bootstrap)
    client.create_topic(TOPIC, config=SMALL | {"retention.bytes": "20000"})
    fill(broker, 600)
    wait_until(lambda: broker.log_size(TOPIC) < 20_000 + SEGMENT_BYTES, "the oldest segments are deleted")
    by_retention = start_of(client)
    wanted = by_retention + 7
    assert client.delete_records(TOPIC, wanted) == wanted
    line = f"{TOPIC} 0 {wanted}"
    checkpoint = broker.data_dir / "log-start-offset-checkpoint"
    wait_until(lambda: line in checkpoint.read_text().splitlines(), "the new start is written down")
    if end == "stop":
        broker.stop()
    else:
        broker.kill()
    broker.start()
    client = ConfluentDriver(broker.bootstrap)
    assert start_of(client) == wanted
    assert client.consume(TOPIC, start=EARLIEST, count=1)[0].offset == wanted


def test_a_reader_of_what_is_deleted_goes_on_at_the_new_start(broker: ObservedBroker) -> None:
    """It reads on while segments are deleted under it: every record that it gets is right, and it is never stuck."""
    client = ConfluentDriver(broker.bootstrap)
    client.create_topic(TOPIC, config=SMALL | {"retention.ms": "-1"})
    fill(broker, 400, age_ms=2 * HOUR_MS)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 1_000,
            "queued.min.messages": 1,
            "log_level": 2,
        }
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        offsets = [_next_offset(consumer) for _ in range(20)]
        client.alter_config(TOPIC, {"retention.ms": str(HOUR_MS)})
        wait_until(lambda: start_of(client) > 300, "the segments are deleted")
        fill(broker, 50)
        while offsets[-1] < 449:
            offsets.append(_next_offset(consumer))
    finally:
        consumer.close()
    assert offsets == sorted(set(offsets))
    start = start_of(client)
    assert offsets[-(450 - start) :] == list(range(start, 450)), "nothing above the new start is left out"


def _next_offset(consumer: Consumer) -> int:
    message = consumer.poll(20)
    assert message is not None
    assert message.error() is None
    offset = message.offset()
    assert offset is not None
    return offset
