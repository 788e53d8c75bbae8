"""Converts a Transaction to its record and back."""

from collections import defaultdict
from typing import Final

from kaspar.base.errors import MalformedBytes
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.coordination import StoredRecord
from kaspar.transactions.records import KINDS, PartitionsSchema, TransactionLogKey, TransactionLogValue
from kaspar.transactions.state import NO_EPOCH, Transaction, TransactionState

_STATUS: Final = {
    TransactionState.EMPTY: 0,
    TransactionState.ONGOING: 1,
    TransactionState.PREPARE_COMMIT: 2,
    TransactionState.PREPARE_ABORT: 3,
    TransactionState.COMPLETE_COMMIT: 4,
    TransactionState.COMPLETE_ABORT: 5,
}
_STATE: Final = {status: state for state, status in _STATUS.items()}
_STATUS_OF_PREPARED: Final = _STATUS[TransactionState.ONGOING]


def to_record(transaction: Transaction) -> StoredRecord:
    key = TransactionLogKey(transactional_id=transaction.transactional_id)
    if transaction.state is TransactionState.DEAD:
        return StoredRecord(key, None)
    value = TransactionLogValue(
        producer_id=transaction.producer.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=_STATUS.get(transaction.state, _STATUS_OF_PREPARED),
        transaction_partitions=_partitions(transaction),
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
        next_producer_epoch=transaction.next_producer_epoch,
    )
    return StoredRecord(key, value)


def _partitions(transaction: Transaction) -> tuple[PartitionsSchema, ...] | None:
    if transaction.state is TransactionState.EMPTY:
        return None
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(transaction.partitions):
        by_topic[topic].append(partition)
    return tuple(
        PartitionsSchema(topic=topic, partition_ids=tuple(partitions)) for topic, partitions in by_topic.items()
    )


def from_record(record: StoredRecord) -> Transaction | None:
    """The transaction, or None if its id was forgotten."""
    key, value = record
    assert isinstance(key, TransactionLogKey)
    if value is None:
        return None
    assert isinstance(value, TransactionLogValue)
    state = _STATE[value.transaction_status]
    if state is TransactionState.ONGOING and value.next_producer_epoch != NO_EPOCH:
        state = TransactionState.PREPARED
    return Transaction(
        transactional_id=key.transactional_id,
        producer=ProducerIdAndEpoch(value.producer_id, value.producer_epoch),
        timeout_ms=value.transaction_timeout_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        start_ms=value.transaction_start_timestamp_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        next_producer_epoch=value.next_producer_epoch,
        client_version=value.client_transaction_version,
    )


def id_of(record: StoredRecord) -> str:
    assert isinstance(record.key, TransactionLogKey)
    return record.key.transactional_id


def decode(key: bytes, value: bytes | None) -> StoredRecord | None:
    """Decode a record. None for a kind of a later release; raises MalformedBytes for anything else."""
    record = KINDS.decode(key, value)
    if record is not None and isinstance(record.value, TransactionLogValue):
        status = record.value.transaction_status
        if status not in _STATE:
            raise MalformedBytes(f"{status} is not a transaction status that is stored in the log")
    return record


def encode(record: StoredRecord, *, version: int) -> tuple[bytes, bytes | None]:
    """Encode a record. Version 0, which Kafka writes at that level of `transaction.version`, has no room for tagged
    fields. It is not used if a record needs them.
    """
    value = record.value
    if version == 0 and isinstance(value, TransactionLogValue) and not _needs_tags(value):
        return KINDS.encode(record, value_version=0)
    return KINDS.encode(record)


def _needs_tags(value: TransactionLogValue) -> bool:
    return value.next_producer_id != -1 or value.client_transaction_version != 0
