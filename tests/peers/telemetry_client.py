"""A client that pushes metrics, request by request.

with broker.client() as client:
    subscribe(client, "s", metrics="*", interval_ms=100)
    pusher = Pusher(client)
    assert pusher.ask() == 0
    assert pusher.push(metrics_data(gauge("a", 1.0))) == 0
"""

import uuid

from kaspar.base.ids import ZERO_UUID
from kaspar.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kaspar.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from tests.peers.raw_client import RawClient

_CLIENT_METRICS = 16


def subscribe(client: RawClient, name: str, *, metrics: str, interval_ms: int, match: str = "") -> None:
    values = {"metrics": metrics, "interval.ms": str(interval_ms), "match": match}
    configs = tuple(AlterableConfig(name=key, config_operation=0, value=value) for key, value in values.items())
    resource = AlterConfigsResource(resource_type=_CLIENT_METRICS, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (response,) = client.call(request, IncrementalAlterConfigsResponse).responses
    assert response.error_code == 0, response.error_message


class Pusher:
    def __init__(self, client: RawClient, client_instance_id: uuid.UUID = ZERO_UUID) -> None:
        self._client = client
        self.id = client_instance_id
        self.subscription: GetTelemetrySubscriptionsResponse | None = None

    def ask(self) -> int:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=self.id)
        response = self._client.call(request, GetTelemetrySubscriptionsResponse)
        if response.error_code == 0:
            self.subscription = response
            self.id = response.client_instance_id
        return response.error_code

    def push(self, metrics: bytes, *, compression: int = 0, terminating: bool = False, wrong_by: int = 0) -> int:
        return self._client.call(
            self.request(metrics, compression=compression, terminating=terminating, wrong_by=wrong_by),
            PushTelemetryResponse,
        ).error_code

    def request(
        self, metrics: bytes, *, compression: int = 0, terminating: bool = False, wrong_by: int = 0
    ) -> PushTelemetryRequest:
        assert self.subscription is not None, "ask first"
        return PushTelemetryRequest(
            client_instance_id=self.id,
            subscription_id=self.subscription.subscription_id + wrong_by,
            terminating=terminating,
            compression_type=compression,
            metrics=metrics,
        )
