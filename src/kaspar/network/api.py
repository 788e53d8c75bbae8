"""What a handler of an API is to the request pipeline: what it is given, and what it returns.

A handler is any callable that takes a `RequestContext` and the decoded request. What else it needs (partitions, the
image, a coordinator) its constructor gets; broker/wiring.py puts them together.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kaspar.network.connected_client import ConnectedClient
from kaspar.network.gates import ANONYMOUS, Principal
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.schema import Message


class PartlyEncoded(NamedTuple):
    """A response some of whose arrays are already encoded (by field name): what is large and rarely changes."""

    message: Message
    encoded: Mapping[str, Sequence[bytes]]
    error_counts: Mapping[int, int]
    """The error codes in what is encoded, and how often each occurs."""


Response = Message | PartlyEncoded


class LaterResponse:
    """A response that is not there yet. It can be awaited; a callback costs less, and a rebalance responds to hundreds
    of requests at once.
    """

    __slots__ = ()

    def on_response(self, receive: Callable[[Message], None]) -> None:
        """Call back with the response, at once if it is there. The callback must not raise."""
        raise NotImplementedError

    def __await__(self) -> Generator[Any, None, Message]:
        raise NotImplementedError


HandlerResult = Response | Awaitable[Response]
"""What a handler returns: the response, or an awaitable of it, which may be a `LaterResponse`."""

Handler = Callable[["RequestContext", Any], HandlerResult]


class RequestContext(NamedTuple):
    """What a handler may need to know of a request beyond its message: the version, the client, where it came in."""

    api_key: ApiKey
    version: int
    correlation_id: int
    client_id: str | None
    peer: str
    listener: str
    principal: Principal = ANONYMOUS
    security_protocol: str = "PLAINTEXT"
    client: ConnectedClient = ConnectedClient()
    """Of the connection. The default is for requests that come over none."""


@dataclass(frozen=True, slots=True)
class ServedApi:
    """An API that the broker serves, and the range of its versions."""

    key: ApiKey
    first_version: int
    last_version: int


class Purgatory(NamedTuple):
    """Requests of one kind that wait: each counts once in `delayed`, and in `watched` for each of its partitions."""

    name: str
    watched: int
    delayed: int
