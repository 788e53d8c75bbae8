"""DescribeTransactions and ListTransactions: a transaction as tools see it, in Kafka's terms."""

from collections.abc import Callable, Iterable, Iterator

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages import describe_transactions, list_transactions
from kaspar.transactions.state import Transaction, TransactionState

_STATE_NAMES = frozenset(state.wire_name for state in TransactionState)


def describe(transaction: Transaction) -> describe_transactions.TransactionState:
    """Describe a transaction. The pair is that of its records, which identifies the owner of open transactions."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    return describe_transactions.TransactionState(
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state.wire_name,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer.producer_id,
        producer_epoch=transaction.producer.producer_epoch,
        topics=tuple(
            describe_transactions.TopicData(topic=topic, partitions=tuple(partitions))
            for topic, partitions in topics.items()
        ),
    )


def undescribed(transactional_id: str, code: ErrorCode) -> describe_transactions.TransactionState:
    return describe_transactions.TransactionState(
        error_code=code,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
        topics=(),
    )


def listed(
    transactions: Iterable[Transaction],
    request: list_transactions.ListTransactionsRequest,
    matches: Callable[[str], bool],
    age_ms: Callable[[Transaction], int],
) -> Iterator[list_transactions.TransactionState | None]:
    """Yield each transaction, or None where a filter of the request excludes it. `matches` is the pattern filter, and
    `age_ms` returns how long ago a transaction began. Other events may be handled between two of them.
    """
    states = frozenset(request.state_filters)
    producer_ids = frozenset(request.producer_id_filters)
    longer_than_ms = request.duration_filter

    def is_wanted(transaction: Transaction) -> bool:
        return (
            (not producer_ids or transaction.producer.producer_id in producer_ids)
            and (not states or transaction.state.wire_name in states)
            and (longer_than_ms < 0 or age_ms(transaction) > longer_than_ms)
            and matches(transaction.transactional_id)
        )

    for transaction in transactions:
        if is_wanted(transaction):
            yield list_transactions.TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer.producer_id,
                transaction_state=transaction.state.wire_name,
            )
        else:
            yield None


def unknown_states(request: list_transactions.ListTransactionsRequest) -> tuple[str, ...]:
    """The state filters that are not names of states."""
    return tuple(name for name in dict.fromkeys(request.state_filters) if name not in _STATE_NAMES)
