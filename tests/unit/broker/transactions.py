"""A transaction's coordinator that says what a test wants, when it wants; and what its producers send."""

import asyncio
from collections.abc import Collection
from typing import NamedTuple

from kaspar.base.clock import SystemClock
from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.markers import Marker, MarkerKind
from kaspar.broker.server import Broker
from kaspar.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kaspar.replication.partition import Partition
from tests.unit.broker.running import Client
from tests.unit.storage.logs import make_batch

P = ProducerIdAndEpoch(7, 3)
Q = ProducerIdAndEpoch(8, 0)
FIRST_OF_VERSION_2 = 12


class Question(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: frozenset[TopicPartition]
    add: bool


class Coordinator:
    """Stands in for the coordinator that a leader asks."""

    def __init__(self, broker: Broker) -> None:
        self.asked: list[Question] = []
        self.code = ErrorCode.NONE
        self.problem: Exception | None = None
        self._may_respond = asyncio.Event()
        self._may_respond.set()
        broker.verifier.coordinator = self

    def hold(self) -> None:
        """Calls from now on wait for `respond`."""
        self._may_respond = asyncio.Event()

    def respond(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.code = code
        self._may_respond.set()

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> dict[TopicPartition, ErrorCode]:
        self.asked.append(Question(transactional_id, producer, frozenset(partitions), add))
        await self._may_respond.wait()
        if self.problem is not None:
            raise self.problem
        return dict.fromkeys(partitions, self.code)


def batch_of(producer: ProducerIdAndEpoch, sequence: int, *values: bytes) -> bytearray:
    return make_batch(
        values or (b"v",),
        timestamp=SystemClock().now_ms(),  # as markers have it: a segment whose records are years apart would be rolled
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=sequence,
        transactional=True,
    )


def produce(
    client: Client,
    *batches: tuple[str, int, bytes | bytearray],
    version: int = FIRST_OF_VERSION_2,
    transactional_id: str | None = "t-id",
    acks: int = -1,
) -> None:
    topics = tuple(
        TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=bytes(batch)),))
        for topic, partition, batch in batches
    )
    request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=30_000, topic_data=topics)
    client.send(request, version=version, has_response=acks != 0)


async def end(
    broker: Broker, partition: Partition, producer: ProducerIdAndEpoch, *, committed: bool, transaction_version: int = 0
) -> ErrorCode:
    kind = MarkerKind.COMMIT if committed else MarkerKind.ABORT
    return await broker.markers.write(partition.topic_partition, Marker(kind, producer, 0, transaction_version))
