"""What a pass over a log learns of its transactions: which batches were aborted, which markers still end something."""

from kaspar.records import BatchHeader, ControlType, Record, build_batch, read_header
from kaspar.storage.cleaning.transactions import CleanedTransactions
from kaspar.storage.segments.transaction_index import AbortedTransaction, TransactionIndex

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


def batch(offset: int, producer_id: int = -1, *, transactional: bool = True, control: bool = False) -> BatchHeader:
    data = build_batch(
        [Record(0, b"", b"")],
        base_offset=offset,
        producer_id=producer_id,
        transactional=transactional and producer_id >= 0,
        control=control,
    )
    return read_header(data, 0)


def marker(offset: int, producer_id: int) -> BatchHeader:
    return batch(offset, producer_id, control=True)


def test_batches_from_the_first_offset_of_an_aborted_transaction_to_its_marker_are_aborted() -> None:
    transactions = CleanedTransactions()
    transactions.add_aborted([AbortedTransaction(1, 10, 20, 10)])
    assert not transactions.is_aborted(batch(5, 1)), "an earlier transaction"
    assert not transactions.has_nothing_to_end(marker(6, 1), COMMIT)
    assert transactions.is_aborted(batch(10, 1))
    assert not transactions.is_aborted(batch(11, 2))
    assert not transactions.is_aborted(batch(12))
    assert not transactions.is_aborted(batch(13, 1, transactional=False))
    assert transactions.is_aborted(batch(14, 1))
    assert not transactions.has_nothing_to_end(marker(20, 1), ABORT)
    assert not transactions.is_aborted(batch(21, 1)), "a later transaction"


def test_marker_has_nothing_to_end_when_no_batch_of_its_transaction_was_met() -> None:
    transactions = CleanedTransactions()
    transactions.add_aborted([AbortedTransaction(2, 3, 6, 3)])
    assert transactions.has_nothing_to_end(marker(5, 1), COMMIT)
    assert transactions.has_nothing_to_end(marker(6, 2), ABORT)
    assert transactions.has_nothing_to_end(marker(7, 3), ABORT), "no index has it any more"
    transactions.is_aborted(batch(8, 1))
    assert not transactions.has_nothing_to_end(marker(9, 1), COMMIT)
    assert transactions.has_nothing_to_end(marker(10, 1), COMMIT), "that batch was the transaction's before"


def test_emptied_marker_ends_nothing_and_other_control_records_are_left_alone() -> None:
    transactions = CleanedTransactions()
    assert transactions.has_nothing_to_end(marker(1, 1), None)
    assert not transactions.has_nothing_to_end(marker(2, -1), ControlType.LEADER_CHANGE)
    assert not transactions.has_nothing_to_end(marker(3, -1), ControlType.UNKNOWN)


def test_aborted_transactions_that_still_had_batches_stay_in_the_index() -> None:
    transactions = CleanedTransactions()
    transactions.index = TransactionIndex()
    remaining = AbortedTransaction(1, 0, 5, 0)
    transactions.add_aborted([remaining, AbortedTransaction(2, 1, 6, 1)])
    assert transactions.is_aborted(batch(3, 1))
    transactions.has_nothing_to_end(marker(5, 1), ABORT)
    transactions.has_nothing_to_end(marker(6, 2), ABORT)
    assert len(transactions.index) == 1
    assert transactions.index[0] == remaining


def test_transaction_over_several_segments_is_indexed_by_each_and_is_one() -> None:
    transactions = CleanedTransactions()
    transactions.index = TransactionIndex()
    aborted = AbortedTransaction(1, 0, 5, 0)
    transactions.add_aborted([aborted])
    assert transactions.is_aborted(batch(0, 1))
    transactions.add_aborted([aborted])
    assert transactions.is_aborted(batch(3, 1))
    assert not transactions.has_nothing_to_end(marker(5, 1), ABORT)
    assert len(transactions.index) == 1
    assert not transactions.is_aborted(batch(6, 1))


def test_transactions_of_one_producer_come_in_the_order_of_their_offsets() -> None:
    transactions = CleanedTransactions()
    transactions.add_aborted([AbortedTransaction(1, 20, 25, 20), AbortedTransaction(1, 0, 5, 0)])
    assert transactions.is_aborted(batch(0, 1))
    assert not transactions.has_nothing_to_end(marker(5, 1), ABORT)
    assert not transactions.is_aborted(batch(10, 1))
    assert not transactions.has_nothing_to_end(marker(15, 1), COMMIT)
    assert transactions.is_aborted(batch(20, 1))
