"""Moves the controller to another broker. Only Kaspar's clusters support this."""

from kaspar.client.admin.session import Admin, kaspar_only, refuse
from kaspar.protocol.messages.move_controller import MoveControllerRequest, MoveControllerResponse

_ANY_OTHER = -1


def move_controller(admin: Admin, controller_id: int, to: int | None = None) -> None:
    """Ask the controller to resign in favour of a broker, or of any other (None). Raises Refused, UnsupportedByPeer and
    OSError."""
    request = MoveControllerRequest(to_broker_id=_ANY_OTHER if to is None else to)
    with kaspar_only(controller_id):
        response = admin.client.request_broker(controller_id, request, MoveControllerResponse, version=0)
    refuse(response.error_code, response.error_message)
