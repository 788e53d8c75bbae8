"""DescribeTransactions and ListTransactions, in Kafka's words."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.protocol.messages.list_transactions import ListTransactionsRequest
from kaspar.transactions.listing import unknown_states
from tests.unit.transactions.coordinator import A0, A1, B0, MINUTE_MS, Coordinator


def everything(transactional_id: str) -> bool:
    return True


def names(coordinator: Coordinator, request: ListTransactionsRequest) -> set[str]:
    found = coordinator.shard.list_transactions(request, everything, coordinator.now)
    return {each.transactional_id for each in found if each is not None}


def several() -> Coordinator:
    coordinator = Coordinator()
    coordinator.new_producer(transactional_id="empty")
    for name in ("open", "kept", "ending", "done"):
        producer = coordinator.new_producer(transactional_id=name)
        coordinator.add(producer, A0, transactional_id=name)
        if name == "kept":
            coordinator.prepare(producer, transactional_id=name)
        if name in ("ending", "done"):
            coordinator.end(producer, commit=True, transactional_id=name)
        if name == "done":
            coordinator.report(coordinator.markers.pop())
    return coordinator


def test_a_transaction_is_described() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer(timeout_ms=1234)
    coordinator.add(producer, A1, B0, A0)
    described = coordinator.shard.describe("payments", coordinator.now)
    assert described.error_code == ErrorCode.NONE
    assert described.transaction_state == "Ongoing"
    assert (described.producer_id, described.producer_epoch) == producer
    assert described.transaction_timeout_ms == 1234
    assert described.transaction_start_time_ms == coordinator.now.wall_ms
    assert [(topic.topic, topic.partitions) for topic in described.topics] == [("a", (0, 1)), ("b", (0,))]


def test_an_id_that_is_not_there_is_not_described() -> None:
    coordinator = Coordinator()
    with pytest.raises(Refused) as unknown:
        coordinator.shard.describe("unknown", coordinator.now)
    assert unknown.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    with pytest.raises(Refused) as empty:
        coordinator.shard.describe("", coordinator.now)
    assert empty.value.code is ErrorCode.INVALID_REQUEST


def test_all_are_listed_with_their_states() -> None:
    coordinator = several()
    listed = coordinator.shard.list_transactions(ListTransactionsRequest(), everything, coordinator.now)
    assert {each.transactional_id: each.transaction_state for each in listed if each is not None} == {
        "empty": "Empty",
        "open": "Ongoing",
        "kept": "Ongoing",
        "ending": "PrepareCommit",
        "done": "CompleteCommit",
    }


def test_they_are_listed_by_state() -> None:
    request = ListTransactionsRequest(state_filters=("Ongoing", "Empty", "Nonsense"))
    assert names(several(), request) == {"open", "kept", "empty"}
    assert unknown_states(request) == ("Nonsense",)


def test_every_state_of_kafka_may_be_asked_for() -> None:
    in_kafka = "Empty Ongoing PrepareCommit PrepareAbort CompleteCommit CompleteAbort Dead PrepareEpochFence"
    states = tuple(in_kafka.split())
    assert unknown_states(ListTransactionsRequest(state_filters=states)) == ()
    assert unknown_states(ListTransactionsRequest(state_filters=("Prepared",))) == ("Prepared",)


def test_they_are_listed_by_producer() -> None:
    coordinator = several()
    producer_id = coordinator.transaction("open").producer.producer_id
    assert names(coordinator, ListTransactionsRequest(producer_id_filters=(producer_id, 5))) == {"open"}


def test_they_are_listed_by_age() -> None:
    coordinator = Coordinator()
    old = coordinator.new_producer(transactional_id="old", timeout_ms=10 * MINUTE_MS)
    coordinator.add(old, A0, transactional_id="old")
    coordinator.advance(MINUTE_MS)
    young = coordinator.new_producer(transactional_id="young", timeout_ms=10 * MINUTE_MS)
    coordinator.add(young, A0, transactional_id="young")
    coordinator.advance(1)
    assert names(coordinator, ListTransactionsRequest(duration_filter=MINUTE_MS)) == {"old"}
    assert names(coordinator, ListTransactionsRequest(duration_filter=MINUTE_MS + 1)) == set()
    assert names(coordinator, ListTransactionsRequest(duration_filter=-1)) == {"old", "young"}


def test_they_are_listed_by_a_pattern_of_their_ids() -> None:
    coordinator = several()
    listed = coordinator.shard.list_transactions(
        ListTransactionsRequest(), lambda name: name.startswith("e"), coordinator.now
    )
    assert {each.transactional_id for each in listed if each is not None} == {"empty", "ending"}
