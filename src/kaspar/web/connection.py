"""Adds what uvicorn's connections lack: limits (limits.py), the name in a client's certificate, and errors in a
service's own format.

`Connection` is mixed into uvicorn's protocol for h11 or for httptools, which have the same structure.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from uvicorn.config import Config
from uvicorn.server import ServerState

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.web.asgi import App, Receive, Scope, Send
from kaspar.web.errors import ErrorForm, phrase_of
from kaspar.web.limits import ConnectionLimits
from kaspar.web.send_queue import acknowledged_bytes, unsent_bytes

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as _UvicornProtocol
else:
    _UvicornProtocol = object

log = get_log(__name__)

PEER: Final = "kaspar.peer"
"""The key of the scope for the name in the client's certificate."""
MALFORMED: Final = (400, "The request is not valid HTTP.")
HEAD_TOO_LARGE: Final = (431, "The headers of the request are too large.")
_LEAST_READ: Final = 64 * 1024
"""How much of a response in memory a client must read in each `unread_within_s`."""

_SILENT: Final = logging.getLogger("kaspar.web.uvicorn")
"""Replaces uvicorn's logger: errors of clients are logged here, structured and at debug level."""
_SILENT.setLevel(logging.CRITICAL + 1)


class Open(Protocol):
    """A connection, or a TLS handshake that becomes one."""

    @property
    def is_responding(self) -> bool: ...

    def abort(self, reason: str) -> None: ...


class OpenConnections:
    """The open connections of one server. The one that has waited longest for a complete response is first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[Open, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, connection: Open) -> None:
        self._open[connection] = None
        if len(self._open) > self._most:
            oldest = self._longest_waiting(connection)
            del self._open[oldest]
            oldest.abort("too many connections")

    def _longest_waiting(self, newest: Open) -> Open:
        """Prefers a connection without a request in progress."""
        idle = (each for each in self._open if not each.is_responding and each is not newest)
        return next(idle, None) or next(iter(self._open))

    def responded(self, connection: Open) -> None:
        if connection in self._open:
            self._open[connection] = self._open.pop(connection)

    def closed(self, connection: Open) -> None:
        self._open.pop(connection, None)

    def abort_all(self, reason: str) -> None:
        for connection in list(self._open):
            connection.abort(reason)


@dataclass(frozen=True, slots=True)
class Listening:
    """What the connections of one listener share."""

    limits: ConnectionLimits
    open_connections: OpenConnections
    error_form: ErrorForm
    name_of_peer: Callable[[bytes], str] | None = None
    """The name in a client's certificate (DER). Raises KasparError if the client may not connect."""


class Connection(_UvicornProtocol):
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        listening: Listening,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger, self.access_log = _SILENT, False
        self._listening = listening
        self._limits = listening.limits
        self.refusal = MALFORMED
        """The status and message for bytes that cannot be parsed. A parser's callback may change it."""
        self._socket: socket.socket | None = None
        """Set for TLS, whose transport does not know how much the client has yet to read."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def abort(self, reason: str) -> None:
        log.debug("closed a connection", client=self._peer_address(), reason=reason)
        self.transport.abort()

    def refuse(self, status: int, message: str) -> None:
        """Respond to something that cannot be passed to the application, and close the connection."""
        log.debug("rejected a request", client=self._peer_address(), status=status, reason=message)
        if self.is_responding:  # an error in the middle of a response would look like a part of it
            self.abort(message)
            return
        body = self._listening.error_form(status, message)
        head = (
            f"HTTP/1.1 {status} {phrase_of(status)}\r\ncontent-type: {body.content_type}\r\n"
            f"content-length: {len(body.content)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body.content)
        self.transport.close()
        self._start_unread_timer()

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for bytes that are not HTTP."""
        self.refuse(*self.refusal)

    @property
    def is_responding(self) -> bool:
        # None before the first request, despite its annotation.
        return self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]

    # -- what asyncio calls ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head_timer()
        self._listening.open_connections.opened(self)
        try:
            self._look_at_tls(transport)
        except KasparError as problem:
            self.abort(f"its certificate was rejected: {problem}")

    def _look_at_tls(self, transport: asyncio.Transport) -> None:
        """Add the name in the client's certificate to the requests of this connection."""
        tls = transport.get_extra_info("ssl_object")
        if tls is None:
            return
        self._socket = transport.get_extra_info("socket")
        if self._listening.name_of_peer is None:
            return
        certificate = tls.getpeercert(True)
        if certificate is not None:
            self.app = _with_peer(self.app, self._listening.name_of_peer(certificate))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        was_responding = self.is_responding
        super().data_received(data)
        if self.is_responding:
            if not was_responding:
                self._request_begins()
        elif self._head_timer is None:  # more bytes of the same head do not extend the time
            self._start_head_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_unread_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_unread_timer()

    # -- the limits --------------------------------------------------------------------------------------------------

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.head_within_s, self.abort, "its request took too long")

    def _request_begins(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        if self._unread_timer is not None and not self._unread:  # it has read the earlier response
            self._stop_unread_timer()
        if self._limits.response_within_s is not None:
            self._stop_response_timer()
            self._response_timer = self.loop.call_later(self._limits.response_within_s, self._check_response)

    def _check_response(self) -> None:
        if self.is_responding or self._unread:
            self.abort("its response took too long")

    def on_response_complete(self) -> None:
        """The response is complete, but possibly not yet read. If so, it is watched until it is."""
        self._listening.open_connections.responded(self)
        super().on_response_complete()  # starts the next request if it has already arrived
        if self.is_responding:
            self._request_begins()
        elif not self._unread:
            self._stop_response_timer()
        elif self._unread_timer is None:
            self._start_unread_timer()

    @property
    def _unread(self) -> bool:
        """Whether bytes are waiting for the client to read them."""
        if self._socket is None:
            return self.transport.get_write_buffer_size() > 0
        return unsent_bytes(self._socket) > 0

    def _start_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
        self._unread_timer = self.loop.call_later(self._limits.unread_within_s, self._check_unread, self._taken())

    def _check_unread(self, before: int) -> None:
        """The client need not have read all of a large response, but enough of it."""
        self._unread_timer = None
        if not self._unread:
            return
        if self._taken() - before < _LEAST_READ:
            self.abort("it does not read its response")
        else:
            self._start_unread_timer()

    def _taken(self) -> int:
        """The amount that the client has received, relative to an arbitrary origin."""
        if self._socket is None:
            return -self.transport.get_write_buffer_size()
        return acknowledged_bytes(self._socket)

    def _end(self) -> None:
        self._stop_response_timer()
        self._stop_unread_timer()
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        self._listening.open_connections.closed(self)

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _stop_response_timer(self) -> None:
        if self._response_timer is not None:
            self._response_timer.cancel()
            self._response_timer = None

    def _peer_address(self) -> str:
        return "unknown" if not self.client else f"{self.client[0]}:{self.client[1]}"


def _with_peer(app: App, name: str) -> App:
    async def with_peer(scope: Scope, receive: Receive, send: Send) -> None:
        scope[PEER] = name
        await app(scope, receive, send)

    return with_peer
