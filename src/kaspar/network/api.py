"""The interface between the request pipeline and the handler of an API: what a handler is given, and what it returns.

A handler is any callable that takes a `RequestContext` and the decoded request. Its other dependencies (partitions, the
image, a coordinator) are passed to its constructor; broker/wiring.py connects them.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kaspar.network.connected_client import ConnectedClient
from kaspar.network.gates import ANONYMOUS, Principal
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.schema import Message


class PartlyEncoded(NamedTuple):
    """A response with arrays that are already encoded (by field name), because they are large and rarely change."""

    message: Message
    encoded: Mapping[str, Sequence[bytes]]
    error_counts: Mapping[int, int]
    """The error codes in the encoded arrays, and how often each occurs."""


Response = Message | PartlyEncoded


class LaterResponse:
    """A response that is not available yet. It can be awaited; a callback costs less, which matters because a rebalance
    responds to hundreds of requests at once.
    """

    __slots__ = ()

    def on_response(self, receive: Callable[[Message], None]) -> None:
        """Call back with the response, immediately if it is available. The callback must not raise."""
        raise NotImplementedError

    def __await__(self) -> Generator[Any, None, Message]:
        raise NotImplementedError


HandlerResult = Response | Awaitable[Response]
"""What a handler returns: the response, or an awaitable of it, which may be a `LaterResponse`."""

Handler = Callable[["RequestContext", Any], HandlerResult]


class RequestContext(NamedTuple):
    """What a handler may need to know about a request besides its message: the version, the client, the listener."""

    api_key: ApiKey
    version: int
    correlation_id: int
    client_id: str | None
    peer: str
    listener: str
    principal: Principal = ANONYMOUS
    security_protocol: str = "PLAINTEXT"
    client: ConnectedClient = ConnectedClient()
    """The client of the connection. The default is for requests without a connection."""


@dataclass(frozen=True, slots=True)
class ServedApi:
    """An API that the broker serves, and the range of its versions."""

    key: ApiKey
    first_version: int
    last_version: int


class Purgatory(NamedTuple):
    """Requests of one kind that wait. Each counts once in `delayed`, and in `watched` for each partition."""

    name: str
    watched: int
    delayed: int
