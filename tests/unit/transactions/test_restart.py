"""What a coordinator that was restarted knows, at every step of a transaction, and what it does first."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.transactions.state import Transaction, TransactionState
from tests.unit.transactions.coordinator import A0, B0, COORDINATOR_EPOCH, Coordinator, pair
from tests.unit.transactions.test_init_producer_id import next_epoch

S = TransactionState


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_state_after_replay_is_the_state_before_at_every_step(version: int) -> None:
    coordinator = Coordinator(version=version)
    rules = 2 if version == 2 else 0

    def crash() -> None:
        before = dict(coordinator.shard.transactions)
        coordinator.crash()
        assert coordinator.shard.transactions == before

    producer = coordinator.new_producer()
    crash()
    for commit in (True, False):
        coordinator.add(producer, A0, version=rules)
        crash()
        coordinator.add(producer, B0, version=rules)
        crash()
        response = coordinator.end(producer, commit=commit, version=rules)
        crash()
        coordinator.write_markers()
        crash()
        producer = pair(response) if version == 2 else producer
    coordinator.add(producer, A0, version=rules)
    coordinator.init()
    crash()
    coordinator.write_markers()
    crash()
    coordinator.new_producer()
    crash()


@pytest.mark.parametrize("commit", [True, False])
def test_markers_are_asked_for_again_after_every_restart_until_they_are_reported(commit: bool) -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0, B0)
    coordinator.end(producer, commit=commit)
    asked = coordinator.markers
    assert asked[0].coordinator_epoch == COORDINATOR_EPOCH
    for _ in range(3):
        coordinator.crash()
        assert coordinator.markers == asked
    coordinator.write_markers()
    coordinator.crash()
    assert coordinator.markers == []


def test_an_end_that_did_not_get_into_the_log_asks_for_no_markers() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.refuses = ErrorCode.NOT_COORDINATOR
    assert coordinator.end(producer, commit=True).error_code == ErrorCode.NOT_COORDINATOR
    assert not coordinator.markers
    coordinator.refuses = None
    coordinator.crash()
    assert not coordinator.markers
    assert coordinator.state() is S.ONGOING


def test_a_repeated_end_is_recognised_after_a_restart() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    response = coordinator.end(producer, commit=True)
    coordinator.crash()
    coordinator.write_markers()
    coordinator.crash()
    assert coordinator.end(producer, commit=True) == response


def test_an_exhausted_producer_goes_on_with_its_new_id_after_a_restart_in_between() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    last = ProducerIdAndEpoch(producer.producer_id, 32766)
    coordinator.shard.transactions["payments"] = coordinator.transaction().initialised(last, 60_000, 0)
    coordinator.add(last, A0)
    response = pair(coordinator.end(last, commit=True))
    coordinator.crash()
    (marker,) = coordinator.markers
    assert marker.producer == next_epoch(last)
    coordinator.write_markers()
    assert coordinator.transaction().producer == response
    assert pair(coordinator.end(last, commit=True)) == response


def test_many_ids_are_loaded_each_in_its_own_state() -> None:
    coordinator = Coordinator()
    wanted: dict[str, Transaction] = {}
    for number in range(40):
        name = f"id-{number}"
        producer = coordinator.new_producer(transactional_id=name)
        if number % 4 > 0:
            coordinator.add(producer, A0, transactional_id=name)
        if number % 4 > 1:
            coordinator.end(producer, commit=number % 8 < 4, transactional_id=name)
        wanted[name] = coordinator.transaction(name)
    coordinator.crash()
    assert coordinator.shard.transactions == wanted
    assert len(coordinator.markers) == 20
