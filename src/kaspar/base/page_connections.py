"""Connections to HTTP pages, bounded in number and in time, because whoever reaches the port can open them.

- At MAX_CONNECTIONS the one that has gone longest without a complete response is closed for a new one. A TLS
  handshake under way counts.
- A client has HEAD_WITHIN_S for the handshake and the head of its first request, and for each later head from its first
  byte; a response that it does not read ends after RESPONSE_WITHIN_S. Between requests uvicorn's keep-alive counts.
"""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kaspar.base.log import get_log

log = get_log(__name__)

MAX_CONNECTIONS: Final = 200
HEAD_WITHIN_S: Final = 10.0
RESPONSE_WITHIN_S: Final = 60.0


class PageConnections:
    """The open ones of one server, the one without a complete response for longest first."""

    def __init__(self) -> None:
        self._open: dict[PageConnection, None] = {}

    def opened(self, connection: "PageConnection") -> None:
        self._open[connection] = None
        if len(self._open) > MAX_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.abort("there are too many connections")

    def responded(self, connection: "PageConnection") -> None:
        if connection in self._open:
            self._open[connection] = self._open.pop(connection)

    def closed(self, connection: "PageConnection") -> None:
        self._open.pop(connection, None)


class PageConnection(H11Protocol):
    """uvicorn's protocol for one connection. It starts TLS itself, so that a handshake under way is bounded too."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        open_connections: PageConnections,
        tls: ssl.SSLContext | None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._open_connections = open_connections
        self._tls = tls
        self._socket_transport: asyncio.Transport | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._is_ready = False
        """Whether uvicorn's protocol has its transport."""
        self._early = b""
        """What came with the end of the handshake, before the encrypted transport was known here."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None

    def abort(self, reason: str) -> None:
        log.debug("closed a connection to the HTTP pages", reason=reason)
        if self._socket_transport is not None:
            self._socket_transport.abort()

    # -- what asyncio calls ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._socket_transport = transport
        self._start_head_timer()
        self._open_connections.opened(self)
        if self._tls is None:
            self._ready(transport)
        else:
            transport.pause_reading()  # what comes is for the TLS protocol, which is not there yet
            self._handshake = self.loop.create_task(self._start_tls(transport, self._tls))

    async def _start_tls(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        encrypted = None
        try:
            encrypted = await self.loop.start_tls(transport, self, context, server_side=True)
        except OSError as problem:
            log.debug("a TLS handshake with the HTTP pages failed", reason=str(problem))
        if encrypted is None or encrypted.is_closing():  # None: it was closed meanwhile
            transport.abort()
            self._end()
        else:
            self._ready(encrypted)

    def _ready(self, transport: asyncio.Transport) -> None:
        self._is_ready = True
        super().connection_made(transport)
        if early := self._early:
            self._early = b""
            self.data_received(early)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        if self._is_ready:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_ready:
            self._early += data
            return
        was_responding = self._is_responding
        super().data_received(data)
        if self._is_responding and not was_responding:
            self._request_begins()
        elif self._head_timer is None and not self._is_responding:  # more bytes of the same head get no more time
            self._start_head_timer()

    # -- the limits --------------------------------------------------------------------------------------------------

    @property
    def _is_responding(self) -> bool:
        # None before the first request, whatever its annotation says.
        return self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]

    @property
    def _has_unread(self) -> bool:
        return self._socket_transport is not None and self._socket_transport.get_write_buffer_size() > 0

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_WITHIN_S, self.abort, "its request took too long")

    def _request_begins(self) -> None:
        self._stop_timers()
        self._response_timer = self.loop.call_later(RESPONSE_WITHIN_S, self._check_response)

    def _check_response(self) -> None:
        if self._is_responding or self._has_unread:
            self.abort("it does not read its response")

    def on_response_complete(self) -> None:
        """The response is complete, and perhaps not read yet: then its timer stays."""
        self._open_connections.responded(self)
        super().on_response_complete()  # which begins with the next request, if it is here already
        if self._is_responding:
            self._request_begins()
        elif not self._has_unread:
            self._stop_timers()

    def _end(self) -> None:
        self._stop_timers()
        self._open_connections.closed(self)

    def _stop_timers(self) -> None:
        for timer in (self._head_timer, self._response_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._response_timer = None


def new_connection_of(tls: ssl.SSLContext | None) -> Callable[..., PageConnection]:
    """What a server of uvicorn creates its connections with."""
    return partial(PageConnection, open_connections=PageConnections(), tls=tls)
