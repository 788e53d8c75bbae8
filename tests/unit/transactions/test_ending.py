"""EndTxn by the rules of transactions v2 (KIP-890) and by the older ones."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.transactions.state import TransactionState
from tests.unit.transactions.coordinator import A0, A1, B0, MINUTE_MS, Coordinator, pair
from tests.unit.transactions.test_init_producer_id import exhausted, next_epoch

S = TransactionState
NONE = ErrorCode.NONE
FENCED = ErrorCode.PRODUCER_FENCED
INVALID = ErrorCode.INVALID_TXN_STATE
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_in_two_steps_with_markers_in_between(commit: bool, version: int) -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0, B0)
    coordinator.add(producer, A1)
    assert coordinator.end(producer, commit=commit, version=version).error_code == NONE
    (marker,) = coordinator.write_markers()
    assert marker.partitions == frozenset({A0, A1, B0})
    assert marker.committed is commit
    prepared, complete = (S.PREPARE_COMMIT, S.COMPLETE_COMMIT) if commit else (S.PREPARE_ABORT, S.COMPLETE_ABORT)
    assert coordinator.records_of() == [S.EMPTY, S.ONGOING, S.ONGOING, prepared, complete]
    assert coordinator.completed == ["payments"]


def test_under_v2_every_end_raises_the_epoch_of_markers_and_client() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    for commit in (True, False, True):
        coordinator.add(producer, A0)
        response = pair(coordinator.end(producer, commit=commit))
        (marker,) = coordinator.write_markers()
        assert response == marker.producer == next_epoch(producer)
        assert marker.transaction_version == 2
        producer = response


def test_by_the_older_rules_the_epoch_stays() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0, version=0)
    response = coordinator.end(producer, commit=True, version=0)
    assert (response.producer_id, response.producer_epoch) == (-1, -1)
    (marker,) = coordinator.write_markers()
    assert marker.producer == producer
    assert marker.transaction_version == 0
    assert coordinator.add(producer, A0, version=0) == NONE


# -- KIP-890 ---------------------------------------------------------------------------------------------------------


def test_a_delayed_end_of_one_transaction_never_ends_the_next() -> None:
    coordinator = Coordinator()
    first = coordinator.new_producer()
    coordinator.add(first, A0)
    second = coordinator.finish(first, commit=True)
    coordinator.add(second, A0)
    for commit in (True, False):
        assert coordinator.end(first, commit=commit).error_code == FENCED
    assert coordinator.state() is S.ONGOING
    assert not coordinator.markers


def test_an_end_of_the_transaction_before_the_last_is_not_taken_for_a_repetition() -> None:
    coordinator = Coordinator()
    first = coordinator.new_producer()
    coordinator.add(first, A0)
    second = coordinator.finish(first, commit=True)
    coordinator.add(second, A0)
    coordinator.finish(second, commit=True)
    assert coordinator.end(second, commit=True).error_code == NONE
    assert coordinator.end(first, commit=True).error_code == FENCED


def test_a_repeated_end_is_recognised_by_its_epoch_and_gets_the_same_response() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    response = coordinator.end(producer, commit=True)
    coordinator.write_markers()
    records = len(coordinator.log)
    assert coordinator.end(producer, commit=True) == response
    assert len(coordinator.log) == records


def test_a_repeated_end_waits_while_the_transaction_is_being_completed() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.end(producer, commit=True)
    assert coordinator.end(producer, commit=True).error_code == CONCURRENT


def test_a_producer_cannot_abort_what_it_has_committed() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.finish(producer, commit=True)
    assert coordinator.end(producer, commit=False).error_code == INVALID
    assert coordinator.state() is S.COMPLETE_COMMIT


@pytest.mark.parametrize("version", [0, 2])
def test_a_commit_that_races_with_the_abort_of_a_timeout_commits_nothing(version: int) -> None:
    coordinator = Coordinator(version=version)
    producer = coordinator.new_producer()
    coordinator.add(producer, A0, version=version)
    coordinator.advance(MINUTE_MS)
    assert coordinator.state() is S.PREPARE_ABORT
    during = coordinator.end(producer, commit=True, version=version).error_code
    assert during == (CONCURRENT if version == 2 else FENCED)
    (marker,) = coordinator.write_markers()
    assert not marker.committed
    after = coordinator.end(producer, commit=True, version=version).error_code
    assert after == (INVALID if version == 2 else FENCED)
    assert coordinator.add(producer, A0, version=version) == FENCED


def test_an_abort_that_races_with_the_abort_of_a_timeout_gets_the_new_epoch() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.advance(MINUTE_MS)
    coordinator.write_markers()
    again = pair(coordinator.end(producer, commit=False))
    assert again == next_epoch(producer)
    assert coordinator.add(again, A0) == NONE


def test_an_abort_of_nothing_does_not_fence_its_producer() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    for before in ("nothing", "an abort", "a commit"):
        response = pair(coordinator.end(producer, commit=False))
        assert response == next_epoch(producer), before
        (marker,) = coordinator.write_markers()
        assert not marker.partitions
        producer = response
        assert coordinator.add(producer, A0) == NONE
        producer = coordinator.finish(producer, commit=before == "an abort")


def test_an_abort_of_nothing_waits_for_the_transaction_before() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    following = pair(coordinator.end(producer, commit=True))
    assert coordinator.end(following, commit=False).error_code == CONCURRENT
    coordinator.write_markers()
    assert pair(coordinator.end(following, commit=False)) == next_epoch(following)


@pytest.mark.parametrize(
    ("state", "repeated", "commit", "code"),
    [
        (S.EMPTY, True, False, FENCED),
        (S.EMPTY, False, False, NONE),
        (S.EMPTY, True, True, FENCED),
        (S.EMPTY, False, True, INVALID),
        (S.COMPLETE_ABORT, True, False, NONE),
        (S.COMPLETE_ABORT, False, False, NONE),
        (S.COMPLETE_ABORT, True, True, INVALID),
        (S.COMPLETE_ABORT, False, True, INVALID),
        (S.COMPLETE_COMMIT, True, False, INVALID),
        (S.COMPLETE_COMMIT, False, False, NONE),
        (S.COMPLETE_COMMIT, True, True, NONE),
        (S.COMPLETE_COMMIT, False, True, INVALID),
    ],
)
def test_v2_responses_to_an_end_and_a_repeated_end(
    state: TransactionState, repeated: bool, commit: bool, code: ErrorCode
) -> None:
    coordinator = Coordinator()
    before = coordinator.new_producer()
    if state is S.EMPTY:
        now = coordinator.new_producer()
    else:
        coordinator.add(before, A0)
        now = coordinator.finish(before, commit=state is S.COMPLETE_COMMIT)
    assert coordinator.state() is state
    assert coordinator.end(before if repeated else now, commit=commit).error_code == code


@pytest.mark.parametrize(
    ("ended", "commit", "code"),
    [(None, True, INVALID), (None, False, INVALID), (True, True, NONE), (True, False, INVALID),
     (False, True, INVALID), (False, False, NONE)],
)  # fmt: skip
def test_v1_responses_to_an_end_outside_a_transaction(ended: bool | None, commit: bool, code: ErrorCode) -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    if ended is not None:
        coordinator.add(producer, A0, version=0)
        coordinator.finish(producer, commit=ended, version=0)
    assert coordinator.end(producer, commit=commit, version=0).error_code == code


@pytest.mark.parametrize("version", [0, 2])
def test_a_producer_that_does_not_own_the_id_ends_nothing(version: int) -> None:
    coordinator = Coordinator()
    assert (
        coordinator.end(ProducerIdAndEpoch(1, 0), commit=True, version=version).error_code
        == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    )
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    stranger = producer._replace(producer_id=1)
    response = coordinator.end(stranger, commit=True, version=version)
    assert response.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert coordinator.end(next_epoch(producer), commit=True, version=version).error_code == FENCED
    response = coordinator.end(producer, commit=True, version=version, transactional_id="")
    assert response.error_code == ErrorCode.INVALID_REQUEST


# -- epochs that run out ---------------------------------------------------------------------------------------------


def test_a_producer_without_epochs_left_gets_a_new_id_at_the_end_of_its_transaction() -> None:
    coordinator = Coordinator()
    last = exhausted(coordinator)
    coordinator.add(last, A0)
    response = pair(coordinator.end(last, commit=True))
    (marker,) = coordinator.markers
    assert marker.producer == ProducerIdAndEpoch(last.producer_id, 32767)
    assert response.producer_id != last.producer_id
    assert response.producer_epoch == 0
    assert coordinator.add(response, A0) == CONCURRENT, "not fenced, although the new id is not in its place yet"
    coordinator.write_markers()
    assert coordinator.transaction().producer == response
    assert pair(coordinator.end(last, commit=True)) == response, "repeated"
    assert coordinator.add(response, A0) == NONE
    assert coordinator.end(last, commit=True).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_producer_without_epochs_left_that_times_out_can_go_on() -> None:
    coordinator = Coordinator()
    last = exhausted(coordinator)
    coordinator.add(last, A0)
    coordinator.advance(MINUTE_MS)
    coordinator.write_markers()
    response = pair(coordinator.end(last, commit=False))
    assert response.producer_epoch == 0
    assert coordinator.add(response, A0) == NONE


def test_without_a_new_id_at_hand_nothing_is_ended() -> None:
    coordinator = Coordinator()
    last = exhausted(coordinator)
    coordinator.add(last, A0)
    coordinator.has_producer_ids = False
    assert coordinator.end(last, commit=True).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert coordinator.state() is S.ONGOING
    coordinator.has_producer_ids = True
    coordinator.finish(last, commit=True)


# -- markers ---------------------------------------------------------------------------------------------------------


def test_a_late_report_of_markers_completes_no_other_transaction() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    following = pair(coordinator.end(producer, commit=True))
    (first,) = coordinator.write_markers()
    coordinator.add(following, A0)
    coordinator.end(following, commit=False)
    coordinator.report(first)
    assert coordinator.state() is S.PREPARE_ABORT
    coordinator.write_markers()
    coordinator.report(first)
    assert coordinator.state() is S.COMPLETE_ABORT


def test_a_completion_that_the_log_refuses_is_tried_again() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    coordinator.end(producer, commit=True)
    coordinator.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE
    coordinator.write_markers()
    coordinator.advance(10_000)
    assert coordinator.state() is S.PREPARE_COMMIT
    coordinator.refuses = None
    coordinator.advance(1_000)
    assert coordinator.state() is S.COMPLETE_COMMIT
