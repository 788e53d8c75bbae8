"""UnregisterBroker: removes a broker that is permanently down from the cluster (KIP-500)."""

from typing import Final

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import UnregisterBroker
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

NO_MESSAGE: Final = ""
"""Kafka's default in this response, where others have null."""


class UnregisterBrokerHandler:
    def __init__(self, controller: ControllerChannel) -> None:
        self._controller = controller

    async def __call__(self, context: RequestContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
        try:
            await self._controller.submit(UnregisterBroker(BrokerId(request.broker_id)))
        except Refused as refusal:
            return UnregisterBrokerResponse(error_code=refusal.code, error_message=refusal.message)
        return UnregisterBrokerResponse(error_message=NO_MESSAGE)
