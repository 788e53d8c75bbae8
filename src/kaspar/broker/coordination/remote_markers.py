"""Sends markers and fences to partitions that other brokers lead, like Kafka's TransactionMarkerChannelManager.

What is due at one broker is sent in one request: the markers of any number of transactions by WriteTxnMarkers, fences
by WriteTxnFences. If a broker cannot be reached or does not respond, the result is NETWORK_EXCEPTION: the marker may
have been written, and is written again, which does a partition no harm.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.broker.coordination.batched_calls import BatchedCalls
from kaspar.broker.coordination.markers import Marker, MarkerKind
from kaspar.broker.peers import Peers
from kaspar.broker.services import CurrentSettings, Tasks
from kaspar.protocol.messages.write_txn_fences import TxnFence, WriteTxnFencesRequest, WriteTxnFencesResponse
from kaspar.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

PATIENCE_S: Final = 5.0
"""How much longer than the leader waits for the commit its response is waited for."""
FENCES_VERSION: Final = 0


class DueMarker(NamedTuple):
    partition: TopicPartition
    marker: Marker


class RemoteMarkers:
    def __init__(self, peers: Peers, settings: CurrentSettings, tasks: Tasks) -> None:
        self._peers = peers
        self._settings = settings
        self._markers = BatchedCalls[DueMarker, ErrorCode](
            self._send_markers,
            identity=lambda due: (due.marker.producer.producer_id, due.partition),
            tasks=tasks,
            name="markers",
        )
        self._fences = BatchedCalls[DueMarker, ErrorCode](
            self._send_fences, identity=lambda due: due, tasks=tasks, name="fences"
        )

    async def give(self, leader: BrokerId, partition: TopicPartition, marker: Marker) -> ErrorCode:
        calls = self._fences if marker.kind is MarkerKind.FENCE else self._markers
        return await calls.call(leader, DueMarker(partition, marker))

    @property
    def _within_s(self) -> float:
        return self._settings.config.request_timeout_ms / 1000 + PATIENCE_S

    async def _send_markers(self, leader: BrokerId, due: Sequence[DueMarker]) -> list[ErrorCode]:
        request = WriteTxnMarkersRequest(markers=_to_wire(due))
        try:
            response = await self._peers.request(leader, request, WriteTxnMarkersResponse, within_s=self._within_s)
        except Refused as refusal:
            return [refusal.code] * len(due)
        codes = {
            (marker.producer_id, TopicPartition(topic.name, each.partition_index)): ErrorCode(each.error_code)
            for marker in response.markers
            for topic in marker.topics
            for each in topic.partitions
        }
        return [
            codes.get((marker.producer.producer_id, partition), ErrorCode.UNKNOWN_SERVER_ERROR)
            for partition, marker in due
        ]

    async def _send_fences(self, leader: BrokerId, due: Sequence[DueMarker]) -> list[ErrorCode]:
        request = WriteTxnFencesRequest(
            fences=tuple(
                TxnFence(
                    topic=partition.topic,
                    partition_index=partition.partition,
                    producer_id=marker.producer.producer_id,
                    producer_epoch=marker.producer.producer_epoch,
                    coordinator_epoch=marker.coordinator_epoch,
                )
                for partition, marker in due
            )
        )
        try:
            response = await self._peers.request(
                leader, request, WriteTxnFencesResponse, within_s=self._within_s, version=FENCES_VERSION
            )
        except Refused as refusal:
            return [refusal.code] * len(due)
        return [ErrorCode(result.error_code) for result in response.results]


def _to_wire(due: Sequence[DueMarker]) -> tuple[WritableTxnMarker, ...]:
    """The wire form: one entry for each transaction, with all of its partitions."""
    topics: dict[Marker, dict[str, list[int]]] = {}
    for (topic, index), marker in due:
        topics.setdefault(marker, {}).setdefault(topic, []).append(index)
    return tuple(
        WritableTxnMarker(
            producer_id=marker.producer.producer_id,
            producer_epoch=marker.producer.producer_epoch,
            transaction_result=marker.kind is MarkerKind.COMMIT,
            topics=tuple(
                WritableTxnMarkerTopic(name=topic, partition_indexes=tuple(indexes))
                for topic, indexes in by_topic.items()
            ),
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
        for marker, by_topic in topics.items()
    )
