"""WriteTxnMarkers: coordinators end transactions on the partitions that this broker leads; so does an administrator who
ends one by hand.
"""

import asyncio
from typing import TYPE_CHECKING

from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.broker.handlers import RequestContext
from kaspar.broker.markers import write_marker
from kaspar.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


async def handle(broker: "Broker", context: RequestContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """A producer that is named more than once is answered once, about all of its partitions."""
    answers = await asyncio.gather(*(_write(broker, marker) for marker in request.markers))
    by_producer: dict[int, dict[str, dict[int, int]]] = {}
    for marker, codes in zip(request.markers, answers, strict=True):
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


async def _write(broker: "Broker", marker: WritableTxnMarker) -> dict[TopicPartition, int]:
    wanted = [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
    codes = await asyncio.gather(
        *(
            write_marker(
                broker,
                topic_partition,
                ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch),
                committed=marker.transaction_result,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
            for topic_partition in wanted
        )
    )
    return dict(zip(wanted, codes, strict=True))
