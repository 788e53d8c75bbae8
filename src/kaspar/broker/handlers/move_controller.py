"""MoveController, an API of Kaspar: the controller that runs here leaves its seat to another broker."""

from collections.abc import Callable

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.broker.cluster.membership import Membership
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.move_controller import MoveControllerRequest, MoveControllerResponse


class MoveControllerHandler:
    def __init__(self, membership: Callable[[], Membership | None]) -> None:
        """`membership` returns None on a broker that is not in a cluster."""
        self._membership = membership

    async def __call__(self, context: RequestContext, request: MoveControllerRequest) -> MoveControllerResponse:
        membership = self._membership()
        to = None if request.to_broker_id < 0 else BrokerId(request.to_broker_id)
        try:
            if membership is None:
                raise Refused(ErrorCode.INVALID_REQUEST, "This broker is not in a cluster: it is its own controller.")
            await membership.own.move(to)
        except Refused as refusal:
            return MoveControllerResponse(error_code=refusal.code, error_message=refusal.message)
        return MoveControllerResponse()
