"""AddPartitionsToTxn: which partitions belong to a transaction. The first one opens it.

Before transactions v2 a client adds them itself, and leaders check whether it has (verify only). With v2 a leader adds
its partition before it accepts the first batch. Either way no batch is appended to a partition that would get no
marker.
"""

from collections.abc import Collection, Mapping

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kaspar.transactions.ending import not_its_producer
from kaspar.transactions.init import Terms
from kaspar.transactions.state import ENDING_STATES, Transaction, TransactionState


def add_partitions(
    transaction: Transaction, producer: ProducerIdAndEpoch, partitions: frozenset[TopicPartition], *, terms: Terms
) -> Transaction:
    """The transaction with these partitions; the same object if all of them already belong to it.

    Also a producer with a new id and epoch must wait for the previous transaction to complete, so this is checked
    first.
    """
    if transaction.state in ENDING_STATES:
        raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction before is being completed")
    _check_writer(transaction, producer)
    if transaction.state is TransactionState.ONGOING and partitions <= transaction.partitions:
        return transaction
    return transaction.with_partitions(partitions, version=terms.version, now_ms=terms.now_ms)


def verify_partitions(
    transaction: Transaction, producer: ProducerIdAndEpoch, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """For each partition, whether it belongs to the open transaction of this producer."""
    _check_writer(transaction, producer)
    if transaction.state in ENDING_STATES:
        raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction is being completed")
    return {
        partition: ErrorCode.NONE if partition in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }


def _check_writer(transaction: Transaction, producer: ProducerIdAndEpoch) -> None:
    if producer != transaction.client_producer:
        raise not_its_producer(transaction, producer)
    if transaction.state is TransactionState.PREPARED:
        raise Refused(ErrorCode.INVALID_TXN_STATE, f"{transaction.transactional_id} is prepared: it can only be ended")


def result_of(transactional_id: str, codes: Mapping[TopicPartition, ErrorCode]) -> AddPartitionsToTxnResult:
    by_topic: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, partition), code in codes.items():
        by_topic.setdefault(topic, []).append(
            AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)
        )
    return AddPartitionsToTxnResult(
        transactional_id=transactional_id,
        topic_results=tuple(
            AddPartitionsToTxnTopicResult(name=topic, results_by_partition=tuple(results))
            for topic, results in by_topic.items()
        ),
    )
