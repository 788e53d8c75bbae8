"""Writes one record per interval to each partition, with acks=all and idempotent producers.

Each partition has its own producer id. If the outcome of a record is unknown, its partition gets a new id, which does
not affect the others. A record is resent, with its sequence number, until it is acknowledged or times out.
"""

import asyncio
from typing import Final
from uuid import UUID

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.client.async_client import AsyncClient
from kaspar.client.cluster_core import refuse
from kaspar.monitor.canary.context import CanaryContext, log_bug
from kaspar.monitor.canary.records import CanaryRecord
from kaspar.monitor.canary.topic import View
from kaspar.protocol.messages import produce
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.records import Record, build_batch

_BACKOFF_S: Final = 0.1
_ALL: Final = -1
_PASSES: Final = RETRIABLE | {ErrorCode.BROKER_NOT_AVAILABLE}
"""Retriable errors of brokers, and the client's own error while the leader has left the cluster."""


class _Producer:
    """The idempotent producer of one partition."""

    __slots__ = ("epoch", "id", "sequence")

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.id = producer_id
        self.epoch = epoch
        self.sequence = 0


class Producing:
    def __init__(self, client: AsyncClient, context: CanaryContext) -> None:
        self._client = client
        self._context = context
        self._producers: dict[int, _Producer] = {}
        self._deliveries: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Send records until cancelled."""
        interval_s = self._context.settings.canary_interval_ms / 1000
        due = self._context.clock.monotonic()
        try:
            while True:
                self._send_all()
                due = max(due + interval_s, self._context.clock.monotonic())  # missed intervals are skipped
                await asyncio.sleep(due - self._context.clock.monotonic())
        finally:
            for task in self._deliveries:
                task.cancel()
            await asyncio.gather(*self._deliveries, return_exceptions=True)

    def _send_all(self) -> None:
        view, ledger, now_ms = self._context.view, self._context.ledger, self._context.now_ms()
        if view is None:
            return
        for number in view.partitions:
            sequence = ledger.partition(number).begin(now_ms)
            if sequence is not None:
                task = asyncio.create_task(self._deliver(view, number, sequence))
                self._deliveries.add(task)
                task.add_done_callback(self._deliveries.discard)
                task.add_done_callback(log_bug)

    async def _deliver(self, view: View, number: int, sequence: int) -> None:
        """Deliver the record, and add its outcome to the ledger."""
        partition = self._context.ledger.partition(number)
        part = _part(number)
        try:
            async with asyncio.timeout(self._context.settings.canary_delivery_timeout_ms / 1000):
                offset = await self._until_acknowledged(view.topic_id, number, sequence)
        except (OSError, KasparError) as problem:  # includes TimeoutError
            self._producers.pop(number, None)
            self._context.failed(part, str(problem) or self._context.problems.get(part) or "not acknowledged in time")
            partition.fail(sequence, self._context.now_ms())
        else:
            partition.acknowledge(sequence, offset, self._context.now_ms())
            self._context.succeeded(part)

    async def _until_acknowledged(self, topic_id: UUID, number: int, sequence: int) -> int:
        """Send until the record is acknowledged, and return its offset. Raises Refused for an error that is not
        transient."""
        while True:
            view = self._context.view
            if view is None or view.topic_id != topic_id:
                raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the canary's topic was deleted")
            try:
                return await self._attempt(view, number, sequence)
            except Refused as refused:
                if refused.code not in _PASSES:
                    raise
                problem: Exception = refused
            except OSError as error:
                problem = error
            self._context.failed(_part(number), problem)
            await asyncio.sleep(_BACKOFF_S)

    async def _attempt(self, view: View, number: int, sequence: int) -> int:
        topic = self._context.settings.canary_topic
        leader = view.partitions[number].leader
        if leader < 0:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {number} of {topic} has no leader")
        producer = self._producers.get(number) or await self._new_producer(number)
        record = Record(self._context.clock.now_ms(), None, CanaryRecord(self._context.run, sequence).to_bytes())
        batch = build_batch(
            [record], producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=producer.sequence
        )
        data = produce.PartitionProduceData(index=number, records=bytes(batch))
        request = produce.ProduceRequest(
            acks=_ALL,
            timeout_ms=int(self._client.timeout_s * 1000),
            topic_data=(produce.TopicProduceData(name=topic, topic_id=view.topic_id, partition_data=(data,)),),
        )
        response = await self._client.request_broker(leader, request, produce.ProduceResponse)
        found = response.responses[0].partition_responses[0]
        refuse(found.error_code, found.error_message or f"producing to {topic}-{number}")
        producer.sequence += 1
        return found.base_offset

    async def _new_producer(self, number: int) -> _Producer:
        response = await self._client.request(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), InitProducerIdResponse
        )
        refuse(response.error_code, "getting a producer id")
        self._producers[number] = producer = _Producer(response.producer_id, response.producer_epoch)
        return producer


def _part(number: int) -> str:
    return f"partition {number}"
