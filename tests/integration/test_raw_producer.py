"""The producer of whole batches against a real broker: killed under it, restarted, and too narrow for its batches."""

import time
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.delivery_terms import DeliveryTerms
from kaspar.client.producing import RawProducer
from kaspar.client.transactions import init_producer_id
from kaspar.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kaspar.records import Codec, Record, build_batch, iter_records
from tests.peers.kaspar import KasparProcess

WHERE = TopicPartition("t", 0)


def batch(first: int, count: int, *, size: int = 10, codec: Codec = Codec.NONE) -> memoryview:
    now_ms = time.time_ns() // 1_000_000  # brokers forget producers whose records are old
    records = [Record(now_ms, None, b"%0*d" % (size, number)) for number in range(first, first + count)]
    return memoryview(build_batch(records, codec=codec))


def stored(client: Client) -> list[int]:
    numbers: list[int] = []
    end = client.offset_at("t", 0, -1)
    offset = 0
    while offset < end:
        for record in iter_records(client.fetch("t", 0, offset).records or b""):
            if record.offset >= offset:
                numbers.append(int(record.value or b""))
                offset = record.offset + 1
    return numbers


def test_a_broker_killed_again_and_again_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with KasparProcess(tmp_path) as broker, Client(broker.bootstrap) as client:
        terms = DeliveryTerms(retry_backoff_ms=10, retry_backoff_max_ms=50)
        with RawProducer(client, producer=init_producer_id(client, None).producer, terms=terms) as producer:
            assert producer.partitions_of("t").count == 1
            for number in range(3000):
                producer.send([(WHERE, batch(number * 3, 3))])
                if number % 1000 == 500:
                    broker.kill()
                    broker.start()
            producer.flush()
            assert producer.take_end_offsets() == {WHERE: 9000}
        assert stored(client) == list(range(9000))


@pytest.mark.parametrize("codec", Codec)
def test_batches_are_cut_until_the_topic_takes_them(tmp_path: Path, codec: Codec) -> None:
    config = CreatableTopicConfig(name="max.message.bytes", value="3000")
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=(config,))
    with KasparProcess(tmp_path) as broker, Client(broker.bootstrap) as client:
        client.request_controller(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), CreateTopicsResponse)
        with RawProducer(client, producer=init_producer_id(client, None).producer) as producer:
            producer.partitions_of("t")
            for number in range(10):
                producer.send([(WHERE, batch(number * 100, 100, size=200, codec=codec))])
            producer.flush()
            assert producer.take_end_offsets() == {WHERE: 1000}
            assert stored(client) == list(range(1000))
            producer.send([(WHERE, batch(0, 1, size=5000))])
            with pytest.raises(Refused, match=r"a record of \d+ bytes is larger than .*; it is 3000 bytes") as caught:
                producer.flush()
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
