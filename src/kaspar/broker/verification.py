"""Asks a transaction's coordinator whether a producer may write to partitions that this broker leads.

It is asked before the first batch of a transaction on a partition, and never again while that transaction is open
there. What the answer is good for, and until when, each partition's log knows (storage/verification.py): a marker that
comes before the batch is written takes it back, so nothing is written into a transaction that has ended.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.replication.partition import Partition
from kaspar.storage import Verification

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_PRODUCE_THAT_ADDS: Final = 12
FIRST_PRODUCE_WITH_ABORTABLE: Final = 11
FIRST_TXN_OFFSET_COMMIT_THAT_ADDS: Final = 5
FIRST_TXN_OFFSET_COMMIT_WITH_ABORTABLE: Final = 4


class TransactionSupport(Enum):
    """What a client knows of transactions, from the version in which it asks."""

    OLD = "adds partitions itself, and does not know TRANSACTION_ABORTABLE"
    ABORTABLE = "adds partitions itself"
    VERSION_2 = "has them added by whoever leads them; every transaction has an epoch of its own"

    @staticmethod
    def of_produce(version: int) -> "TransactionSupport":
        return _support(version, FIRST_PRODUCE_THAT_ADDS, FIRST_PRODUCE_WITH_ABORTABLE)

    @staticmethod
    def of_txn_offset_commit(version: int) -> "TransactionSupport":
        return _support(version, FIRST_TXN_OFFSET_COMMIT_THAT_ADDS, FIRST_TXN_OFFSET_COMMIT_WITH_ABORTABLE)


def _support(version: int, first_that_adds: int, first_with_abortable: int) -> TransactionSupport:
    if version >= first_that_adds:
        return TransactionSupport.VERSION_2
    return TransactionSupport.ABORTABLE if version >= first_with_abortable else TransactionSupport.OLD


def is_fenced(broker: "Broker", transactional_id: str, producer: ProducerIdAndEpoch) -> bool:
    """Whether a producer may write no more although its transaction is open. A partition learns that from the marker
    that ends the transaction; if it is prepared, and will be ended by another, only its coordinator knows. Refused if
    the coordinator cannot be asked now.
    """
    if not broker.config.transaction_two_phase_commit_enable:
        return False
    return broker.transactions.runtime.shard_of(transactional_id).is_fenced(transactional_id, producer)


async def verify_transaction(
    broker: "Broker",
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    base_sequences: Mapping[Partition, int],
    support: TransactionSupport,
) -> dict[Partition, ErrorCode]:
    """Why these partitions will not take a batch of that producer that begins with this sequence (-1: it has none).
    Those that are not named will, if it comes before the transaction ends.
    """
    version_2 = support is TransactionSupport.VERSION_2
    asked: dict[Partition, Verification] = {}
    refused: dict[Partition, ErrorCode] = {}
    now_ms = broker.now().steady_ms
    for partition, base_sequence in base_sequences.items():
        try:
            verification = partition.log.producers.begin_verification(
                *producer, base_sequence, transactional_id=transactional_id, bumps_epoch=version_2, now_ms=now_ms
            )
        except Refused as refusal:
            refused[partition] = refusal.code
            continue
        if verification is not None:
            asked[partition] = verification
    codes: Mapping[TopicPartition, ErrorCode] = {}
    if asked and (version_2 or broker.config.transaction_partition_verification_enable):
        codes = await _ask(broker, transactional_id, producer, asked, add=version_2)
    fenced = _why_fenced(broker, transactional_id, producer)
    for partition, verification in asked.items():
        code = fenced or codes.get(partition.topic_partition, ErrorCode.NONE)
        if code is ErrorCode.NONE:
            partition.log.producers.confirm(producer.producer_id, verification)
            continue
        refused[partition] = _as_told(code, support)
        if code not in RETRIABLE:
            partition.log.producers.withdraw_verification(producer.producer_id, verification)
    return dict.fromkeys(base_sequences, fenced) if fenced else refused


async def _ask(
    broker: "Broker",
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    asked: Iterable[Partition],
    *,
    add: bool,
) -> Mapping[TopicPartition, ErrorCode]:
    wanted = [partition.topic_partition for partition in asked]
    started = time.perf_counter()
    try:
        async with asyncio.timeout(broker.config.request_timeout_ms / 1000):
            codes = await broker.transactions.verify(transactional_id, producer, wanted, add=add)
    except TimeoutError:
        codes = dict.fromkeys(wanted, ErrorCode.NETWORK_EXCEPTION)
    broker.metrics.verification_time.record(time.perf_counter() - started)
    broker.metrics.verification_failures.value += sum(code is not ErrorCode.NONE for code in codes.values())
    return codes


def _why_fenced(broker: "Broker", transactional_id: str, producer: ProducerIdAndEpoch) -> ErrorCode:
    """NONE if the producer may write."""
    try:
        fenced = is_fenced(broker, transactional_id, producer)
    except Refused as refusal:
        return refusal.code
    return ErrorCode.INVALID_PRODUCER_EPOCH if fenced else ErrorCode.NONE


def _as_told(code: ErrorCode, support: TransactionSupport) -> ErrorCode:
    """What a producer is told, who asked something else than the coordinator was asked."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and support is TransactionSupport.OLD:
        return ErrorCode.INVALID_TXN_STATE
    return code
