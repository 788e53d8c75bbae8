"""Requests that a connection sends repeatedly, recognized by their bytes.

Two commits of one consumer, or two heartbeats of one member, differ only in a few numbers. The first is decoded and
handled normally, and the meaning of its other bytes is remembered with the connection. The next one with the same bytes
is not decoded again, and its response is made from the bytes of an earlier one. Rules:
- A recognized request passes the same gates as any other (network/pipeline.py); only decoding and encoding are saved.
- `handle` returns None if anything has changed: then the handler is called, and `handle` has had no side effects.
- It is used where it gains at least a factor of two on something that clients do all the time.
"""

from typing import NamedTuple, Protocol

from kaspar.network.gates import Principal
from kaspar.network.outgoing import Buffers
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.schema import Message


class KnownRequest(Protocol):
    """A request of one API that the connection has sent before."""

    @property
    def version(self) -> int: ...

    @property
    def client_id(self) -> str | None: ...

    def matches(self, buffer: bytes | bytearray, start: int, end: int) -> bool:
        """Whether a request is the same except for its numbers. Then `handle` may be called with it, immediately."""
        ...

    def handle(self, buffer: bytearray, start: int, end: int) -> Buffers | None:
        """Handle the request. Returns its response, without error and throttle time, or None, without side effects."""
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
    """Decides which requests of one API are worth remembering."""

    def learn(self, known: KnownRequest | None, handled: HandledRequest) -> KnownRequest | None:
        """Called with a handled request. Returns what its connection should remember from now on, if anything."""
        ...
