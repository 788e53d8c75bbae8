"""Scenarios of writes and reads, right and wrong."""

import contextlib
from collections.abc import Iterator

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kaspar.records import Record
from tests.integration.metrics.stage import Stage, batch_of, now_ms


@contextlib.contextmanager
def a_start(stage: Stage) -> Iterator[None]:
    """What there is from the start."""
    yield


@contextlib.contextmanager
def a_write_and_a_read(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        assert client.produce_batch(topic, batch_of()).error_code == 0
        assert len(client.fetch(topic, 0).records) == 1
        yield


@contextlib.contextmanager
def a_batch_that_is_too_large(stage: Stage) -> Iterator[None]:
    with stage.topic({"max.message.bytes": "100"}) as (client, topic):
        answer = client.produce_batch(topic, batch_of(Record(now_ms(), b"key", bytes(200))))
        assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
        yield


@contextlib.contextmanager
def a_record_without_a_key(stage: Stage) -> Iterator[None]:
    with stage.topic({"cleanup.policy": "compact"}) as (client, topic):
        assert client.produce(topic, [b"value"]).error_code == ErrorCode.INVALID_RECORD
        yield


@contextlib.contextmanager
def a_wrong_checksum(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        batch = bytearray(batch_of())
        batch[-1] ^= 1
        assert client.produce_batch(topic, bytes(batch)).error_code == ErrorCode.CORRUPT_MESSAGE
        yield


@contextlib.contextmanager
def a_producer_without_a_sequence(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        assert client.produce(topic, [b"value"], producer_id=4).error_code == ErrorCode.INVALID_RECORD
        yield


@contextlib.contextmanager
def a_batch_to_compress(stage: Stage) -> Iterator[None]:
    with stage.topic({"compression.type": "gzip"}) as (client, topic):
        assert client.produce_batch(topic, batch_of()).error_code == 0
        yield


@contextlib.contextmanager
def a_read_with_a_negative_limit(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        assert client.produce_batch(topic, batch_of()).error_code == 0
        assert client.fetch_bytes(topic, 0, max_bytes=-1).error_code != 0
        yield


@contextlib.contextmanager
def a_write_that_is_synced(stage: Stage) -> Iterator[None]:
    with stage.topic({"flush.messages": "1"}) as (client, topic):
        assert client.produce_batch(topic, batch_of()).error_code == 0
        yield


@contextlib.contextmanager
def deleted_records(stage: Stage) -> Iterator[None]:
    with stage.topic({"internal.segment.bytes": "1000"}) as (client, topic):
        for _ in range(3):
            assert client.produce_batch(topic, batch_of(Record(now_ms(), b"key", bytes(600)))).error_code == 0
        until = DeleteRecordsPartition(partition_index=0, offset=1)
        client.ask(
            DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(until,)),), timeout_ms=30_000)
        )
        yield
