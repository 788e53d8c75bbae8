"""InitProducerId for a transactional id: who writes from now on, and what becomes of the transaction before.

Rules:
- Who asks without naming a pair is a new producer: the epoch is raised, and everyone before it is fenced.
- Who names the pair it has goes on under the next epoch (KIP-360). If the answer was lost and it asks again, it gets
  the same answer: the coordinator remembers the epoch before, until somebody else asks or until it is restarted.
- A transaction that is open is aborted first; the client is told to come back (CONCURRENT_TRANSACTIONS).
- Unless it asks to keep it (KIP-939): then the transaction stays as it is, nothing can be added to it, and only the new
  pair ends it. With `enable2Pc` its timeout is lifted too: it is prepared, and waits for its owner's decision.
- An epoch that is exhausted is followed by a new producer id at epoch 0.
"""

from collections.abc import Callable
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.transactions.settings import CoordinatorSettings
from kaspar.transactions.state import (
    ENDING_STATES,
    LAST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    OPEN_STATES,
    Transaction,
    TransactionState,
)


class Terms(NamedTuple):
    """What a decision needs to know beside the transaction and the request."""

    version: int
    """The finalised level of `transaction.version`."""
    now_ms: int
    next_producer_id: Callable[[], int]


def check_request(request: InitProducerIdRequest, settings: CoordinatorSettings) -> None:
    if not request.transactional_id:
        raise Refused(ErrorCode.INVALID_REQUEST, "a transactional id may be absent, but not empty")
    if (request.enable_2pc or request.keep_prepared_txn) and not settings.two_phase_commit:
        raise Refused(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "prepared transactions are allowed with transaction.two.phase.commit.enable",
        )
    timeout_ms = request.transaction_timeout_ms
    if timeout_ms <= 0 or (timeout_ms > settings.max_timeout_ms and not request.enable_2pc):
        raise Refused(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"a timeout of {timeout_ms} ms is not within transaction.max.timeout.ms",
        )


def initialise(
    transaction: Transaction | None, request: InitProducerIdRequest, *, last_epoch: int, terms: Terms
) -> Transaction:
    """What becomes of the id; the same object if the request repeats one that was carried out.

    `last_epoch` is the epoch that its client had before the one it has now, if that is remembered.
    """
    expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    if transaction is None:
        transaction = _new(request, terms)
    elif transaction.state in ENDING_STATES:
        raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction before is being completed")
    elif expected.producer_id != NO_PRODUCER_ID:
        _check_expected(transaction, expected)
    if transaction.state in OPEN_STATES:
        if request.keep_prepared_txn:
            return _keep(transaction, request, expected, terms)
        return _abort(transaction, expected, terms)
    return _raise_epoch(transaction, request, expected, last_epoch, terms)


def response(transaction: Transaction) -> InitProducerIdResponse:
    """The answer after `initialise`. An abort is under way where another transaction was open."""
    if transaction.state in ENDING_STATES:
        return InitProducerIdResponse(
            error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH
        )
    told = transaction.client_producer
    kept = transaction.state is TransactionState.PREPARED
    return InitProducerIdResponse(
        producer_id=told.producer_id,
        producer_epoch=told.producer_epoch,
        ongoing_txn_producer_id=transaction.producer.producer_id if kept else NO_PRODUCER_ID,
        ongoing_txn_producer_epoch=transaction.producer.producer_epoch if kept else NO_EPOCH,
    )


def _new(request: InitProducerIdRequest, terms: Terms) -> Transaction:
    """An id nobody has used. A producer may name a pair all the same: the id was forgotten, being idle for long."""
    assert request.transactional_id
    return Transaction(
        transactional_id=request.transactional_id,
        producer=ProducerIdAndEpoch(terms.next_producer_id(), NO_EPOCH),
        timeout_ms=request.transaction_timeout_ms,
        last_update_ms=terms.now_ms,
    )


def _check_expected(transaction: Transaction, expected: ProducerIdAndEpoch) -> None:
    """The producer id is the one its client has, or the one before it, whose epochs were exhausted."""
    if expected.producer_id == transaction.client_producer.producer_id:
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
    told = transaction.client_producer
    is_new = expected.producer_id == NO_PRODUCER_ID or told.producer_epoch == NO_EPOCH
    if not is_new and expected != told:
        if expected.producer_epoch == last_epoch:
            return transaction
        raise _fenced(transaction, expected)
    return transaction.initialised(_next_pair(transaction, terms), _timeout_ms(transaction, request), terms.now_ms)


def _keep(
    transaction: Transaction, request: InitProducerIdRequest, expected: ProducerIdAndEpoch, terms: Terms
) -> Transaction:
    if expected.producer_id != NO_PRODUCER_ID and expected != transaction.client_producer:
        if (
            transaction.state is TransactionState.PREPARED
            and expected == transaction.producer
            and transaction.directly_follows(expected)
        ):
            return transaction  # its answer was lost, and nobody else has asked since
        raise _fenced(transaction, expected)
    return transaction.kept(_next_pair(transaction, terms), _timeout_ms(transaction, request), terms.now_ms)


def _abort(transaction: Transaction, expected: ProducerIdAndEpoch, terms: Terms) -> Transaction:
    """Kafka lets a fenced producer abort what a newer one has open, and tells it only then that it is fenced."""
    if expected.producer_id != NO_PRODUCER_ID and expected != transaction.client_producer:
        raise _fenced(transaction, expected)
    return transaction.fenced(version=terms.version, now_ms=terms.now_ms, next_producer_id=terms.next_producer_id)


def _next_pair(transaction: Transaction, terms: Terms) -> ProducerIdAndEpoch:
    if transaction.is_epoch_exhausted:
        return ProducerIdAndEpoch(terms.next_producer_id(), 0)
    told = transaction.client_producer
    return ProducerIdAndEpoch(told.producer_id, told.producer_epoch + 1)


def _timeout_ms(transaction: Transaction, request: InitProducerIdRequest) -> int:
    if request.enable_2pc:
        return NO_TIMEOUT_MS
    return transaction.timeout_ms if transaction.state in OPEN_STATES else request.transaction_timeout_ms


def _fenced(transaction: Transaction, expected: ProducerIdAndEpoch) -> Refused:
    told = transaction.client_producer
    return Refused(
        ErrorCode.PRODUCER_FENCED,
        f"{transaction.transactional_id} belongs to producer {told.producer_id} at epoch {told.producer_epoch} now, "
        f"not to {expected.producer_id} at {expected.producer_epoch}",
    )
