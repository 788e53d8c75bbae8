"""SubmitEvent, an API of Kaspar: another broker passes an event to the controller that runs here."""

from collections.abc import Callable

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.cluster.membership import Membership
from kaspar.controller.event_codec import decode_event, encode_reply
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.submit_event import SubmitEventRequest, SubmitEventResponse


class SubmitEventHandler:
    def __init__(self, membership: Callable[[], Membership | None]) -> None:
        """`membership` returns None on a broker that is not in a cluster."""
        self._membership = membership

    async def __call__(self, context: RequestContext, request: SubmitEventRequest) -> SubmitEventResponse:
        membership = self._membership()
        shell = None if membership is None else membership.own.shell
        try:
            if shell is None:
                raise Refused(ErrorCode.NOT_CONTROLLER, "This broker is not the controller.")
            reply, version = await shell.commit(decode_event(request.event, request.payload))
        except Refused as refusal:
            return SubmitEventResponse(error_code=refusal.code, error_message=refusal.message)
        return SubmitEventResponse(
            reply=encode_reply(reply), controller_epoch=version.controller_epoch, image_number=version.number
        )
