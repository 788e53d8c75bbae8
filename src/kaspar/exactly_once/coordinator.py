"""The transaction coordinators of a cluster, over the wire. The features that they support are requested once.

A transaction opens with `kafka.transaction.timeout.ms`, by default the largest that the brokers allow, up to 15
minutes: a task that takes longer would fail every time. What a killed task leaves open is aborted much earlier, by the
next publisher. If brokers prepare transactions (KIP-939), the timeout ends with the task's last record.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client.cluster import Client
from kaspar.client.core import UnsupportedByPeer
from kaspar.client.transactions import (
    ANY_AGE,
    TRANSACTIONS_V2,
    DescribedTransaction,
    Ending,
    TransactionSupport,
    describe,
    end_all,
    init_producer_id,
    list_transactions,
    max_timeout_ms,
    transaction_support,
)
from kaspar.exactly_once.errors import NotPublished
from kaspar.exactly_once.names import prefix_of
from kaspar.exactly_once.outcomes import INCONCLUSIVE

_LONGEST_TIMEOUT_MS = 15 * 60_000  # the default of Kafka's transaction.max.timeout.ms


class BrokerCoordinator:
    """Not thread-safe."""

    def __init__(self, client: Client, *, timeout_ms: int | None = None) -> None:
        self._client = client
        self._given_timeout_ms = timeout_ms

    @cached_property
    def support(self) -> TransactionSupport:
        return transaction_support(self._client)

    @cached_property
    def max_timeout_ms(self) -> int | None:
        """The brokers' transaction.max.timeout.ms; None if this principal may not read it."""
        try:
            return max_timeout_ms(self._client)
        except Refused as refused:
            if refused.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise
            return None

    @cached_property
    def timeout_ms(self) -> int:
        return self._given_timeout_ms or min(self.max_timeout_ms or _LONGEST_TIMEOUT_MS, _LONGEST_TIMEOUT_MS)

    @property
    def prepares(self) -> bool:
        return self.support.prepares

    @property
    def adds_partitions(self) -> bool:
        """Whether clients must send AddPartitionsToTxn: before transactions v2 (KIP-890)."""
        return self.support.version < TRANSACTIONS_V2

    def begin(self, transactional_id: str) -> ProducerIdAndEpoch:
        try:
            return init_producer_id(self._client, transactional_id, timeout_ms=self.timeout_ms).producer
        except Refused as refused:
            if refused.code is not ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                raise
            raise KasparError(
                f"a transaction timeout of {self.timeout_ms} ms is more than the brokers' transaction.max.timeout.ms "
                "allows: set kafka.transaction.timeout.ms, or allow this principal to read it (DescribeConfigs on the "
                "cluster)"
            ) from None

    def prepare(self, transactional_id: str, producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        if not self.prepares:
            return producer
        try:
            prepared = init_producer_id(
                self._client,
                transactional_id,
                timeout_ms=self.timeout_ms,
                enable_2pc=True,
                keep_prepared=True,
                producer=producer,
            )
        except (Refused, UnsupportedByPeer) as refused:
            self.__dict__.pop("support", None)  # restarted brokers may have other settings: request them again
            if isinstance(refused, UnsupportedByPeer) or (
                refused.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            ):
                raise NotPublished(
                    f"the transaction {transactional_id} cannot be prepared: the brokers no longer allow it "
                    "(transaction.two.phase.commit.enable), or this principal lacks the operation TwoPhaseCommit on "
                    "the transactional id"
                ) from None
            if refused.code not in INCONCLUSIVE:
                raise
            prepared = None
        if prepared is None or prepared.ongoing != producer:
            raise NotPublished(
                f"the transaction {transactional_id} was aborted before its last record was written, by its timeout of "
                f"{self.timeout_ms} ms (kafka.transaction.timeout.ms) or by a later run"
            )
        return prepared.producer

    def end(self, endings: Sequence[Ending], *, is_urgent: bool = True) -> list[ErrorCode]:
        timeout_s = None if is_urgent else 0.0
        return end_all(self._client, endings, version=self.support.version, timeout_s=timeout_s)

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, DescribedTransaction]:
        return describe(self._client, transactional_ids)

    def open_transactions(self, query: str, *, older_than_ms: int = ANY_AGE) -> list[str]:
        listed = list_transactions(
            self._client, prefix=prefix_of(query), states=("Ongoing",), older_than_ms=older_than_ms
        )
        return [each.transactional_id for each in listed]

    def known_transactions(self, query: str) -> list[str]:
        return [each.transactional_id for each in list_transactions(self._client, prefix=prefix_of(query))]

    def fence(self, transactional_ids: Collection[str]) -> None:
        for transactional_id in transactional_ids:
            init_producer_id(self._client, transactional_id, timeout_ms=self.timeout_ms)
