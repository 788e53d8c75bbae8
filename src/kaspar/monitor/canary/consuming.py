"""Reads the records of all partitions back: one long-polling fetch per broker that leads some, without a group.

The broker holds a fetch until there are records, so fetches have their own connections. While a partition moves, two
fetches may return the same records; the ledger's position decides which ones count.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, KasparError
from kaspar.client.async_client import AsyncClient
from kaspar.client.cluster_core import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, refuse
from kaspar.monitor.canary.context import CanaryContext, log_bug
from kaspar.monitor.canary.records import parse
from kaspar.monitor.canary.topic import View
from kaspar.protocol.messages import fetch, list_offsets
from kaspar.records import iter_headers, iter_visible

_BACKOFF_S: Final = 0.2
_MAX_WAIT_MS: Final = 1_000
_MAX_BYTES: Final = 1024 * 1024
_NO_END: Final = 2**63 - 1


class Consuming:
    def __init__(self, client: AsyncClient, context: CanaryContext) -> None:
        self._client = client
        self._context = context
        self._readers: dict[int, asyncio.Task[None]] = {}

    def follow(self, view: View | None) -> None:
        """Have one reader for each broker that leads a partition, and no others."""
        leaders = set() if view is None else {each.leader for each in view.partitions.values() if each.leader >= 0}
        for broker in self._readers.keys() - leaders:
            self._readers.pop(broker).cancel()
            self._context.succeeded(_part(broker))
        for broker in leaders - self._readers.keys():
            self._readers[broker] = reader = asyncio.create_task(self._read_from(broker))
            reader.add_done_callback(log_bug)

    async def close(self) -> None:
        readers = list(self._readers.values())
        self._readers.clear()
        for task in readers:
            task.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    async def _read_from(self, broker: int) -> None:
        while True:
            try:
                await self._round(broker)
            except (OSError, KasparError) as problem:
                self._context.failed(_part(broker), problem)
                await asyncio.sleep(_BACKOFF_S)
            else:
                self._context.succeeded(_part(broker))

    async def _round(self, broker: int) -> None:
        view = self._context.view
        numbers = [] if view is None else view.led_by(broker)
        if view is None or not numbers:
            await asyncio.sleep(_BACKOFF_S)
            return
        ledger = self._context.ledger
        if unknown := [number for number in numbers if ledger.partition(number).position is None]:
            for number, end in (await self._offsets(broker, unknown, LATEST_TIMESTAMP)).items():
                if self._is_current(view):
                    ledger.partition(number).start(end)
        response = await self._client.request_broker(broker, self._request(view, numbers), fetch.FetchResponse)
        refuse(response.error_code, f"fetching from broker {broker}")
        if not response.responses and response.throttle_time_ms:
            await asyncio.sleep(response.throttle_time_ms / 1000)
        if self._is_current(view):
            for each in (each for topic in response.responses for each in topic.partitions):
                await self._take(broker, view, each)

    def _is_current(self, view: View) -> bool:
        """Whether the topic has not been recreated since the view."""
        return self._context.view is not None and self._context.view.topic_id == view.topic_id

    def _request(self, view: View, numbers: Iterable[int]) -> fetch.FetchRequest:
        positions = {number: self._context.ledger.partition(number).position for number in numbers}
        partitions = tuple(
            fetch.FetchPartition(partition=number, fetch_offset=position, partition_max_bytes=_MAX_BYTES)
            for number, position in positions.items()
            if position is not None
        )
        topic = fetch.FetchTopic(
            topic=self._context.settings.canary_topic, topic_id=view.topic_id, partitions=partitions
        )
        return fetch.FetchRequest(max_wait_ms=_MAX_WAIT_MS, min_bytes=1, max_bytes=_MAX_BYTES, topics=(topic,))

    async def _take(self, broker: int, view: View, data: fetch.PartitionData) -> None:
        number = data.partition_index
        partition = self._context.ledger.partition(number)
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._relocate(broker, view, number)
            return
        refuse(data.error_code, f"fetching from {self._context.settings.canary_topic}-{number}")
        if not data.records or partition.position is None:
            return
        now_ms = self._context.now_ms()
        records = memoryview(data.records)
        position = partition.position
        for record in iter_visible(records, (), position, _NO_END):
            found = parse(record.value)
            if found is not None and found.run == self._context.run:
                partition.read(found.sequence, record.offset, now_ms)
        *_, (_, last) = iter_headers(records, 0, len(records))
        partition.advance(last.last_offset + 1, now_ms)

    async def _relocate(self, broker: int, view: View, number: int) -> None:
        """Correct the position after the log was truncated, or its start has moved past the position."""
        partition = self._context.ledger.partition(number)
        position = partition.position
        start = (await self._offsets(broker, [number], EARLIEST_TIMESTAMP)).get(number)
        end = (await self._offsets(broker, [number], LATEST_TIMESTAMP)).get(number)
        if start is not None and end is not None and position is not None and self._is_current(view):
            partition.relocate(position, start, end, self._context.now_ms())

    async def _offsets(self, broker: int, numbers: Iterable[int], timestamp: int) -> dict[int, int]:
        """The offsets of those partitions that the broker leads. The others are found after a metadata refresh."""
        topic = self._context.settings.canary_topic
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=(
                list_offsets.ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(
                        list_offsets.ListOffsetsPartition(partition_index=number, timestamp=timestamp)
                        for number in numbers
                    ),
                ),
            ),
        )
        response = await self._client.request_broker(broker, request, list_offsets.ListOffsetsResponse)
        found: dict[int, int] = {}
        for each in response.topics[0].partitions:
            if each.error_code in RETRIABLE:
                self._context.stale.set()
            else:
                refuse(each.error_code, f"listing offsets of {topic}-{each.partition_index}")
                found[each.partition_index] = each.offset
        return found


def _part(broker: int) -> str:
    return f"broker {broker}"
