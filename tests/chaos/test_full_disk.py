"""A full disk is not a failed disk: writes are refused until space returns, everything else goes on."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from kaspar.base.errors import ErrorCode
from kaspar.records import iter_headers
from tests.chaos.conftest import StartBroker
from tests.chaos.mounts import free_bytes, small_disk
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient

TOPIC = "orders"
OTHER = "other"
VALUE_BYTES = 50_000
REFUSED = 'kafka_network_requestmetrics_errors_total{request="Produce",error="KAFKA_STORAGE_ERROR"}'


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with ExitStack() as stack:
        yield unless_missing(lambda: stack.enter_context(small_disk(tmp_path / "disk", megabytes=16)))


@pytest.fixture
def broker(disk: Path, start_broker: StartBroker) -> ObservedBroker:  # the disk must outlive the broker
    broker = start_broker(overrides={"log.dirs": str(disk / "data"), "log.segment.delete.delay.ms": "0"})
    broker.data_dir = disk / "data"
    return broker


def _fill(client: RawClient, rng: random.Random) -> list[bytes]:
    """Produce until the broker refuses; what it acknowledged."""
    acknowledged: list[bytes] = []
    while True:
        value = rng.randbytes(rng.randrange(1, VALUE_BYTES))
        response = client.produce(TOPIC, [value])
        if response.error_code != 0:
            assert response.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert "no space is left" in (response.error_message or "")
            return acknowledged
        assert response.base_offset == len(acknowledged)
        acknowledged.append(value)
        assert len(acknowledged) < 10_000


@pytest.mark.parametrize("flush_messages", ["9223372036854775807", "1"], ids=["page cache", "group commit"])
def test_writes_are_refused_until_space_returns(
    broker: ObservedBroker, disk: Path, rng: random.Random, flush_messages: str
) -> None:
    filler = disk / "filler"
    filler.write_bytes(bytes(4 << 20))
    with broker.client() as client:
        assert client.create_topic(TOPIC, configs={"flush.messages": flush_messages}) == 0
        assert client.create_topic(OTHER) == 0
        acknowledged = _fill(client, rng)
        segment = broker.segment_files(TOPIC)[0]
        size = segment.stat().st_size

        assert client.produce(TOPIC, [bytes(VALUE_BYTES)]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert segment.stat().st_size == size, "the partial write was not cut off"
        assert client.read_values(TOPIC) == acknowledged, "reads go on"
        assert client.produce(OTHER, [b"small"]).error_code in (0, ErrorCode.KAFKA_STORAGE_ERROR)

        filler.unlink()
        more = rng.randbytes(VALUE_BYTES)
        assert client.produce(TOPIC, [more]).error_code == 0, "writes resume by themselves"
        acknowledged.append(more)
        acknowledged += _fill_again(client, rng, len(acknowledged))
        assert client.read_values(TOPIC) == acknowledged
    # A stop and a start on a full disk.
    broker.expect_error("a log directory could not be closed cleanly")
    assert broker.stop() == 0
    broker.start()
    with broker.client() as client:
        assert client.read_values(TOPIC) == acknowledged
        assert client.delete_topic(TOPIC) == 0, "deletes go on"
        wait_until(lambda: free_bytes(disk) > 8 << 20, "the deleted topic's space is free")
        assert client.produce(OTHER, [bytes(VALUE_BYTES)]).error_code == 0
    assert not broker.log_lines("is offline")


def _fill_again(client: RawClient, rng: random.Random, offset: int) -> list[bytes]:
    acknowledged: list[bytes] = []
    while True:
        value = rng.randbytes(VALUE_BYTES)
        response = client.produce(TOPIC, [value])
        if response.error_code != 0:
            return acknowledged
        assert response.base_offset == offset + len(acknowledged)
        acknowledged.append(value)


def test_kill_on_a_full_disk_loses_nothing_acknowledged(broker: ObservedBroker, rng: random.Random) -> None:
    with broker.client() as client:
        assert client.create_topic(TOPIC) == 0
        assert client.create_topic(OTHER) == 0
        acknowledged = _fill(client, rng)
    broker.kill()
    broker.start()
    with broker.client() as client:
        assert client.read_values(TOPIC) == acknowledged
        assert client.delete_topic(TOPIC) == 0
        wait_until(lambda: client.produce(OTHER, [bytes(VALUE_BYTES)]).error_code == 0, "writes resume")


def test_topics_made_on_a_full_disk_take_records_when_there_is_space(broker: ObservedBroker, disk: Path) -> None:
    """The metadata store has space in reserve; a log may have to wait for some."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        file.write(bytes(free_bytes(disk)))
    names = [f"topic-{number}" for number in range(5)]
    with broker.client() as client:
        for name in names:
            assert client.create_topic(name) == 0
            assert client.produce(name, [b"x"]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        filler.unlink()
        for name in names:
            wait_until(lambda name=name: client.produce(name, [b"x"]).error_code == 0, f"{name} takes records")  # type: ignore[misc]


def test_a_producer_with_several_batches_in_flight_stays_in_its_epoch(broker: ObservedBroker, disk: Path) -> None:
    """librdkafka responds to OUT_OF_ORDER_SEQUENCE_NUMBER with a new epoch, in which it repeats as new what it does not
    know to be stored, in any partition.
    """
    filler = disk / "filler"
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            **broker.clients,
            "enable.idempotence": True,
            "linger.ms": 0,
            "batch.num.messages": 1,  # up to five requests are in flight
            "retry.backoff.ms": 10,
            "retry.backoff.max.ms": 50,
        }
    )
    failed: list[KafkaError] = []
    delivered: list[int] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(error)
        else:
            delivered.append(message.offset() or 0)

    def send(count: int) -> None:
        for number in range(count):
            producer.produce(TOPIC, f"{number:05}".encode() * 2000, partition=0, on_delivery=on_delivery)

    with broker.client() as client:
        assert client.create_topic(TOPIC) == 0
        send(20)
        assert producer.flush(30) == 0
        with filler.open("wb") as file:
            file.write(bytes(free_bytes(disk)))
        send(200)
        wait_until(lambda: broker.metrics().get(REFUSED, 0) > 10, "requests are refused, and their retries too")
        filler.unlink()
        assert producer.flush(60) == 0
        assert failed == []
        assert delivered == list(range(220))
        assert len(client.read_values(TOPIC)) == 220
    data = broker.segment_files(TOPIC)[0].read_bytes()
    assert {header.producer_epoch for _, header in iter_headers(memoryview(data), 0, len(data))} == {0}
