"""Writes the marker that ends a producer's transaction on a partition that this broker leads.

A marker counts when it is committed, and whoever asked for it hears of it then. A coordinator whose state is in that
partition takes it in at once, in the order of the log.
"""

import asyncio
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import Offset, ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.internal_topics import CONSUMER_OFFSETS
from kaspar.records import ControlType, EndTransactionMarker
from kaspar.replication.partition import Partition

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


async def write_marker(
    broker: "Broker",
    topic_partition: TopicPartition,
    producer: ProducerIdAndEpoch,
    *,
    committed: bool,
    coordinator_epoch: int,
    transaction_version: int,
) -> ErrorCode:
    """NONE when the marker is committed; otherwise why it is not, or not known to be."""
    topic, index = topic_partition
    marker = EndTransactionMarker(ControlType.COMMIT if committed else ControlType.ABORT, coordinator_epoch)
    try:
        partition = broker.partitions.lead(topic, index)
        if partition.log.cold:
            await broker.appends.warm_up(partition)
            partition = broker.partitions.lead(topic, index)  # it may lead it no longer
        appended = partition.append_marker(
            marker,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_version=transaction_version,
            now_ms=broker.clock.now_ms(),
        )
    except Refused as refusal:
        return refusal.code
    except StorageFailure as failure:
        broker.log_directory_failed(failure)
        return ErrorCode.KAFKA_STORAGE_ERROR
    if topic == CONSUMER_OFFSETS:
        broker.groups.runtime.marker_written(index, producer, committed=committed)
    if partition.log.unflushed_messages >= partition.log.config.flush_messages:
        broker.syncing.ask(partition)
    end_offset = Offset(appended.last_offset + 1)
    if partition.high_watermark >= end_offset:
        return ErrorCode.NONE
    return await _committed(partition, end_offset, broker.config.request_timeout_ms / 1000)


async def _committed(partition: Partition, end_offset: Offset, timeout_s: float) -> ErrorCode:
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    partition.when_committed(end_offset, lambda: None if woken.done() else woken.set_result(None))
    try:
        async with asyncio.timeout(timeout_s):
            await woken
    except TimeoutError:
        return ErrorCode.REQUEST_TIMED_OUT
    # Woken as well when the partition is no longer ours to commit.
    return ErrorCode.NONE if partition.high_watermark >= end_offset else partition.why_not_leader().code
