"""Writes the marker that ends a producer's transaction, or the fence of a prepared one, to a partition that this broker
leads.

Writing ends when the marker is committed. A coordinator whose state is in that partition replays the marker at once, in
the order of the log.
"""

import asyncio
from typing import Protocol

from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import Offset, ProducerIdAndEpoch, TopicPartition
from kaspar.broker.coordination.internal_topics import CONSUMER_OFFSETS
from kaspar.broker.coordination.markers import Marker, MarkerKind
from kaspar.broker.partitions import Partitions
from kaspar.broker.produce.appender import Appender
from kaspar.broker.services import CurrentSettings, Failures
from kaspar.records import ControlType, EndTransactionMarker
from kaspar.replication.partition import Partition


class ReplayMarker(Protocol):
    """How the group coordinator learns of a marker in a partition of `__consumer_offsets`."""

    def __call__(self, partition: int, producer: ProducerIdAndEpoch, *, committed: bool) -> None: ...


class LeaderMarkers:
    def __init__(
        self,
        partitions: Partitions,
        appender: Appender,
        failures: Failures,
        clock: Clock,
        settings: CurrentSettings,
        *,
        replay: ReplayMarker,
    ) -> None:
        self._partitions = partitions
        self._appender = appender
        self._failures = failures
        self._clock = clock
        self._settings = settings
        self._replay = replay

    async def write(self, partition: TopicPartition, marker: Marker) -> ErrorCode:
        """Write a marker. Returns NONE when it is committed; otherwise why it is not, or is not known to be."""
        topic, index = partition
        try:
            led = self._partitions.lead(topic, index)
            if led.log.cold:
                await self._appender.warm_up(led)
                led = self._partitions.lead(topic, index)  # it may no longer lead it
            end_offset = self._append(led, marker)
        except Refused as refusal:
            return refusal.code
        except StorageFailure as failure:
            self._failures.log_directory_failed(failure)
            return ErrorCode.KAFKA_STORAGE_ERROR
        if topic == CONSUMER_OFFSETS and marker.kind is not MarkerKind.FENCE:
            self._replay(index, marker.producer, committed=marker.kind is MarkerKind.COMMIT)
        self._appender.maybe_sync(led)
        if led.high_watermark >= end_offset:
            return ErrorCode.NONE
        return await _committed(led, end_offset, self._settings.config.request_timeout_ms / 1000)

    def _append(self, led: Partition, marker: Marker) -> Offset:
        """Append a marker. Returns the offset up to which the log has to be committed, which for a fence that is in the
        log already may not be committed either.
        """
        now_ms = self._clock.now_ms()
        producer_id, producer_epoch = marker.producer
        if marker.kind is MarkerKind.FENCE:
            led.append_fence(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=marker.coordinator_epoch,
                now_ms=now_ms,
            )
            return Offset(led.log.log_end_offset)
        control_type = ControlType.COMMIT if marker.kind is MarkerKind.COMMIT else ControlType.ABORT
        appended = led.append_marker(
            EndTransactionMarker(control_type, marker.coordinator_epoch),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_version=marker.transaction_version,
            now_ms=now_ms,
        )
        return Offset(appended.last_offset + 1)


async def _committed(partition: Partition, end_offset: Offset, timeout_s: float) -> ErrorCode:
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    partition.when_committed(end_offset, lambda: None if woken.done() else woken.set_result(None))
    try:
        async with asyncio.timeout(timeout_s):
            await woken
    except TimeoutError:
        return ErrorCode.REQUEST_TIMED_OUT
    # Also woken when this broker no longer leads the partition.
    return ErrorCode.NONE if partition.high_watermark >= end_offset else partition.why_not_leader().code
