"""What one client may cost an HTTP server. Anyone who reaches the port can connect, so all of it is bounded."""

from dataclasses import dataclass
from typing import Final

from kaspar.config.units import KIB
from kaspar.web.settings import WebSettings


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """- Beyond `connections` the one that has waited longest is closed. A TLS handshake under way counts.
    - A client has `head_within_s` for a handshake, for the head of its first request, and for each later head from its
      first byte. What it still sends of a body after its response counts as the next head.
    - It has to read its response: in each `unread_within_s` all that waits in memory, or a part of some size.
    - Between requests a connection lives for `idle_s`.
    """

    connections: int = 200
    head_bytes: int = 32 * KIB
    head_within_s: float = 10.0
    response_within_s: float | None = None
    """For a whole response, if no response can take long."""
    unread_within_s: float = 60.0
    idle_s: float = 75.0


@dataclass(frozen=True, slots=True)
class RequestLimits:
    requests: int = 500
    body_bytes: int = 1024 * KIB
    body_within_s: float = 60.0
    silent_within_s: float = 30.0
    """How long a client may pause within a streamed body (kaspar.web.streaming)."""


PAGES: Final = ConnectionLimits(response_within_s=60.0)
"""For small pages, none of which is slow to create."""


def connection_limits(settings: WebSettings) -> ConnectionLimits:
    return ConnectionLimits(
        connections=settings.server_connection_limit,
        head_bytes=settings.kaspar_http_max_head_bytes,
        head_within_s=settings.kaspar_http_head_timeout_ms / 1000,
        unread_within_s=settings.kaspar_http_unread_timeout_ms / 1000,
        idle_s=settings.idle_timeout_ms / 1000,
    )


def request_limits(settings: WebSettings) -> RequestLimits:
    return RequestLimits(
        requests=settings.kaspar_http_max_requests,
        body_bytes=settings.kaspar_http_max_body_bytes,
        body_within_s=settings.kaspar_http_body_timeout_ms / 1000,
        silent_within_s=settings.idle_timeout_ms / 1000,
    )
