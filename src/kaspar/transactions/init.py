"""InitProducerId for a transactional id: which producer may write from now on, and what happens to the transaction
before.

Rules:
- A producer without id and epoch is a new one: the epoch is bumped, and all earlier producers are fenced.
- A producer with its id and epoch continues with the next epoch (KIP-360). If the response was lost and it retries, it
  gets the same one: the coordinator remembers the epoch before until another request or a restart.
- An open transaction is aborted first; the client has to retry (CONCURRENT_TRANSACTIONS).
- Unless the request keeps it (KIP-939): then the transaction stays as it is, nothing can be added to it, and only the
  new pair ends it. With `enable2Pc` its timeout is removed too: it is prepared, and waits for its owner's decision.
  Every partition gets its fence before this is reported (`Transaction.fence`, broker/coordination/fences.py).
- An exhausted epoch is followed by a new producer id at epoch 0.
"""

from collections.abc import Callable
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.transactions.settings import CoordinatorSettings
from kaspar.transactions.state import (
    ENDING_STATES,
    EPOCHS_TO_PREPARE,
    LAST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    OPEN_STATES,
    Transaction,
    TransactionState,
)


class Terms(NamedTuple):
    """The inputs of a decision besides the transaction and the request."""

    version: int
    """The finalized level of `transaction.version`."""
    now_ms: int
    next_producer_id: Callable[[], int]


def check_request(request: InitProducerIdRequest, settings: CoordinatorSettings) -> None:
    if not request.transactional_id:
        raise Refused(ErrorCode.INVALID_REQUEST, "The transactional id is empty.")
    if (request.enable_2pc or request.keep_prepared_txn) and not settings.two_phase_commit:
        raise Refused(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "Prepared transactions require transaction.two.phase.commit.enable.",
        )
    timeout_ms = request.transaction_timeout_ms
    if timeout_ms <= 0 or (timeout_ms > settings.max_timeout_ms and not request.enable_2pc):
        raise Refused(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"The transaction timeout {timeout_ms} ms is not between 1 and transaction.max.timeout.ms.",
        )


def initialise(
    transaction: Transaction | None, request: InitProducerIdRequest, *, last_epoch: int, terms: Terms
) -> Transaction:
    """The transaction after this request; the same object if the request is a retry of one that was carried out.

    `last_epoch` is the epoch that the client had before its current one, if that is remembered.
    """
    expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    if transaction is None:
        transaction = _new(request, terms)
    elif transaction.state in ENDING_STATES:
        raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS, "The previous transaction is being completed.")
    elif expected.producer_id != NO_PRODUCER_ID:
        _check_expected(transaction, expected)
    if transaction.state in OPEN_STATES:
        if request.keep_prepared_txn:
            return _keep(transaction, request, expected, terms)
        return _abort(transaction, expected, terms)
    return _raise_epoch(transaction, request, expected, last_epoch, terms)


def response(transaction: Transaction) -> InitProducerIdResponse:
    """The response after `initialise`. If another transaction was open, its abort is under way."""
    if transaction.state in ENDING_STATES:
        return InitProducerIdResponse(
            error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH
        )
    current = transaction.client_producer
    kept = transaction.state is TransactionState.PREPARED
    return InitProducerIdResponse(
        producer_id=current.producer_id,
        producer_epoch=current.producer_epoch,
        ongoing_txn_producer_id=transaction.producer.producer_id if kept else NO_PRODUCER_ID,
        ongoing_txn_producer_epoch=transaction.producer.producer_epoch if kept else NO_EPOCH,
    )


def _new(request: InitProducerIdRequest, terms: Terms) -> Transaction:
    """A new id. The request may still contain a pair, because the id was forgotten after being idle for long."""
    assert request.transactional_id
    return Transaction(
        transactional_id=request.transactional_id,
        producer=ProducerIdAndEpoch(terms.next_producer_id(), NO_EPOCH),
        timeout_ms=request.transaction_timeout_ms,
        last_update_ms=terms.now_ms,
    )


def _check_expected(transaction: Transaction, expected: ProducerIdAndEpoch) -> None:
    """Check that the producer id is the client's current one, or the one before it, whose epochs were exhausted."""
    if expected.producer_id == transaction.client_producer.producer_id or transaction.was_prepared_by(expected):
        return
    if expected.producer_id == transaction.previous_producer_id and expected.producer_epoch >= LAST_EPOCH:
        return
    raise _fenced(transaction, expected)


def _raise_epoch(
    transaction: Transaction,
    request: InitProducerIdRequest,
    expected: ProducerIdAndEpoch,
    last_epoch: int,
    terms: Terms,
) -> Transaction:
    current = transaction.client_producer
    is_new = expected.producer_id == NO_PRODUCER_ID or current.producer_epoch == NO_EPOCH
    if not is_new and expected != current:
        if expected.producer_epoch == last_epoch:
            return transaction
        raise _fenced(transaction, expected)
    return transaction.initialised(_next_pair(transaction, terms), _timeout_ms(transaction, request), terms.now_ms)


def _keep(
    transaction: Transaction, request: InitProducerIdRequest, expected: ProducerIdAndEpoch, terms: Terms
) -> Transaction:
    if expected.producer_id != NO_PRODUCER_ID and expected != transaction.client_producer:
        if transaction.was_prepared_by(expected):
            return transaction  # the response was lost, and there was no other request since
        raise _fenced(transaction, expected)
    epochs = 1 if transaction.state is TransactionState.PREPARED else EPOCHS_TO_PREPARE
    pair = _next_pair(transaction, terms, epochs)
    return transaction.kept(pair, _timeout_ms(transaction, request), terms.now_ms)


def _abort(transaction: Transaction, expected: ProducerIdAndEpoch, terms: Terms) -> Transaction:
    """Abort the open transaction. Kafka lets a fenced producer do this to a newer one, and fences it only then."""
    if expected.producer_id != NO_PRODUCER_ID and expected != transaction.client_producer:
        raise _fenced(transaction, expected)
    return transaction.fenced(version=terms.version, now_ms=terms.now_ms, next_producer_id=terms.next_producer_id)


def _next_pair(transaction: Transaction, terms: Terms, epochs: int = 1) -> ProducerIdAndEpoch:
    current = transaction.client_producer
    if current.producer_epoch + epochs > LAST_EPOCH:
        return ProducerIdAndEpoch(terms.next_producer_id(), 0)
    return ProducerIdAndEpoch(current.producer_id, current.producer_epoch + epochs)


def _timeout_ms(transaction: Transaction, request: InitProducerIdRequest) -> int:
    if request.enable_2pc:
        return NO_TIMEOUT_MS
    return transaction.timeout_ms if transaction.state in OPEN_STATES else request.transaction_timeout_ms


def _fenced(transaction: Transaction, expected: ProducerIdAndEpoch) -> Refused:
    current = transaction.client_producer
    return Refused(
        ErrorCode.PRODUCER_FENCED,
        f"{transaction.transactional_id} belongs to producer id {current.producer_id} at epoch "
        f"{current.producer_epoch}, not to {expected.producer_id} at {expected.producer_epoch}.",
    )
