"""WriteTxnFences: a coordinator fences producers of prepared transactions on partitions that this broker leads."""

import asyncio
from typing import Final

from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.markers import GiveMarker, Marker, MarkerKind
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.write_txn_fences import (
    TxnFence,
    TxnFenceResult,
    WriteTxnFencesRequest,
    WriteTxnFencesResponse,
)

NO_VERSION: Final = 0
"""A fence ends no transaction, so the version of the rules for ending it does not matter."""


class WriteTxnFencesHandler:
    def __init__(self, write_marker: GiveMarker) -> None:
        self._write_marker = write_marker

    async def __call__(self, context: RequestContext, request: WriteTxnFencesRequest) -> WriteTxnFencesResponse:
        codes = await asyncio.gather(*(self._write_marker(*_of_wire(fence)) for fence in request.fences))
        return WriteTxnFencesResponse(results=tuple(TxnFenceResult(error_code=code) for code in codes))


def _of_wire(fence: TxnFence) -> tuple[TopicPartition, Marker]:
    producer = ProducerIdAndEpoch(fence.producer_id, fence.producer_epoch)
    return (
        TopicPartition(fence.topic, fence.partition_index),
        Marker(MarkerKind.FENCE, producer, fence.coordinator_epoch, NO_VERSION),
    )
