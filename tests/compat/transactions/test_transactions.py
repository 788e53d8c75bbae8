"""Transactions through every client: what readers see, which producers may write, and what a timeout does."""

import re

import pytest

from tests.compat.clients.api import Feature
from tests.compat.clients.stage import Stage, for_every_client
from tests.compat.clients.words import healthy, wait_for_values
from tests.compat.drivers.api import ClientError
from tests.compat.scenario import refusal

# The errors for a producer whose epoch is no longer the newest, depending on the request.
FENCED = {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}
DAY_MS = 86_400_000


@for_every_client(Feature.TRANSACTIONS)
def test_read_committed_consumers_see_only_committed_records(stage: Stage) -> None:
    topic = stage.new_topic(partitions=2)
    producer = stage.producer(stage.new_name("id"))
    producer.begin()
    producer.send(topic, "committed-1", "committed-2")
    producer.send(topic, "committed-3", partition=1)
    producer.commit()
    producer.begin()
    producer.send(topic, "aborted")
    producer.abort()
    producer.begin()
    producer.send(topic, "committed-4")
    producer.commit()
    committed = [f"committed-{number}" for number in range(1, 5)]
    group = stage.new_name("group")
    wait_for_values([stage.consumer(f"{group}-1", topic, isolation="read_committed")], committed)
    wait_for_values([stage.consumer(f"{group}-2", topic)], [*committed, "aborted"])


@for_every_client(Feature.READ_COMMITTED)
def test_every_reader_leaves_out_what_was_aborted(stage: Stage) -> None:
    topic = stage.new_topic()
    producer = stage.admin.producer(stage.new_name("id"))
    stage.callback(producer.close)
    for number in range(6):
        producer.begin()
        producer.send(topic, f"{number}")
        producer.commit() if number % 2 else producer.abort()
    stage.write(topic, "plain")
    member = stage.consumer(stage.new_name("group"), topic, isolation="read_committed")
    wait_for_values([member], ["1", "3", "5", "plain"])


@for_every_client(Feature.TRANSACTIONS)
def test_an_open_transaction_holds_back_what_comes_after_it(stage: Stage) -> None:
    topic = stage.new_topic()
    stage.write(topic, "before")
    producer = stage.producer(stage.new_name("id"))
    producer.begin()
    producer.send(topic, "inside")
    stage.write(topic, "after")
    group = stage.new_name("group")
    member = stage.consumer(f"{group}-1", topic, isolation="read_committed")
    wait_for_values([stage.consumer(f"{group}-2", topic)], ["before", "inside", "after"])
    wait_for_values([member], ["before"])
    producer.commit()
    wait_for_values([member], ["before", "inside", "after"])


@for_every_client(Feature.TRANSACTIONS)
def test_a_newer_producer_fences_the_older_and_ends_its_transaction(stage: Stage) -> None:
    topic = stage.new_topic()
    transactional_id = stage.new_name("id")
    zombie = stage.producer(transactional_id)
    zombie.begin()
    zombie.send(topic, "of the zombie")
    newer = stage.producer(transactional_id)

    def write_and_commit() -> None:
        zombie.send(topic, "of the zombie, later")
        zombie.commit()

    assert refusal(write_and_commit) in FENCED
    newer.begin()
    newer.send(topic, "of the newer")
    newer.commit()
    member = stage.consumer(stage.new_name("group"), topic, isolation="read_committed")
    wait_for_values([member], ["of the newer"])


@for_every_client(Feature.TRANSACTIONS)
def test_a_transaction_that_takes_too_long_is_aborted(stage: Stage) -> None:
    topic = stage.new_topic()
    member = stage.consumer(stage.new_name("group"), topic, isolation="read_committed")
    producer = stage.producer(stage.new_name("id"), timeout_ms=1000)
    producer.begin()
    producer.send(topic, "late")
    stage.write(topic, "after")
    wait_for_values([member], ["after"])
    refusal(producer.commit)
    assert healthy(member).values == ["after"]


@for_every_client(Feature.TRANSACTIONS)
def test_a_transaction_of_nothing_can_be_ended(stage: Stage) -> None:
    topic = stage.new_topic()
    producer = stage.producer(stage.new_name("id"))
    for end in (producer.commit, producer.abort, producer.commit):
        producer.begin()
        end()
    producer.begin()
    producer.send(topic, "at last")
    producer.commit()
    member = stage.consumer(stage.new_name("group"), topic, isolation="read_committed")
    wait_for_values([member], ["at last"])


@for_every_client(Feature.TRANSACTIONS)
def test_a_timeout_above_the_limit_of_the_broker_is_refused(stage: Stage) -> None:
    with pytest.raises(ClientError) as caught:
        stage.producer(stage.new_name("id"), timeout_ms=DAY_MS)
    assert re.search("transaction.?timeout", str(caught.value), re.IGNORECASE)  # not every client exposes the code


@for_every_client(Feature.TRANSACTIONS)
def test_a_producer_that_dies_is_succeeded_by_one_of_its_id(stage: Stage) -> None:
    topic = stage.new_topic()
    transactional_id = stage.new_name("id")
    process = stage.spare()
    doomed = process.producer(transactional_id)
    doomed.begin()
    doomed.send(topic, "kept")
    doomed.commit()
    doomed.begin()
    doomed.send(topic, "lost")
    process.kill()
    successor = stage.producer(transactional_id)
    successor.begin()
    successor.send(topic, "again")
    successor.commit()
    member = stage.consumer(stage.new_name("group"), topic, isolation="read_committed")
    wait_for_values([member], ["kept", "again"])
