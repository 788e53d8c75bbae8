"""WriteTxnMarkers: a coordinator, or an administrator (kafka-transactions abort), ends transactions on partitions that
this broker leads.
"""

import asyncio

from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.markers import GiveMarker, Marker, MarkerKind
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


class WriteTxnMarkersHandler:
    def __init__(self, write_marker: GiveMarker) -> None:
        self._write_marker = write_marker

    async def __call__(self, context: RequestContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """Write the markers. A producer that is named more than once has one result, with all of its partitions."""
        results = await asyncio.gather(*(self._write(marker) for marker in request.markers))
        by_producer: dict[int, dict[str, dict[int, int]]] = {}
        for marker, codes in zip(request.markers, results, strict=True):
            topics = by_producer.setdefault(marker.producer_id, {})
            for (topic, index), code in codes.items():
                topics.setdefault(topic, {})[index] = code
        return WriteTxnMarkersResponse(
            markers=tuple(
                WritableTxnMarkerResult(
                    producer_id=producer_id,
                    topics=tuple(
                        WritableTxnMarkerTopicResult(
                            name=name,
                            partitions=tuple(
                                WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                                for index, code in codes.items()
                            ),
                        )
                        for name, codes in topics.items()
                    ),
                )
                for producer_id, topics in by_producer.items()
            )
        )

    async def _write(self, marker: WritableTxnMarker) -> dict[TopicPartition, int]:
        wanted = [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
        codes = await asyncio.gather(
            *(self._write_marker(topic_partition, _marker(marker)) for topic_partition in wanted)
        )
        return dict(zip(wanted, codes, strict=True))


def _marker(marker: WritableTxnMarker) -> Marker:
    return Marker(
        MarkerKind.COMMIT if marker.transaction_result else MarkerKind.ABORT,
        ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch),
        marker.coordinator_epoch,
        marker.transaction_version,
    )
