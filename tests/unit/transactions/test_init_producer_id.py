"""InitProducerId of transactional producers: epochs, fencing, and what happens to the transaction before."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.transactions.settings import CoordinatorSettings
from kaspar.transactions.state import TransactionState
from tests.unit.transactions.coordinator import A0, DAY_MS, ID, MINUTE_MS, SETTINGS, Coordinator, pair

EMPTY = TransactionState.EMPTY
PREPARE_ABORT = TransactionState.PREPARE_ABORT
COMPLETE_ABORT = TransactionState.COMPLETE_ABORT


def next_epoch(producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(producer.producer_id, producer.producer_epoch + 1)


def exhausted(coordinator: Coordinator, *, epoch: int = 32766) -> ProducerIdAndEpoch:
    """The id's producer, which has come to that epoch."""
    producer = coordinator.new_producer()
    transaction = coordinator.transaction()
    at_last = ProducerIdAndEpoch(producer.producer_id, epoch)
    coordinator.shard.transactions[ID] = transaction.initialised(at_last, MINUTE_MS, coordinator.now.wall_ms)
    return at_last


def test_a_new_id_gets_a_producer_id_of_its_own_at_epoch_0() -> None:
    coordinator = Coordinator()
    first = pair(coordinator.init(transactional_id="one"))
    second = pair(coordinator.init(transactional_id="two"))
    assert first.producer_epoch == second.producer_epoch == 0
    assert first.producer_id != second.producer_id
    assert coordinator.records_of("one") == [EMPTY]


def test_an_expired_id_starts_over_for_a_producer_with_an_old_pair() -> None:
    coordinator = Coordinator()
    assert pair(coordinator.init(ProducerIdAndEpoch(7, 4))).producer_epoch == 0


def test_each_new_producer_of_an_id_raises_the_epoch() -> None:
    coordinator = Coordinator()
    first = coordinator.new_producer()
    assert coordinator.new_producer() == next_epoch(first)


@pytest.mark.parametrize("timeout_ms", [0, -1, 15 * MINUTE_MS + 1])
def test_a_timeout_that_is_not_allowed_is_refused(timeout_ms: int) -> None:
    coordinator = Coordinator()
    assert coordinator.init(timeout_ms=timeout_ms).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert not coordinator.log


def test_an_empty_id_is_refused() -> None:
    assert Coordinator().init(transactional_id="").error_code == ErrorCode.INVALID_REQUEST


def test_without_a_producer_id_at_hand_the_client_has_to_come_back() -> None:
    coordinator = Coordinator(has_producer_ids=False)
    assert coordinator.init().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.has_producer_ids = True
    coordinator.new_producer()


def test_a_producer_goes_on_under_the_next_epoch() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    assert pair(coordinator.init(producer)) == next_epoch(producer)


def test_a_producer_that_missed_the_response_gets_it_again() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    response = pair(coordinator.init(producer))
    records = len(coordinator.log)
    assert pair(coordinator.init(producer)) == response
    assert len(coordinator.log) == records


def test_a_producer_that_missed_the_response_is_fenced_once_another_has_initialized() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.init(producer)
    coordinator.new_producer()
    assert coordinator.init(producer).error_code == ErrorCode.PRODUCER_FENCED


def test_a_restarted_coordinator_fences_a_producer_that_missed_the_response() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.init(producer)
    coordinator.crash()
    assert coordinator.init(producer).error_code == ErrorCode.PRODUCER_FENCED


def test_a_response_that_was_never_sent_is_not_remembered() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert coordinator.init(producer).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    coordinator.refuses = None
    assert coordinator.new_producer() == next_epoch(producer)
    assert coordinator.init(producer).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("epoch_off", [-1, 1])
def test_a_producer_with_another_epoch_is_fenced(epoch_off: int) -> None:
    coordinator = Coordinator()
    coordinator.new_producer()
    coordinator.new_producer()
    producer = coordinator.new_producer()
    stranger = producer._replace(producer_epoch=producer.producer_epoch + epoch_off)
    assert coordinator.init(stranger).error_code == ErrorCode.PRODUCER_FENCED


def test_a_producer_with_another_id_is_fenced() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    stranger = producer._replace(producer_id=producer.producer_id + 1)
    assert coordinator.init(stranger).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_open_transaction_is_aborted_before_a_new_producer_begins(version: int) -> None:
    coordinator = Coordinator(version=version)
    old = coordinator.new_producer()
    coordinator.add(old, A0)
    assert coordinator.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.state() is PREPARE_ABORT
    assert coordinator.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    (marker,) = coordinator.write_markers()
    assert (marker.committed, marker.partitions) == (False, frozenset({A0}))
    assert marker.producer == next_epoch(old)
    assert pair(coordinator.init()) == next_epoch(next_epoch(old))
    assert coordinator.add(old, A0) == ErrorCode.PRODUCER_FENCED


def test_a_fenced_producer_does_not_abort_what_a_newer_one_has_open() -> None:
    coordinator = Coordinator()
    old = coordinator.new_producer()
    new = coordinator.new_producer()
    coordinator.add(new, A0)
    assert coordinator.init(old).error_code == ErrorCode.PRODUCER_FENCED
    assert coordinator.state() is TransactionState.ONGOING
    assert coordinator.end(new, commit=True).error_code == ErrorCode.NONE


def test_an_abort_that_the_log_refuses_changes_nothing() -> None:
    coordinator = Coordinator()
    old = coordinator.new_producer()
    coordinator.add(old, A0)
    coordinator.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert coordinator.init().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not coordinator.markers
    coordinator.refuses = None
    coordinator.init()
    (marker,) = coordinator.write_markers()
    assert marker.producer == next_epoch(old), "the epoch is raised once"


def test_a_new_producer_of_an_id_without_epochs_left_gets_a_new_producer_id() -> None:
    coordinator = Coordinator()
    last = exhausted(coordinator)
    new = coordinator.new_producer()
    assert new.producer_id != last.producer_id
    assert new.producer_epoch == 0
    assert coordinator.transaction().previous_producer_id == last.producer_id


def test_a_producer_without_epochs_left_goes_on_under_a_new_id_and_may_ask_twice() -> None:
    coordinator = Coordinator()
    last = exhausted(coordinator)
    new = pair(coordinator.init(last))
    assert new.producer_id != last.producer_id
    assert pair(coordinator.init(last)) == new


@pytest.mark.parametrize("version", [0, 2])
def test_the_transaction_of_a_producer_without_epochs_left_can_be_fenced(version: int) -> None:
    coordinator = Coordinator(version=version)
    last = exhausted(coordinator)
    coordinator.add(last, A0)
    assert coordinator.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    (marker,) = coordinator.write_markers()
    assert marker.producer == ProducerIdAndEpoch(last.producer_id, 32767)
    new = coordinator.new_producer()
    assert new.producer_id != last.producer_id
    assert coordinator.init(last).error_code == ErrorCode.PRODUCER_FENCED


def test_prepared_transactions_have_to_be_allowed() -> None:
    forbidden = CoordinatorSettings(
        SETTINGS.max_timeout_ms,
        SETTINGS.expiration_ms,
        SETTINGS.expiry_interval_ms,
        two_phase_commit=False,
        prepared_max_age_ms=DAY_MS,
    )
    coordinator = Coordinator(settings=forbidden)
    for enable_2pc, keep in ((True, False), (True, True), (False, True)):
        response = coordinator.init(enable_2pc=enable_2pc, keep=keep)
        assert response.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
