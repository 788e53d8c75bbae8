"""Prepared transactions on KIP-939's wire form: they wait for their owner's decision."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.transactions.shard import PREPARED_AFTER_LOADING_MS
from kaspar.transactions.state import NO_TIMEOUT_MS, TransactionState
from tests.unit.transactions.coordinator import (
    A0,
    B0,
    DAY_MS,
    ID,
    MINUTE_MS,
    NOBODY,
    Coordinator,
    ongoing_pair,
    pair,
)
from tests.unit.transactions.test_init_producer_id import exhausted, next_epoch

S = TransactionState
NONE = ErrorCode.NONE
FENCED = ErrorCode.PRODUCER_FENCED


def prepares_as(producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
    """The pair that ends what this one has written: between them is that of the fence."""
    return next_epoch(next_epoch(producer))


def prepared(coordinator: Coordinator) -> tuple[ProducerIdAndEpoch, ProducerIdAndEpoch]:
    """A transaction that its producer has prepared: the pair of its records, and the one that can end it."""
    producer = coordinator.new_producer()
    assert coordinator.add(producer, A0, B0) == NONE
    return producer, pair(coordinator.prepare(producer))


@pytest.mark.parametrize("names_itself", [True, False])
def test_prepare_raises_the_epoch_and_returns_both_pairs(names_itself: bool) -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    response = coordinator.prepare(producer if names_itself else NOBODY)
    assert pair(response) == prepares_as(producer)
    assert ongoing_pair(response) == producer
    assert coordinator.state() is S.PREPARED


def test_both_pairs_are_in_the_log_as_the_kip_lays_them_out() -> None:
    coordinator = Coordinator()
    producer, next_pair = prepared(coordinator)
    record = coordinator.shard.decode(*coordinator.log[-1])
    assert record is not None
    value = record.value
    assert value.transaction_status == 1, "Ongoing"  # type: ignore[union-attr]
    assert (value.producer_id, value.producer_epoch) == producer  # type: ignore[union-attr]
    assert (value.next_producer_id, value.next_producer_epoch) == next_pair  # type: ignore[union-attr]
    assert value.transaction_timeout_ms == NO_TIMEOUT_MS  # type: ignore[union-attr]


def test_its_timeout_is_lifted() -> None:
    coordinator = Coordinator()
    prepared(coordinator)
    coordinator.advance(6 * DAY_MS)
    assert coordinator.state() is S.PREPARED


def test_one_that_was_never_prepared_times_out_as_always() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.advance(MINUTE_MS)
    assert coordinator.state() is S.PREPARE_ABORT


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("commit", [True, False])
def test_the_holder_of_the_pair_ends_it(commit: bool, restart: bool) -> None:
    coordinator = Coordinator()
    _, next_pair = prepared(coordinator)
    if restart:
        coordinator.crash()
        coordinator.advance(3 * DAY_MS)
        coordinator.crash()
    response = pair(coordinator.end(next_pair, commit=commit))
    assert response == next_epoch(next_pair)
    (marker,) = coordinator.write_markers()
    assert marker.committed is commit
    assert marker.partitions == frozenset({A0, B0})
    assert marker.producer == response, "above the epoch of its fence"
    assert coordinator.state() is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    assert coordinator.add(response, A0) == NONE


def test_the_old_epoch_is_fenced_everywhere() -> None:
    coordinator = Coordinator()
    producer, _ = prepared(coordinator)
    assert coordinator.add(producer, A0) == FENCED
    assert coordinator.add(producer, TopicOfItsOwn) == FENCED
    assert coordinator.verify(producer, A0) == {A0: FENCED}
    for version in (0, 2):
        for commit in (True, False):
            assert coordinator.end(producer, commit=commit, version=version).error_code == FENCED
    assert coordinator.init(producer).error_code == FENCED
    assert coordinator.state() is S.PREPARED


TopicOfItsOwn = B0._replace(topic="c")


def test_its_partitions_get_a_fence_with_an_epoch_between_that_of_the_records_and_that_of_the_owner() -> None:
    coordinator = Coordinator()
    producer, next_pair = prepared(coordinator)
    (fence,) = coordinator.fences
    assert fence.producer == next_epoch(producer)
    assert next_pair == next_epoch(fence.producer)
    assert fence.partitions == frozenset({A0, B0})
    assert fence.coordinator_epoch == coordinator.coordinator_epoch


def test_a_coordinator_that_is_loaded_writes_the_fences_of_what_is_prepared_again() -> None:
    coordinator = Coordinator()
    producer, next_pair = prepared(coordinator)
    coordinator.coordinator_epoch += 1
    coordinator.crash()
    (fence,) = coordinator.fences
    assert (fence.producer, fence.coordinator_epoch) == (next_epoch(producer), coordinator.coordinator_epoch)
    coordinator.end(next_pair, commit=True)
    coordinator.crash()
    assert not coordinator.fences, "from now on its markers do"


def test_who_takes_it_over_does_not_change_the_fence() -> None:
    coordinator = Coordinator()
    prepared(coordinator)
    coordinator.prepare()
    first, second = coordinator.fences
    assert first == second


def test_nothing_is_added_to_it() -> None:
    coordinator = Coordinator()
    _, next_pair = prepared(coordinator)
    assert coordinator.add(next_pair, A0) == ErrorCode.INVALID_TXN_STATE
    assert coordinator.verify(next_pair, A0) == {A0: ErrorCode.INVALID_TXN_STATE}


def test_a_repeated_end_gets_the_same_response_and_the_opposite_end_is_refused() -> None:
    coordinator = Coordinator()
    _, next_pair = prepared(coordinator)
    response = coordinator.end(next_pair, commit=True)
    assert coordinator.end(next_pair, commit=True).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator.write_markers()
    assert coordinator.end(next_pair, commit=True) == response
    assert coordinator.end(next_pair, commit=False).error_code == ErrorCode.INVALID_TXN_STATE
    coordinator.add(pair(response), A0)
    assert coordinator.end(next_pair, commit=True).error_code == FENCED, "delayed, it does not end the next one"


def test_a_repeated_prepare_after_a_lost_response_gets_the_same_pair() -> None:
    coordinator = Coordinator()
    producer, next_pair = prepared(coordinator)
    coordinator.crash()
    response = coordinator.prepare(producer)
    assert (pair(response), ongoing_pair(response)) == (next_pair, producer)


def test_a_takeover_fences_the_previous_holder_of_the_pair() -> None:
    coordinator = Coordinator()
    producer, next_pair = prepared(coordinator)
    response = coordinator.prepare()
    assert pair(response) == next_epoch(next_pair)
    assert ongoing_pair(response) == producer
    assert coordinator.end(next_pair, commit=True).error_code == FENCED
    assert coordinator.prepare(producer).error_code == FENCED
    coordinator.finish(pair(response), commit=True)


def test_a_transaction_that_was_aborted_meanwhile_is_not_found_prepared() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.advance(MINUTE_MS)
    coordinator.write_markers()
    response = coordinator.prepare()
    assert response.error_code == NONE
    assert ongoing_pair(response) == ProducerIdAndEpoch(-1, -1)


def test_a_producer_that_does_not_ask_to_keep_it_aborts_it() -> None:
    coordinator = Coordinator()
    _, next_pair = prepared(coordinator)
    assert coordinator.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    (marker,) = coordinator.write_markers()
    assert (marker.committed, marker.producer) == (False, next_epoch(next_pair))
    assert coordinator.end(next_pair, commit=True).error_code == ErrorCode.INVALID_TXN_STATE
    assert pair(coordinator.init()).producer_epoch > next_pair.producer_epoch + 1


def test_one_whose_owner_never_decides_is_aborted_in_the_end() -> None:
    coordinator = Coordinator()
    prepared(coordinator)
    coordinator.advance(3 * DAY_MS)
    coordinator.crash()
    coordinator.prepare()
    coordinator.advance(4 * DAY_MS - 1)
    assert coordinator.state() is S.PREPARED
    coordinator.advance(1)
    assert coordinator.state() is S.PREPARE_ABORT


def test_those_that_wait_for_their_owners_are_known() -> None:
    coordinator = Coordinator()
    _, next_pair = prepared(coordinator)
    other = coordinator.new_producer(transactional_id="other")
    coordinator.add(other, A0, transactional_id="other")
    assert set(coordinator.shard.waiting_for_their_owners) == {ID}
    coordinator.crash()
    assert set(coordinator.shard.waiting_for_their_owners) == {ID}
    coordinator.end(next_pair, commit=True)
    assert not coordinator.shard.waiting_for_their_owners


def test_the_next_transaction_of_a_new_producer_has_a_timeout_again() -> None:
    coordinator = Coordinator()
    _, next_pair = prepared(coordinator)
    coordinator.finish(next_pair, commit=True)
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.advance(MINUTE_MS)
    assert coordinator.state() is S.PREPARE_ABORT


# -- clients that follow the KIP to the letter -----------------------------------------------------------------------


def test_a_client_that_says_so_at_the_start_has_no_timeout() -> None:
    coordinator = Coordinator()
    producer = pair(coordinator.init(enable_2pc=True, timeout_ms=NO_TIMEOUT_MS))
    coordinator.add(producer, A0)
    coordinator.advance(5 * DAY_MS)
    assert coordinator.state() is S.ONGOING
    assert set(coordinator.shard.waiting_for_their_owners) == {ID}
    coordinator.advance(2 * DAY_MS)
    assert coordinator.state() is S.PREPARE_ABORT


@pytest.mark.parametrize("commit", [True, False])
def test_it_finds_its_transaction_again_after_a_crash_and_ends_it(commit: bool) -> None:
    coordinator = Coordinator()
    producer = pair(coordinator.init(enable_2pc=True))
    coordinator.add(producer, A0)
    coordinator.crash()
    response = coordinator.init(enable_2pc=True, keep=True)
    assert ongoing_pair(response) == producer, "what its database has noted"
    following = coordinator.finish(pair(response), commit=commit)
    coordinator.add(following, A0)
    coordinator.advance(DAY_MS)
    assert coordinator.state() is S.ONGOING, "it takes part in two-phase commits until it says otherwise"


def test_a_producer_without_two_phase_commit_keeps_its_timeout() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    response = coordinator.init(keep=True)
    assert ongoing_pair(response) == producer
    assert not coordinator.shard.waiting_for_their_owners
    coordinator.advance(MINUTE_MS)
    assert coordinator.state() is S.PREPARE_ABORT


def test_a_longer_timeout_than_allowed_is_refused_without_two_phase_commit() -> None:
    assert Coordinator().init(timeout_ms=NO_TIMEOUT_MS).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


# -- epochs that run out ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [32765, 32766])
def test_the_pair_that_ends_it_gets_a_new_id_when_epochs_run_out(epoch: int) -> None:
    coordinator = Coordinator()
    last = exhausted(coordinator, epoch=epoch)
    coordinator.add(last, A0)
    next_pair = pair(coordinator.prepare(last))
    assert next_pair.producer_id != last.producer_id
    assert next_pair.producer_epoch == 0
    (fence,) = coordinator.fences
    assert fence.producer == next_epoch(last)
    coordinator.crash()
    assert pair(coordinator.prepare(last)) == next_pair, "repeated"
    response = pair(coordinator.end(next_pair, commit=True))
    (marker,) = coordinator.write_markers()
    assert marker.producer == ProducerIdAndEpoch(last.producer_id, 32767)
    assert response == next_epoch(next_pair)
    assert pair(coordinator.end(next_pair, commit=True)) == response, "repeated"


def test_epochs_may_run_out_when_it_ends() -> None:
    coordinator = Coordinator()
    before = exhausted(coordinator, epoch=32764)
    coordinator.add(before, A0)
    next_pair = pair(coordinator.prepare(before))
    assert next_pair == prepares_as(before)
    response = pair(coordinator.end(next_pair, commit=True))
    (marker,) = coordinator.write_markers()
    assert marker.producer == ProducerIdAndEpoch(before.producer_id, 32767)
    assert response.producer_id != before.producer_id
    assert response.producer_epoch == 0
    coordinator.crash()
    assert pair(coordinator.end(next_pair, commit=True)) == response, "repeated"


def test_by_the_older_rules_it_ends_too() -> None:
    coordinator = Coordinator(version=1)
    _, next_pair = prepared(coordinator)
    coordinator.end(next_pair, commit=True, version=0)
    (marker,) = coordinator.write_markers()
    assert marker.producer == next_pair, "above the epoch of its fence"
    assert coordinator.transaction().producer == next_pair


def test_one_that_waits_is_not_aborted_because_the_clock_is_wrong_at_a_start() -> None:
    """Neither by a jump that is not believed, nor by one that is and is set right within the hour."""
    for believed in (False, True):
        coordinator = Coordinator()
        _, next_pair = prepared(coordinator)
        coordinator.jump(20 * DAY_MS, believed=believed)
        coordinator.crash()
        coordinator.advance(MINUTE_MS)
        coordinator.jump(-20 * DAY_MS)
        coordinator.advance(6 * DAY_MS)
        assert coordinator.end(next_pair, commit=True).error_code == ErrorCode.NONE


def test_its_age_counts_while_no_broker_runs_but_its_owner_has_an_hour_after_the_start() -> None:
    coordinator = Coordinator()
    _, next_pair = prepared(coordinator)
    coordinator.jump(20 * DAY_MS, believed=True)
    coordinator.crash()
    coordinator.advance(PREPARED_AFTER_LOADING_MS - 1)
    assert coordinator.state() is S.PREPARED
    coordinator.advance(1)
    assert coordinator.state() is S.PREPARE_ABORT
    assert coordinator.end(next_pair, commit=True).error_code != ErrorCode.NONE
