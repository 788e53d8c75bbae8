"""Time: transactions that are open for too long, ids that are idle for long, clocks that jump."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.list_transactions import ListTransactionsRequest
from kaspar.transactions.shard import EXPIRY, LOOK_AT_ONCE
from kaspar.transactions.state import TransactionState
from tests.unit.transactions.coordinator import A0, A1, DAY_MS, ID, MINUTE_MS, SECOND_MS, Coordinator, pair
from tests.unit.transactions.test_init_producer_id import exhausted, next_epoch

S = TransactionState
HOUR_MS = 60 * MINUTE_MS


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_is_aborted_when_its_timeout_is_over_and_its_producer_fenced(version: int) -> None:
    coordinator = Coordinator(version=version)
    producer = coordinator.new_producer(timeout_ms=5 * SECOND_MS)
    coordinator.add(producer, A0, version=version)
    coordinator.advance(5 * SECOND_MS - 1)
    assert coordinator.state() is S.ONGOING
    coordinator.advance(1)
    assert coordinator.state() is S.PREPARE_ABORT
    (marker,) = coordinator.write_markers()
    assert (marker.committed, marker.producer) == (False, next_epoch(producer))
    assert coordinator.add(producer, A0, version=version) == ErrorCode.PRODUCER_FENCED


def test_more_partitions_do_not_prolong_a_transaction() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.advance(MINUTE_MS - 1)
    coordinator.add(producer, A1)
    coordinator.advance(1)
    assert coordinator.state() is S.PREPARE_ABORT


def test_each_transaction_has_its_own_time() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    for _ in range(5):
        coordinator.add(producer, A0)
        coordinator.advance(40 * SECOND_MS)
        producer = coordinator.finish(producer, commit=True)
    coordinator.add(producer, A0)
    coordinator.advance(MINUTE_MS - 1)
    assert coordinator.state() is S.ONGOING
    coordinator.advance(1)
    assert coordinator.state() is S.PREPARE_ABORT


def test_a_shorter_timeout_counts_from_the_next_transaction() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer(timeout_ms=10 * MINUTE_MS)
    coordinator.add(producer, A0)
    producer = coordinator.finish(producer, commit=True)
    producer = pair(coordinator.init(producer, timeout_ms=SECOND_MS))
    coordinator.add(producer, A0)
    coordinator.advance(SECOND_MS)
    assert coordinator.state() is S.PREPARE_ABORT


def test_many_short_transactions_share_one_timer() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    timers = dict(coordinator.timers)
    for _ in range(20):
        producer = coordinator.finish(producer, commit=True)
        coordinator.advance(10)
        coordinator.add(producer, A0)
        assert coordinator.timers == timers


def test_no_transaction_ends_because_the_wall_clock_jumps() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    for jump_ms in (30 * DAY_MS, -90 * DAY_MS):
        coordinator.jump(jump_ms)
        coordinator.advance(20 * SECOND_MS)
        assert coordinator.state() is S.ONGOING
    coordinator.advance(20 * SECOND_MS)
    assert coordinator.state() is S.PREPARE_ABORT


def test_the_age_of_a_transaction_is_measured_by_the_clock_that_ends_it() -> None:
    coordinator = Coordinator()
    coordinator.add(coordinator.new_producer(), A0)
    coordinator.jump(DAY_MS)
    coordinator.advance(20 * SECOND_MS)

    def older_than(milliseconds: int) -> int:
        request = ListTransactionsRequest(state_filters=(), producer_id_filters=(), duration_filter=milliseconds)
        listed = coordinator.shard.list_transactions(request, lambda name: True, coordinator.now)
        return sum(each is not None for each in listed)

    assert older_than(20 * SECOND_MS - 1) == 1
    assert older_than(20 * SECOND_MS) == 0


def test_a_restart_does_not_prolong_a_transaction() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.advance(40 * SECOND_MS)
    coordinator.crash()
    coordinator.advance(20 * SECOND_MS - 1)
    assert coordinator.state() is S.ONGOING
    coordinator.advance(1)
    assert coordinator.state() is S.PREPARE_ABORT


def test_a_transaction_from_the_future_gets_its_whole_timeout() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.jump(-DAY_MS)
    coordinator.crash()
    coordinator.advance(MINUTE_MS - 1)
    assert coordinator.state() is S.ONGOING
    coordinator.advance(1)
    assert coordinator.state() is S.PREPARE_ABORT


def test_an_abort_that_the_log_refuses_is_tried_again() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    coordinator.advance(2 * MINUTE_MS)
    assert coordinator.state() is S.ONGOING
    coordinator.refuses = None
    coordinator.advance(SECOND_MS)
    assert coordinator.state() is S.PREPARE_ABORT


def test_an_abort_that_needs_a_producer_id_waits_until_there_is_one() -> None:
    coordinator = Coordinator()
    last = exhausted(coordinator)
    coordinator.add(last, A0)
    coordinator.has_producer_ids = False
    coordinator.advance(2 * MINUTE_MS)
    assert coordinator.state() is S.ONGOING
    coordinator.has_producer_ids = True
    coordinator.advance(SECOND_MS)
    assert coordinator.state() is S.PREPARE_ABORT


def test_an_id_that_is_idle_for_long_is_forgotten() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    producer = coordinator.finish(producer, commit=True)
    coordinator.advance(7 * DAY_MS - HOUR_MS)
    assert ID in coordinator.shard.transactions
    coordinator.advance(2 * HOUR_MS)
    assert ID not in coordinator.shard.transactions
    assert coordinator.records_of()[-1] is S.DEAD
    assert coordinator.add(producer, A0) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert pair(coordinator.init(producer)).producer_epoch == 0


def test_an_id_that_is_used_is_not_forgotten() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    for _ in range(4):
        coordinator.advance(3 * DAY_MS)
        coordinator.add(producer, A0)
        producer = coordinator.finish(producer, commit=True)
    assert ID in coordinator.shard.transactions


def test_idleness_counts_on_after_a_restart() -> None:
    coordinator = Coordinator()
    coordinator.new_producer()
    coordinator.advance(6 * DAY_MS)
    coordinator.crash()
    coordinator.advance(DAY_MS + HOUR_MS)
    assert ID not in coordinator.shard.transactions


def test_no_id_is_forgotten_because_the_wall_clock_jumps() -> None:
    coordinator = Coordinator()
    coordinator.new_producer()
    coordinator.jump(30 * DAY_MS)
    coordinator.advance(2 * HOUR_MS)
    assert ID in coordinator.shard.transactions


def test_no_id_is_forgotten_because_the_wall_clock_is_wrong_at_a_start() -> None:
    coordinator = Coordinator()
    coordinator.new_producer()
    coordinator.jump(30 * DAY_MS)
    coordinator.crash()
    coordinator.advance(2 * HOUR_MS)
    assert ID in coordinator.shard.transactions


def test_a_clock_that_is_set_right_after_a_start_is_followed() -> None:
    coordinator = Coordinator()
    coordinator.new_producer()
    coordinator.jump(30 * DAY_MS, believed=True)
    coordinator.crash()
    coordinator.jump(-30 * DAY_MS)
    coordinator.advance(2 * HOUR_MS)
    assert ID in coordinator.shard.transactions
    coordinator.advance(7 * DAY_MS)
    assert ID not in coordinator.shard.transactions


def test_an_id_from_the_future_is_forgotten_all_the_same() -> None:
    coordinator = Coordinator()
    coordinator.new_producer()
    coordinator.jump(-365 * DAY_MS)
    coordinator.crash()
    coordinator.advance(7 * DAY_MS + HOUR_MS)
    assert ID not in coordinator.shard.transactions


def test_ids_are_looked_at_in_slices() -> None:
    """What a slice costs does not depend on how many there are."""
    coordinator = Coordinator()
    for number in range(2 * LOOK_AT_ONCE + 1):
        coordinator.new_producer(transactional_id=f"id-{number}")
    slices = 0
    while slices == 0 or coordinator.timers[EXPIRY] == coordinator.now.steady_ms:
        coordinator.carry_out(coordinator.shard.timer_fired(EXPIRY, coordinator.now))
        slices += 1
    assert slices == 3


def test_very_many_idle_ids_are_forgotten_in_several_batches() -> None:
    coordinator = Coordinator()
    for number in range(1200):
        coordinator.new_producer(transactional_id=f"id-{number}")
    coordinator.advance(7 * DAY_MS + HOUR_MS)
    assert not coordinator.shard.transactions


def test_ids_that_the_log_refuses_to_forget_are_forgotten_later() -> None:
    coordinator = Coordinator()
    coordinator.new_producer()
    coordinator.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    coordinator.advance(7 * DAY_MS + HOUR_MS)
    assert ID in coordinator.shard.transactions
    coordinator.refuses = None
    coordinator.advance(SECOND_MS)
    assert ID not in coordinator.shard.transactions


def test_an_id_whose_transaction_is_not_complete_is_not_forgotten() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.end(producer, commit=True)
    coordinator.advance(30 * DAY_MS)
    assert coordinator.state() is S.PREPARE_COMMIT
    coordinator.write_markers()
    assert coordinator.state() is S.COMPLETE_COMMIT
