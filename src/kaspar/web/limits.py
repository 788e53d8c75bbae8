"""The resources of an HTTP server that one client may use. Everything is limited, because anyone who reaches the port
can connect.
"""

from dataclasses import dataclass
from typing import Final

from kaspar.config.units import KIB
from kaspar.web.settings import WebSettings


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """- If there are more than `connections`, the one that has waited longest is closed. A TLS handshake in progress
      counts as a connection.
    - A client has `head_within_s` for a handshake, for the head of its first request, and for each later head from its
      first byte. Bytes of a body that arrive after the response count as part of the next head.
    - In each `unread_within_s` a client must read all of its response that is in memory, or a minimum amount.
    - Between requests a connection is kept for `idle_s`.
    """

    connections: int = 200
    head_bytes: int = 32 * KIB
    head_within_s: float = 10.0
    response_within_s: float | None = None
    """The time limit for a whole response, if no response can take long."""
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
"""For small pages that are all quick to create."""


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
