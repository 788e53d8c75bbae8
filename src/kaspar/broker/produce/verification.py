"""Verifies with a transaction's coordinator that a producer may write to partitions that this broker leads (KIP-890).

The coordinator is asked before the first batch of a transaction on a partition, and not again while that transaction is
open there. How long its response is valid is decided by each partition's log (storage/producers/verification.py): a
marker that is written before the batch revokes it, so nothing is written into a transaction that has ended.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import Final, Protocol

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.base.metrics import Counter, Histogram
from kaspar.broker.services import CurrentSettings
from kaspar.replication.partition import Partition
from kaspar.storage import Verification

FIRST_PRODUCE_THAT_ADDS: Final = 12
FIRST_PRODUCE_WITH_ABORTABLE: Final = 11
FIRST_TXN_OFFSET_COMMIT_THAT_ADDS: Final = 5
FIRST_TXN_OFFSET_COMMIT_WITH_ABORTABLE: Final = 4


class TransactionSupportedOperation(Enum):
    """The version of the transaction protocol that a client uses, judged by the version of its request."""

    OLD = "adds partitions itself, and does not know TRANSACTION_ABORTABLE"
    ABORTABLE = "adds partitions itself"
    VERSION_2 = "has them added by their leaders; every transaction has an epoch of its own"

    @staticmethod
    def of_produce(version: int) -> "TransactionSupportedOperation":
        return _support(version, FIRST_PRODUCE_THAT_ADDS, FIRST_PRODUCE_WITH_ABORTABLE)

    @staticmethod
    def of_txn_offset_commit(version: int) -> "TransactionSupportedOperation":
        return _support(version, FIRST_TXN_OFFSET_COMMIT_THAT_ADDS, FIRST_TXN_OFFSET_COMMIT_WITH_ABORTABLE)


def _support(version: int, first_that_adds: int, first_with_abortable: int) -> TransactionSupportedOperation:
    if version >= first_that_adds:
        return TransactionSupportedOperation.VERSION_2
    if version >= first_with_abortable:
        return TransactionSupportedOperation.ABORTABLE
    return TransactionSupportedOperation.OLD


class TransactionCoordinator(Protocol):
    """The transaction coordinator for a partition's leader, on whichever broker it is."""

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> Awaitable[Mapping[TopicPartition, ErrorCode]]:
        """Whether the partitions belong to the producer's transaction; with `add` they are added to it."""
        ...


class TransactionVerifier:
    def __init__(
        self,
        coordinator: TransactionCoordinator,
        settings: CurrentSettings,
        *,
        steady_ms: Callable[[], int],
        verification_time: Histogram,
        verification_failures: Counter,
    ) -> None:
        self.coordinator = coordinator
        self._settings = settings
        self._steady_ms = steady_ms
        self._verification_time = verification_time
        self._verification_failures = verification_failures

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        base_sequences: Mapping[Partition, int],
        support: TransactionSupportedOperation,
    ) -> dict[Partition, ErrorCode]:
        """Why these partitions would refuse a batch of that producer with the given base sequence (-1 for none).
        Partitions that are not in the result accept it, if it is written before the transaction ends.
        """
        version_2 = support is TransactionSupportedOperation.VERSION_2
        asked: dict[Partition, Verification] = {}
        refused: dict[Partition, ErrorCode] = {}
        now_ms = self._steady_ms()
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
        if asked and (version_2 or self._settings.config.transaction_partition_verification_enable):
            codes = await self._ask(transactional_id, producer, asked, add=version_2)
        for partition, verification in asked.items():
            code = codes.get(partition.topic_partition, ErrorCode.NONE)
            if code is ErrorCode.NONE:
                partition.log.producers.confirm(producer.producer_id, verification)
                continue
            refused[partition] = _to_client(code, support)
            if code not in RETRIABLE:
                partition.log.producers.withdraw_verification(producer.producer_id, verification)
        return refused

    async def _ask(
        self, transactional_id: str, producer: ProducerIdAndEpoch, asked: Iterable[Partition], *, add: bool
    ) -> Mapping[TopicPartition, ErrorCode]:
        wanted = [partition.topic_partition for partition in asked]
        codes: Mapping[TopicPartition, ErrorCode]
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._settings.config.request_timeout_ms / 1000):
                codes = await self.coordinator.verify(transactional_id, producer, wanted, add=add)
        except TimeoutError:
            codes = dict.fromkeys(wanted, ErrorCode.NETWORK_EXCEPTION)
        self._verification_time.record(time.perf_counter() - started)
        self._verification_failures.value += sum(code is not ErrorCode.NONE for code in codes.values())
        return codes


def _to_client(code: ErrorCode, support: TransactionSupportedOperation) -> ErrorCode:
    """The error for a producer, whose request is not the one that the coordinator refused."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and support is TransactionSupportedOperation.OLD:
        return ErrorCode.INVALID_TXN_STATE
    return code
