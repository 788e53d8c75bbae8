"""The broker's side of client telemetry (KIP-714), which the two handlers call: Kafka's ClientMetricsManager."""

import functools
import uuid
from collections.abc import Hashable
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID, random_uuid
from kaspar.broker.services import CurrentSettings
from kaspar.broker.telemetry.clients import ClientInstance, ClientInstances
from kaspar.broker.telemetry.receiver import TelemetryReceiver
from kaspar.broker.telemetry.series import ClientSeries
from kaspar.broker.telemetry.stats import ClientMetricsStats
from kaspar.broker.telemetry.subscriptions import ClientAttributes, Subscribed, Subscriptions
from kaspar.broker.timers import Timers
from kaspar.metadata.images import ImageSource
from kaspar.network.api import RequestContext
from kaspar.network.connected_client import MAX_NAME_LENGTH, ConnectedClient
from kaspar.network.large_requests import RunBlocking
from kaspar.protocol.messages.push_telemetry import PushTelemetryRequest
from kaspar.records.codec import Codec

_RESERVED_IDS: Final = frozenset({ZERO_UUID, uuid.UUID(int=1)})


class Telemetry:
    def __init__(
        self,
        images: ImageSource,
        settings: CurrentSettings,
        timers: Timers,
        stats: ClientMetricsStats,
        run_blocking: RunBlocking,
    ) -> None:
        self._images = images
        self._settings = settings
        self._timers = timers
        self._stats = stats
        self._subscriptions = Subscriptions()
        self._instances = ClientInstances(self._subscriptions)
        self._receiver = TelemetryReceiver(settings, stats, run_blocking)

    def subscribe(self, context: RequestContext, client_instance_id: uuid.UUID) -> tuple[uuid.UUID, Subscribed]:
        """The client's subscription, with the client's id, which it gets here if it has none. Raises Refused."""
        if client_instance_id == ZERO_UUID:
            client_instance_id = self._new_id()
        client = self._client(context, client_instance_id)
        try:
            client.ask(self._timers.now_ms())
        except Refused:
            self._stats.throttled.value += 1
            raise
        return client_instance_id, client.subscribed

    async def push(self, context: RequestContext, request: PushTelemetryRequest) -> None:
        """Accept a push. Raises Refused."""
        if request.client_instance_id in _RESERVED_IDS:
            raise Refused(ErrorCode.INVALID_REQUEST, "invalid client instance id")
        client = self._client(context, request.client_instance_id)
        try:
            client.push(
                subscription_id=request.subscription_id,
                terminating=request.terminating,
                compression=request.compression_type,
                size=len(request.metrics),
                max_bytes=self._settings.config.telemetry_max_bytes,
                now_ms=self._timers.now_ms(),
            )
            if request.metrics:
                await self._receiver.take(client, Codec(request.compression_type), request.metrics)
        except Refused as refusal:
            client.last_error = refusal.code
            self._count(refusal.code)
            raise
        client.last_error = ErrorCode.NONE

    # -- for the metrics page, called from any thread ----------------------------------------------------------------

    @property
    def instance_count(self) -> int:
        return len(self._instances)

    def clients(self) -> list[ClientSeries]:
        return self._receiver.clients()

    # -- clients -----------------------------------------------------------------------------------------------------

    def _new_id(self) -> uuid.UUID:
        while (candidate := random_uuid()) in self._instances:
            pass
        return candidate

    def _client(self, context: RequestContext, client_instance_id: uuid.UUID) -> ClientInstance:
        self._subscriptions.update(self._images.current.client_metrics_configs)
        client, outdated = self._instances.get(_attributes(context, client_instance_id))
        for each in outdated:
            self._timers.cancel(self._expired, each)
            self._receiver.forget(each)
        if client.attributes.principal != str(context.principal):
            raise Refused(ErrorCode.INVALID_REQUEST, "the client instance id belongs to another principal")
        self._timers.set(self._expired, client_instance_id, self._timers.now_ms() + client.expires_after_ms)
        client.connection = context.client
        context.client.on_disconnect = functools.partial(self._disconnected, client, context.client)
        return client

    def _expired(self, client_instance_id: Hashable) -> None:
        assert isinstance(client_instance_id, uuid.UUID)
        self._forget(client_instance_id)

    def _disconnected(self, client: ClientInstance, connection: ConnectedClient) -> None:
        """Forget a client whose connection has closed, unless it has another one by now."""
        if not client.is_forgotten and client.connection is connection:
            self._forget(client.attributes.client_instance_id)

    def _forget(self, client_instance_id: uuid.UUID) -> None:
        self._timers.cancel(self._expired, client_instance_id)
        self._instances.forget(client_instance_id)
        self._receiver.forget(client_instance_id)

    def _count(self, code: ErrorCode) -> None:
        if code is ErrorCode.THROTTLING_QUOTA_EXCEEDED:
            self._stats.throttled.value += 1
        elif code is ErrorCode.UNKNOWN_SUBSCRIPTION_ID:
            self._stats.unknown_subscription_requests.value += 1


def _attributes(context: RequestContext, client_instance_id: uuid.UUID) -> ClientAttributes:
    address, _, port = context.peer.rpartition(":")
    return ClientAttributes(
        client_instance_id,
        None if context.client_id is None else context.client_id[:MAX_NAME_LENGTH],
        context.client.software_name,
        context.client.software_version,
        address,
        port,
        str(context.principal),
    )
