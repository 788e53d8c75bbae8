"""Receives the metrics that clients push, and keeps them for the metrics page, as a telemetry plugin of Kafka would.

- Pushes are decompressed and read in a thread, one at a time. At most MAX_WAITING wait for that, others are throttled.
  A push may not decompress to more than `telemetry.max.bytes`.
- Only metrics that a client has a subscription for are kept, so clients can add nothing that no operator requested. All
  clients together may have `kaspar.telemetry.max.series`, and each at most MAX_CLIENT_SERIES.
- Another thread writes the page, so the data that it reads is replaced, never changed.
"""

import asyncio
import time
import uuid
from typing import Final

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.log import get_log
from kaspar.broker.services import CurrentSettings
from kaspar.broker.telemetry.clients import ClientInstance
from kaspar.broker.telemetry.otlp import read_metrics
from kaspar.broker.telemetry.series import ClientSeries, Series, Updated, client_labels, updated
from kaspar.broker.telemetry.stats import ClientMetricsStats
from kaspar.broker.telemetry.subscriptions import Subscribed
from kaspar.network.large_requests import RunBlocking
from kaspar.records.codec import Codec
from kaspar.records.inflate import inflate

log = get_log(__name__)

MAX_CLIENT_SERIES: Final = 10_000
MAX_WAITING: Final = 64
WARN_EVERY_S: Final = 300.0


class TelemetryReceiver:
    def __init__(self, settings: CurrentSettings, stats: ClientMetricsStats, run_blocking: RunBlocking) -> None:
        self._settings = settings
        self._stats = stats
        self._run_blocking = run_blocking
        self._clients: dict[uuid.UUID, ClientSeries] = {}
        self._series_count = 0
        self._waiting = 0
        self._thread = asyncio.Lock()
        self._warned = -WARN_EVERY_S

    def clients(self) -> list[ClientSeries]:
        """May be called from any thread."""
        return list(self._clients.values())

    def forget(self, client_instance_id: uuid.UUID) -> None:
        gone = self._clients.pop(client_instance_id, None)
        if gone is not None:
            self._series_count -= len(gone.series)

    async def take(self, client: ClientInstance, codec: Codec, metrics: bytes) -> None:
        """Read and keep the metrics of one push. Raises Refused."""
        if self._waiting >= MAX_WAITING:
            raise Refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too many pushes at once")
        self._waiting += 1
        try:
            async with self._thread:
                await self._take(client, codec, metrics)
        except Refused:
            self._stats.errors.value += 1
            raise
        finally:
            self._waiting -= 1

    async def _take(self, client: ClientInstance, codec: Codec, metrics: bytes) -> None:
        started = time.perf_counter()
        config = self._settings.config
        client_id, subscribed = client.attributes.client_instance_id, client.subscribed
        before = self._series_of(client_id)
        room = max(0, config.kaspar_telemetry_max_series - self._series_count)
        max_series = min(MAX_CLIENT_SERIES, len(before) + room)
        result = await self._run_blocking(
            _read, codec, metrics, config.telemetry_max_bytes, subscribed, before, max_series
        )
        if client.is_forgotten:
            return
        self.forget(client_id)
        if result.series:
            self._clients[client_id] = ClientSeries(client_labels(client.attributes), result.series)
            self._series_count += len(result.series)
        if result.left_out:
            self._maybe_warn(client, result.left_out)
        self._stats.exports.value += 1
        self._stats.export_time.record(time.perf_counter() - started)

    def _series_of(self, client_id: uuid.UUID) -> Series:
        known = self._clients.get(client_id)
        return _NOTHING if known is None else known.series

    def _maybe_warn(self, client: ClientInstance, left_out: int) -> None:
        now = time.monotonic()
        if now - self._warned < WARN_EVERY_S:
            return
        self._warned = now
        log.warning(
            "dropped metrics that a client pushed",
            client=(client.attributes.client_id or "")[:64],
            left_out=left_out,
            series=self._series_count,
            limit=self._settings.config.kaspar_telemetry_max_series,
        )


_NOTHING: Final[Series] = {}


def _read(
    codec: Codec, metrics: bytes, max_bytes: int, subscribed: Subscribed, before: Series, max_series: int
) -> Updated:
    inflated = bytearray()
    try:
        for chunk in inflate(codec, metrics):
            inflated += chunk
            if len(inflated) > max_bytes:
                raise Refused(ErrorCode.TELEMETRY_TOO_LARGE, f"it decompresses to more than {max_bytes} bytes")
    except Refused as refusal:
        if refusal.code is ErrorCode.TELEMETRY_TOO_LARGE:
            raise
        raise Refused(ErrorCode.INVALID_RECORD, refusal.message) from None
    try:
        points = (point for point in read_metrics(bytes(inflated)) if subscribed.includes(point.metric))
        return updated(before, points, max_series)
    except MalformedBytes as problem:
        raise Refused(ErrorCode.INVALID_RECORD, str(problem)) from None
