"""Scenarios of transactions."""

import contextlib
import uuid
from collections.abc import Iterator

from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.records import Record
from tests.integration.metrics.stage import Stage, now_ms
from tests.peers.raw_client import RawClient
from tests.peers.raw_transactions import RawProducer, until_settled

FIRST_WITH_PREPARED = 6
HOUR_MS = 3_600_000


def new_producer(client: RawClient) -> RawProducer:
    producer = RawProducer(client, f"transactional-{uuid.uuid4().hex[:8]}")
    producer.begin_life()
    return producer


@contextlib.contextmanager
def a_coordinator_of_transactions(stage: Stage) -> Iterator[None]:
    """It is there from the start, so that it has the first partition of all, in the directory that never fails."""
    yield


@contextlib.contextmanager
def a_transaction(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        producer = new_producer(client)
        assert producer.write(topic, b"value").error_code == 0
        yield
        assert producer.end(commit=True).error_code == 0


@contextlib.contextmanager
def a_write_outside_of_any_transaction(stage: Stage) -> Iterator[None]:
    """As a producer of the older protocol that has not added the partition."""
    with stage.topic() as (client, topic):
        producer = RawProducer(client, f"transactional-{uuid.uuid4().hex[:8]}", version=1)
        producer.begin_life()
        assert producer.write(topic, b"value").error_code != 0
        yield


@contextlib.contextmanager
def a_prepared_transaction(stage: Stage) -> Iterator[None]:
    with stage.topic() as (client, topic):
        producer = new_producer(client)
        assert producer.write(topic, b"value").error_code == 0
        request = InitProducerIdRequest(
            transactional_id=producer.transactional_id,
            transaction_timeout_ms=60_000,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            enable_2pc=True,
            keep_prepared_txn=True,
        )
        prepared = until_settled(lambda: client.call(request, InitProducerIdResponse, FIRST_WITH_PREPARED))
        assert prepared.error_code == 0
        yield
        producer.producer_id, producer.epoch = prepared.producer_id, prepared.producer_epoch
        assert producer.end(commit=True).error_code == 0


@contextlib.contextmanager
def a_transaction_that_was_forgotten(stage: Stage) -> Iterator[None]:
    """By the time of its records, which is long ago."""
    with stage.topic() as (client, topic):
        producer = new_producer(client)
        batch = producer.batch_of(topic, [Record(now_ms() - HOUR_MS, b"key", b"value")])
        assert producer.write_batch(topic, batch).error_code == 0
        yield
        assert producer.end(commit=False).error_code == 0
