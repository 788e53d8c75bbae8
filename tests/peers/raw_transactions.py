"""A transactional producer in single steps: a test decides what is sent, in which epoch and when; no retry is hidden.

    producer = RawProducer(client, "transfers")
    producer.begin_life()
    producer.write("orders", b"one")
    producer.end(commit=True)

By default it speaks transactions v2 (KIP-890): a Produce adds its partition, and each end gives the next epoch.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kaspar.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kaspar.records import Codec, Record, build_batch
from tests.peers.raw_client import RawClient

# Of each API the last version that knows nothing of transactions v2, and the first that does.
PRODUCE = {1: 11, 2: 12}
END_TXN = {1: 4, 2: 5}
TXN_OFFSET_COMMIT = {1: 4, 2: 5}
ADD_PARTITIONS_FROM_CLIENTS = 3
INIT_PRODUCER_ID = 5
GROUP, TRANSACTION = 0, 1

MAY_PASS = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,  # so Produce says that the coordinator, asked about a transaction, said "later"
    }
)
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.01


class _WithError(Protocol):
    @property
    def error_code(self) -> int: ...


A = TypeVar("A", bound=_WithError)


def until_settled(ask: Callable[[], A], *, seconds: float = _PATIENCE_SECONDS) -> A:
    """The first response that is not "later"."""
    deadline = time.monotonic() + seconds
    while (response := ask()).error_code in MAY_PASS:
        assert time.monotonic() < deadline, f"error {response.error_code} for {seconds:.0f} s"
        time.sleep(_PAUSE_SECONDS)
    return response


def find_coordinator(client: RawClient, key: str, kind: int = TRANSACTION) -> None:
    """Makes the internal topic at its first use, and waits for it."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
    until_settled(lambda: client.call(request, FindCoordinatorResponse).coordinators[0])


@dataclass
class RawProducer:
    client: RawClient
    transactional_id: str
    timeout_ms: int = 60_000
    version: int = 2  # of transactions
    produce_version: int | None = None  # where it is to be an older one
    producer_id: int = -1
    epoch: int = -1
    _sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def begin_life(self) -> InitProducerIdResponse:
        """InitProducerId: the previous producer is fenced, and its open transaction is aborted."""
        find_coordinator(self.client, self.transactional_id)
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms)
        response = until_settled(lambda: self.client.call(request, InitProducerIdResponse, INIT_PRODUCER_ID))
        assert response.error_code == ErrorCode.NONE
        self._continue_as(response.producer_id, response.producer_epoch)
        return response

    def _continue_as(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch

    def add_partitions(self, topic: str, *partitions: int) -> int:
        """The first error code, or 0: what transactions v1 do before they write."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=partitions),),
        )
        response = self.client.call(request, AddPartitionsToTxnResponse, ADD_PARTITIONS_FROM_CLIENTS)
        codes = [each.partition_error_code for each in response.results_by_topic_v3_and_below[0].results_by_partition]
        return next((code for code in codes if code), 0)

    def batch(self, topic: str, values: Sequence[bytes], *, partition: int = 0) -> bytes:
        """The next batch of the transaction, its sequence counted."""
        now_ms = time.time_ns() // 1_000_000
        return self.batch_of(topic, [Record(now_ms, None, value) for value in values], partition=partition)

    def batch_of(
        self, topic: str, records: Sequence[Record], *, partition: int = 0, codec: Codec = Codec.NONE
    ) -> bytes:
        sequence = self._sequences.get((topic, partition), 0)
        self._sequences[topic, partition] = sequence + len(records)
        built = build_batch(
            records,
            codec=codec,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        return bytes(built)

    def send(self, topic: str, batch: bytes, *, partition: int = 0) -> PartitionProduceResponse:
        data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=batch),))
        request = ProduceRequest(transactional_id=self.transactional_id, acks=-1, timeout_ms=30_000, topic_data=(data,))
        response = self.client.call(request, ProduceResponse, self.produce_version or PRODUCE[self.version])
        return response.responses[0].partition_responses[0]

    def write(self, topic: str, *values: bytes, partition: int = 0) -> PartitionProduceResponse:
        """Insists until the transaction before this one has ended."""
        return self.write_batch(topic, self.batch(topic, values, partition=partition), partition=partition)

    def write_batch(self, topic: str, batch: bytes, *, partition: int = 0) -> PartitionProduceResponse:
        """Likewise."""
        return until_settled(lambda: self.send(topic, batch, partition=partition))

    def commit_offset(self, group: str, topic: str, offset: int, *, partition: int = 0) -> int:
        """The error code."""
        committed = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=None
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=(committed,)),),
        )
        response = self.client.call(request, TxnOffsetCommitResponse, TXN_OFFSET_COMMIT[self.version])
        return response.topics[0].partitions[0].error_code

    def end_request(self, *, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )

    def ask_to_end(self, request: EndTxnRequest) -> EndTxnResponse:
        """Once, whatever the response is."""
        return self.client.call(request, EndTxnResponse, END_TXN[self.version])

    def end(self, *, commit: bool) -> EndTxnResponse:
        """Insists until it is settled, and goes on in the epoch that the response gives."""
        request = self.end_request(commit=commit)
        response = until_settled(lambda: self.ask_to_end(request))
        if response.error_code == ErrorCode.NONE and self.version == 2:
            self._continue_as(response.producer_id, response.producer_epoch)
        return response
