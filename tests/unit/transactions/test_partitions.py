"""Which partitions belong to a transaction: which producers may add them, and what a verifying leader gets."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.transactions.state import TransactionState
from tests.unit.transactions.coordinator import A0, A1, B0, Coordinator
from tests.unit.transactions.test_init_producer_id import next_epoch

NONE = ErrorCode.NONE
FENCED = ErrorCode.PRODUCER_FENCED
STRANGER = ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_the_first_partition_opens_the_transaction() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    assert coordinator.transaction().start_ms == -1
    coordinator.advance(100)
    assert coordinator.add(producer, A0) == NONE
    started_ms = coordinator.now.wall_ms
    coordinator.advance(100)
    assert coordinator.add(producer, A1, B0) == NONE
    transaction = coordinator.transaction()
    assert transaction.state is TransactionState.ONGOING
    assert transaction.partitions == frozenset({A0, A1, B0})
    assert transaction.start_ms == started_ms


def test_partitions_that_belong_to_it_already_cost_no_record() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0, A1)
    records = len(coordinator.log)
    assert coordinator.add(producer, A1) == NONE
    assert len(coordinator.log) == records


def test_only_its_producer_adds_to_a_transaction() -> None:
    coordinator = Coordinator()
    assert coordinator.add(ProducerIdAndEpoch(5, 0), A0) == STRANGER
    producer = coordinator.new_producer()
    assert coordinator.add(producer._replace(producer_id=5), A0) == STRANGER
    assert coordinator.add(next_epoch(producer), A0) == FENCED
    assert coordinator.add(producer, A0, transactional_id="") == ErrorCode.INVALID_REQUEST


def test_the_next_transaction_waits_until_the_one_before_is_complete() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0)
    following = coordinator.end(producer, commit=True)
    following_pair = ProducerIdAndEpoch(following.producer_id, following.producer_epoch)
    assert coordinator.add(following_pair, A0) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.verify(following_pair, A0) == {A0: ErrorCode.CONCURRENT_TRANSACTIONS}
    coordinator.write_markers()
    assert coordinator.add(following_pair, A0) == NONE


def test_verification_reports_for_each_partition_whether_it_belongs_to_the_transaction() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0, version=0)
    records = len(coordinator.log)
    assert coordinator.verify(producer, A0, B0) == {A0: NONE, B0: ErrorCode.TRANSACTION_ABORTABLE}
    assert len(coordinator.log) == records


def test_verification_reports_a_fenced_or_unknown_producer() -> None:
    coordinator = Coordinator()
    assert coordinator.verify(ProducerIdAndEpoch(5, 0), A0) == {A0: STRANGER}
    old = coordinator.new_producer()
    new = coordinator.new_producer()
    coordinator.add(new, A0)
    assert coordinator.verify(old, A0) == {A0: FENCED}
    assert coordinator.verify(new._replace(producer_id=5), A0) == {A0: STRANGER}


@pytest.mark.parametrize("version", [0, 2])
def test_partitions_of_the_transaction_before_do_not_belong_to_the_next(version: int) -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.add(producer, A0, version=version)
    following = coordinator.finish(producer, commit=True, version=version)
    coordinator.add(following, B0, version=version)
    assert coordinator.verify(following, A0, B0) == {A0: ErrorCode.TRANSACTION_ABORTABLE, B0: NONE}
    coordinator.end(following, commit=True, version=version)
    (marker,) = coordinator.markers
    assert marker.partitions == frozenset({B0})


def test_what_the_log_refuses_to_take_is_not_added() -> None:
    coordinator = Coordinator()
    producer = coordinator.new_producer()
    coordinator.refuses = ErrorCode.NOT_COORDINATOR
    assert coordinator.add(producer, A0) == ErrorCode.NOT_COORDINATOR
    coordinator.refuses = None
    assert coordinator.verify(producer, A0) == {A0: ErrorCode.TRANSACTION_ABORTABLE}
