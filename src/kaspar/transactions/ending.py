"""EndTxn: whether a client may end its transaction in this way, by the rules of the version it uses.

Under transactions v2 (EndTxn 5, KIP-890) the epoch distinguishes a request from a retry, and from one for the previous
transaction, because every end bumps it. "Now" has the producer's current id and epoch, "again" the previous ones:

    |                | aborts now | aborts again      | commits now       | commits again     |
    | Ongoing        | aborted    | PRODUCER_FENCED   | committed         | PRODUCER_FENCED   |
    | Empty          | aborted    | PRODUCER_FENCED   | INVALID_TXN_STATE | PRODUCER_FENCED   |
    | CompleteAbort  | aborted    | unchanged         | INVALID_TXN_STATE | INVALID_TXN_STATE |
    | CompleteCommit | aborted    | INVALID_TXN_STATE | INVALID_TXN_STATE | unchanged         |

Aborting an empty transaction bumps the epoch as well: the client cannot know whether its batches have arrived, and a
late one must not become part of its next transaction. By the older rules the epoch does not change, so a retry looks
like the request itself, and a delayed one may end the next transaction. That is the reason for v2.

While a transaction is being completed, all requests have to wait (CONCURRENT_TRANSACTIONS).
"""

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.transactions.init import Terms
from kaspar.transactions.state import (
    COMPLETE_STATES,
    ENDING_STATES,
    OPEN_STATES,
    TRANSACTIONS_V2,
    Transaction,
    TransactionState,
)


def end(transaction: Transaction, producer: ProducerIdAndEpoch, *, committed: bool, terms: Terms) -> Transaction:
    """The transaction after this EndTxn; the same object if this is a retry. `terms.version` is the client's."""
    if terms.version >= TRANSACTIONS_V2:
        is_repeated = _check_v2(transaction, producer, committed)
    else:
        is_repeated = _check_v1(transaction, producer, committed)
    if is_repeated:
        return transaction
    return transaction.ended(
        committed=committed,
        version=terms.version,
        now_ms=terms.now_ms,
        next_producer_id=terms.next_producer_id,
    )


def _check_v2(transaction: Transaction, producer: ProducerIdAndEpoch, committed: bool) -> bool:
    _check_not_ending(transaction)
    current = transaction.client_producer
    if producer == current:
        if committed and transaction.state not in OPEN_STATES:
            raise _cannot_end(transaction, committed)
        return False
    if transaction.state in COMPLETE_STATES and transaction.directly_follows(producer):
        if not _has_ended_so(transaction, committed):
            raise _cannot_end(transaction, committed)
        return True
    raise not_its_producer(transaction, producer)


def _check_v1(transaction: Transaction, producer: ProducerIdAndEpoch, committed: bool) -> bool:
    if producer != transaction.client_producer:
        raise not_its_producer(transaction, producer)
    _check_not_ending(transaction)
    if transaction.state in OPEN_STATES:
        return False
    if not _has_ended_so(transaction, committed):
        raise _cannot_end(transaction, committed)
    return True


def _check_not_ending(transaction: Transaction) -> None:
    if transaction.state in ENDING_STATES:
        raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS, "The transaction is being completed.")


def _has_ended_so(transaction: Transaction, committed: bool) -> bool:
    state = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
    return transaction.state is state


def _cannot_end(transaction: Transaction, committed: bool) -> Refused:
    end = "commit" if committed else "abort"
    message = f"Cannot {end} {transaction.transactional_id} in state {transaction.state.value}."
    return Refused(ErrorCode.INVALID_TXN_STATE, message)


def not_its_producer(transaction: Transaction, producer: ProducerIdAndEpoch) -> Refused:
    current = transaction.client_producer
    if producer.producer_id != current.producer_id:
        return Refused(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"{transaction.transactional_id} belongs to producer id {current.producer_id}, not {producer.producer_id}.",
        )
    return Refused(
        ErrorCode.PRODUCER_FENCED,
        f"Producer id {current.producer_id} is at epoch {current.producer_epoch}, not {producer.producer_epoch}.",
    )
