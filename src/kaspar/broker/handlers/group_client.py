"""Who asks, as a group knows its members: what the handlers of group requests share."""

import uuid

from kaspar.base.ids import ZERO_UUID
from kaspar.broker.handlers import RequestContext
from kaspar.groups.group import Client


def client_of(context: RequestContext, *, may_be_new: bool = False) -> Client:
    """`may_be_new`: it may need a member id, which is made of a random one."""
    new_id = uuid.uuid4() if may_be_new else ZERO_UUID
    return Client(context.client_id or "", host_of(context.peer), context.version, new_id)


def host_of(peer: str) -> str:
    """Written as Java writes it."""
    return f"/{peer.rpartition(':')[0]}"
