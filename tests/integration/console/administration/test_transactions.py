"""Transactions of a real broker: seen and ended, also those that no coordinator knows."""

import dataclasses
import itertools
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException, Producer

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.configs import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
    incremental_alter_configs,
)
from kaspar.client.admin.session import Admin, raise_first
from kaspar.client.admin.transactions import list_transactions
from kaspar.console.problems import Conflict, NotThere
from kaspar.console.transactions.ending import SeenOnPartition, SeenTransaction, abort_hanging, terminate
from kaspar.console.transactions.hanging import search
from kaspar.console.transactions.listing import Phase, TransactionQuery, TransactionView, describe, page
from kaspar.protocol.messages.produce import ProduceResponse
from kaspar.records import Record, build_batch
from tests.integration.console.administration.conftest import HERS, RECORDS, SecuredBroker
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient, produce_request

BEFORE_KIP_890 = 11
"""A version of Produce whose partitions a client adds to its transaction itself."""
LATE_MS = 4_000_000_000_000
_numbers = itertools.count()


def begin(broker: SecuredBroker, name: str, topic: str) -> Producer:
    """A producer with an open transaction."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "open")
    assert producer.flush(30) == 0
    return producer


def seen(view: TransactionView) -> SeenTransaction:
    assert view.producer_epoch is not None
    return SeenTransaction(view.transactional_id, view.producer_id, view.producer_epoch, view.start_time_ms)


def test_an_open_transaction_is_shown_and_ended(
    broker: SecuredBroker, admin: Admin, new_topic: Callable[..., str]
) -> None:
    topic, name = new_topic(), f"pay-{next(_numbers)}"
    producer = begin(broker, name, topic)
    shown = page(admin, list_transactions(admin), TransactionQuery(search=name, phase=Phase.OPEN))
    (row,) = shown.rows
    assert (row.state, row.partitions, row.is_two_phase) == ("Ongoing", (f"{topic}-0",), False)
    assert row.start_time_ms is not None
    assert shown.phases["open"] >= 1
    assert search(admin, topic=topic, silent_since_ms=LATE_MS).found == ()

    terminate(admin, seen(row))
    wait_until(lambda: describe(admin, name).phase is Phase.ENDED, "the transaction has ended")
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)
    with pytest.raises(Conflict, match="already ended"):
        terminate(admin, seen(row))
    with pytest.raises(NotThere):
        describe(admin, "nobody")


def test_another_transaction_that_has_begun_since_is_not_ended(
    broker: SecuredBroker, admin: Admin, new_topic: Callable[..., str]
) -> None:
    topic, name = new_topic(), f"pay-{next(_numbers)}"
    producer = begin(broker, name, topic)
    before = describe(admin, name)
    producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, "another")
    assert producer.flush(30) == 0
    with pytest.raises(Conflict, match="another transaction since"):
        terminate(admin, seen(before))
    producer.commit_transaction(30)


def hang(broker: SecuredBroker, admin: Admin, topic: str) -> int:
    """As brokers of old accepted it: a record of a transaction that no coordinator knows. The id of its producer."""
    resource = ConfigResource(ResourceType.BROKER, "")
    setting = "transaction.partition.verification.enable"
    raise_first(
        incremental_alter_configs(admin, {resource: [ConfigChange(setting, ConfigOperation.SET, "false")]}).values()
    )
    with RawClient(broker.process.port) as client:
        producer_id = client.new_producer_id()
        batch = build_batch(
            [Record(1_000, None, b"hanging")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        request = dataclasses.replace(produce_request(topic, bytes(batch)), transactional_id="nobody")
        response = client.call(request, ProduceResponse, BEFORE_KIP_890)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    raise_first(
        incremental_alter_configs(admin, {resource: [ConfigChange(setting, ConfigOperation.DELETE, None)]}).values()
    )
    return producer_id


def test_a_hanging_transaction_is_found_and_aborted(
    broker: SecuredBroker, admin: Admin, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    producer_id = hang(broker, admin, topic)
    report = search(admin, topic=None, silent_since_ms=LATE_MS)
    (found,) = (each for each in report.found if each.topic == topic)
    assert (found.producer_id, found.partition, found.start_offset) == (producer_id, 0, RECORDS)
    assert (report.left_out, report.partitions > 1) == (0, True)
    assert search(admin, topic=topic, silent_since_ms=500).found == ()  # it may still end by itself

    what = SeenOnPartition(topic, 0, found.producer_id, found.producer_epoch, found.start_offset)
    abort_hanging(admin, what)
    assert search(admin, topic=topic, silent_since_ms=LATE_MS).found == ()
    with pytest.raises(Conflict, match="no longer has this transaction open"):
        abort_hanging(admin, what)
    with pytest.raises(NotThere):
        search(admin, topic="nowhere", silent_since_ms=LATE_MS)


def test_a_transaction_that_its_coordinator_knows_is_not_aborted_as_hanging(
    broker: SecuredBroker, admin: Admin, new_topic: Callable[..., str]
) -> None:
    topic, name = new_topic(), f"pay-{next(_numbers)}"
    producer = begin(broker, name, topic)
    view = describe(admin, name)
    assert view.producer_epoch is not None
    with pytest.raises(Conflict, match="abort it by its transactional id"):
        abort_hanging(admin, SeenOnPartition(topic, 0, view.producer_id, view.producer_epoch, RECORDS))
    producer.commit_transaction(30)


def test_a_caller_searches_what_the_broker_allows(
    broker: SecuredBroker, admin: Admin, alice: Admin, new_topic: Callable[..., str]
) -> None:
    name = f"pay-{next(_numbers)}"
    producer = begin(broker, name, new_topic())
    assert search(alice, topic=None, silent_since_ms=LATE_MS).partitions == 1
    assert search(alice, topic=HERS, silent_since_ms=LATE_MS).found == ()
    assert list_transactions(alice) == []
    with pytest.raises(Refused):
        terminate(alice, seen(describe(admin, name)))
    producer.abort_transaction(30)
