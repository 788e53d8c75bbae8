"""PushTelemetry: a client pushes the metrics that it has subscribed to (KIP-714)."""

from kaspar.base.errors import Refused
from kaspar.broker.telemetry.telemetry import Telemetry
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


class PushTelemetryHandler:
    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    async def __call__(self, context: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
        try:
            await self._telemetry.push(context, request)
        except Refused as refusal:
            return PushTelemetryResponse(error_code=refusal.code)
        return PushTelemetryResponse()
