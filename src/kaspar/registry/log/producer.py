"""The producer that writes `_schemas`. Each registry group has one transactional id, so the broker itself fences a
former leader that does not know yet that it was replaced (KIP-98, KIP-360).

Every write is one transaction. With transactions v2 (KIP-890) the partition leader adds the partition to the
transaction, and each EndTxn raises the epoch. Before that, the client adds the partition, and sequence numbers
continue.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from kaspar.base.errors import ErrorCode, KasparError
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.client.async_client import AsyncClient
from kaspar.client.cluster_core import refuse
from kaspar.client.coordinators import MOVING, CoordinatorKind, request_coordinator
from kaspar.client.core import API_VERSIONS_REQUEST
from kaspar.client.steps import AnyResponse, error_code_of
from kaspar.protocol.api import ApiKey
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kaspar.protocol.messages.api_versions import ApiVersionsResponse
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kaspar.protocol.schema import Message
from kaspar.records.builder import build_batch
from kaspar.records.record import Record
from kaspar.registry.interfaces import LogRecord

TRANSACTION_TIMEOUT_MS: Final = 30_000
"""The broker aborts the transaction of a dead leader after this time, unless the next leader does so earlier."""
_NO_PRODUCER: Final = ProducerIdAndEpoch(-1, -1)
_BUSY: Final = MOVING | {ErrorCode.CONCURRENT_TRANSACTIONS}
_FENCED: Final = frozenset(
    {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
)
_BATCH_BYTES: Final = 512 * 1024
"""The maximum size of a batch, since brokers accept a megabyte by default. A larger record gets its own batch."""
_RECORD_OVERHEAD: Final = 20
"""The maximum number of bytes in a batch that a record takes in addition to its key and value."""
_LEVEL: Final = "transaction.version"
_TRANSACTIONS_V2: Final = 2
_ADD_PARTITIONS: Final = 3  # the last version of AddPartitionsToTxn for clients: later ones are for brokers
_PRODUCE_BEFORE_V2: Final = 11
_END_TXN_BEFORE_V2: Final = 4


class Fenced(KasparError):
    """Another producer has initialized the transactional id: there is another leader."""


class _Versions(NamedTuple):
    """The versions of Produce and EndTxn. None is the newest, which follows transactions v2."""

    produce: int | None
    end_txn: int | None
    adds_partition: bool


class TransactionalProducer:
    """Must be used by one task at a time. After any exception but Fenced, the transaction is open or its outcome is
    unknown; `renew` ends it."""

    def __init__(
        self,
        client: AsyncClient,
        topic: str,
        transactional_id: str,
        *,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self._client = client
        self._partition = TopicPartition(topic, 0)
        self._transactional_id = transactional_id
        self._now_ms = now_ms
        self._producer = _NO_PRODUCER
        self._next_sequence = 0
        self._versions = _Versions(None, None, adds_partition=False)

    async def take_over(self) -> None:
        """Fence the current producer of the transactional id, and abort its transaction."""
        self._versions = _versions(await self._client.request(API_VERSIONS_REQUEST, ApiVersionsResponse))
        await self._initialize(_NO_PRODUCER)

    async def renew(self) -> None:
        """End this producer's transaction, if one is open. Raises Fenced if another producer has taken over."""
        await self._initialize(self._producer)

    async def _initialize(self, own: ProducerIdAndEpoch) -> None:
        response = await self._ask_coordinator(
            InitProducerIdRequest(
                transactional_id=self._transactional_id,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
                producer_id=own.producer_id,
                producer_epoch=own.producer_epoch,
            ),
            InitProducerIdResponse,
        )
        self._refuse(response.error_code, "InitProducerId")
        self._producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        self._next_sequence = 0

    async def send(self, records: Sequence[LogRecord], topic_id: UUID) -> int:
        """Write the records in a new transaction, without ending it. Returns the offset of the last one.

        `topic_id` is the id of the topic that the writer has read. Where requests contain topic ids, nothing is written
        to a topic that was recreated meanwhile.
        """
        if self._versions.adds_partition:
            await self._add_partition()
        last_offset = -1
        for batch in _batches(records):
            last_offset = await self._produce(batch, topic_id)
        return last_offset

    async def _produce(self, records: Sequence[LogRecord], topic_id: UUID) -> int:
        now_ms = self._now_ms()
        batch = build_batch(
            [Record(now_ms, key, value) for key, value in records],
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            base_sequence=self._next_sequence,
            transactional=True,
        )
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=-1,
            timeout_ms=int(self._client.timeout_s * 1000),
            topic_data=(
                TopicProduceData(
                    name=self._partition.topic,
                    topic_id=topic_id,
                    partition_data=(PartitionProduceData(index=0, records=bytes(batch)),),
                ),
            ),
        )
        response = await self._client.request_leader(
            self._partition,
            request,
            ProduceResponse,
            self._versions.produce,
            code_of=lambda each: each.responses[0].partition_responses[0].error_code,
        )
        found = response.responses[0].partition_responses[0]
        self._refuse(found.error_code, found.error_message or f"writing to {self._partition}")
        self._next_sequence += len(records)
        return found.base_offset + len(records) - 1

    async def commit(self) -> None:
        response = await self._ask_coordinator(
            EndTxnRequest(
                transactional_id=self._transactional_id,
                producer_id=self._producer.producer_id,
                producer_epoch=self._producer.producer_epoch,
                committed=True,
            ),
            EndTxnResponse,
            self._versions.end_txn,
        )
        self._refuse(response.error_code, "EndTxn")
        if not self._versions.adds_partition:  # transactions v2
            self._producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
            self._next_sequence = 0

    async def _add_partition(self) -> None:
        topic = AddPartitionsToTxnTopic(name=self._partition.topic, partitions=(0,))
        response = await self._ask_coordinator(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._transactional_id,
                v3_and_below_producer_id=self._producer.producer_id,
                v3_and_below_producer_epoch=self._producer.producer_epoch,
                v3_and_below_topics=(topic,),
            ),
            AddPartitionsToTxnResponse,
            _ADD_PARTITIONS,
            code_of=_added_code,
        )
        self._refuse(_added_code(response), f"adding {self._partition} to the transaction")

    async def _ask_coordinator(
        self,
        request: Message,
        response_class: type[AnyResponse],
        version: int | None = None,
        *,
        code_of: Callable[[AnyResponse], int] = error_code_of,
    ) -> AnyResponse:
        """Resends the request if the response was lost, which is safe for all of these requests."""
        return await self._client.run(
            request_coordinator(
                self._client.core,
                CoordinatorKind.TRANSACTION,
                self._transactional_id,
                request,
                response_class,
                version,
                code_of=code_of,
                retry_on=_BUSY,
                resend=True,
            )
        )

    def _refuse(self, error_code: int, what: str) -> None:
        if error_code in _FENCED:
            raise Fenced(f"{what} of {self._transactional_id}: {ErrorCode(error_code).name}")
        refuse(error_code, what)


def _batches(records: Sequence[LogRecord]) -> Iterator[Sequence[LogRecord]]:
    start = size = 0
    for place, (key, value) in enumerate(records):
        length = len(key) + len(value or b"") + _RECORD_OVERHEAD
        if place > start and size + length > _BATCH_BYTES:
            yield records[start:place]
            start, size = place, 0
        size += length
    yield records[start:]


def _added_code(response: AddPartitionsToTxnResponse) -> int:
    return response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code


def _versions(served: ApiVersionsResponse) -> _Versions:
    level = max((each.max_version_level for each in served.finalized_features if each.name == _LEVEL), default=0)
    if level >= _TRANSACTIONS_V2:
        return _Versions(None, None, adds_partition=False)
    newest = {each.api_key: each.max_version for each in served.api_keys}
    return _Versions(
        min(_PRODUCE_BEFORE_V2, newest.get(ApiKey.PRODUCE, 0)),
        min(_END_TXN_BEFORE_V2, newest.get(ApiKey.END_TXN, 0)),
        adds_partition=True,
    )
