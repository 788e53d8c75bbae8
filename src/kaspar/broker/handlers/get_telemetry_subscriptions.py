"""GetTelemetrySubscriptions: the metrics that a client should push, and how often (KIP-714)."""

from typing import Final

from kaspar.base.errors import Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.broker.services import CurrentSettings
from kaspar.broker.telemetry.telemetry import Telemetry
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kaspar.records.codec import Codec

_ACCEPTED: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""In order of preference."""


class GetTelemetrySubscriptionsHandler:
    def __init__(self, telemetry: Telemetry, settings: CurrentSettings) -> None:
        self._telemetry = telemetry
        self._settings = settings

    def __call__(
        self, context: RequestContext, request: GetTelemetrySubscriptionsRequest
    ) -> GetTelemetrySubscriptionsResponse:
        try:
            client_instance_id, subscribed = self._telemetry.subscribe(context, request.client_instance_id)
        except Refused as refusal:
            return GetTelemetrySubscriptionsResponse(
                error_code=refusal.code,
                client_instance_id=ZERO_UUID,
                subscription_id=0,
                push_interval_ms=0,
                telemetry_max_bytes=0,
                delta_temporality=False,
            )
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=client_instance_id,
            subscription_id=subscribed.id,
            accepted_compression_types=_ACCEPTED,
            push_interval_ms=subscribed.interval_ms,
            telemetry_max_bytes=self._settings.config.telemetry_max_bytes,
            delta_temporality=True,
            requested_metrics=subscribed.metrics,
        )
