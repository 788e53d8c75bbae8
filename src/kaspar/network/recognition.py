"""Requests that a connection sends again and again, recognized by their bytes.

Two commits of one consumer, or two heartbeats of one member, differ only in a few numbers. The first is decoded and
handled as any other, and what its other bytes mean is remembered with the connection. The next one with the same bytes
is not decoded again, and its response is filled into the bytes of an earlier one. Rules:
- A recognized request passes the same gates as any other (network/pipeline.py); only decoding and encoding are saved.
- `handle` returns None where anything is not as it was: then the handler is asked, and nothing has happened.
- It is used where it gains at least a factor of two on something that clients do all the time.
"""

from typing import NamedTuple, Protocol

from kaspar.network.gates import Principal
from kaspar.network.outgoing import Buffers
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.schema import Message


class KnownRequest(Protocol):
    """What one connection has sent before of one API."""

    @property
    def version(self) -> int: ...

    @property
    def client_id(self) -> str | None: ...

    def matches(self, buffer: bytes | bytearray, start: int, end: int) -> bool:
        """Whether the request is known but for its numbers. `handle` may then be called with it, at once."""
        ...

    def handle(self, buffer: bytearray, start: int, end: int) -> Buffers | None:
        """Handle it, and return its response, which has no error and no throttle time. None: nothing has happened."""
        ...


class HandledRequest(NamedTuple):
    """A request that took the normal path, with its response."""

    peer: str
    frame: memoryview
    header: RequestHeader
    request: Message
    response: Message
    principal: Principal


class Recognizer(Protocol):
    """Of one API: which of its requests are worth knowing."""

    def learn(self, known: KnownRequest | None, handled: HandledRequest) -> KnownRequest | None:
        """The request was handled with this response: what its connection knows from now on, if anything."""
        ...
