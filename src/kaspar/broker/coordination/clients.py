"""The client that sent a request, as a group identifies its members. Shared by the handlers of group requests."""

import uuid
from collections.abc import Callable
from typing import TypeAlias

from kaspar.base.ids import ZERO_UUID
from kaspar.groups.group import GroupClient
from kaspar.network.api import RequestContext
from kaspar.network.gates import Principal
from kaspar.protocol.headers import RequestHeader

DescribesOf: TypeAlias = Callable[[Principal, str], Callable[[str], bool]]
"""For a principal and its peer, whether it may describe a topic."""


def client_of(
    context: RequestContext, *, may_be_new: bool = False, describes_of: DescribesOf | None = None
) -> GroupClient:
    """The client of a request. `may_be_new`: it may need a member id, for which it gets a random id. `describes_of` is
    None without an authorizer.
    """
    new_id = uuid.uuid4() if may_be_new else ZERO_UUID
    describes = None if describes_of is None else describes_of(context.principal, context.peer)
    return GroupClient(context.client_id or "", host_of(context.peer), context.version, new_id, describes)


def client_of_header(
    header: RequestHeader, peer: str, principal: Principal, describes_of: DescribesOf | None
) -> GroupClient:
    """The client of a request whose member has an id already."""
    describes = None if describes_of is None else describes_of(principal, peer)
    return GroupClient(header.client_id or "", host_of(peer), header.api_version, ZERO_UUID, describes)


def host_of(peer: str) -> str:
    """The host as Java's InetAddress writes it."""
    return f"/{peer.rpartition(':')[0]}"
