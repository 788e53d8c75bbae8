"""What uvicorn's connections lack: limits (limits.py), TLS that counts from the first byte, and errors in a service's
own form.

`Connection` is mixed into uvicorn's protocol for h11 or for httptools, which have the same shape.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.web.asgi import App, Receive, Scope, Send
from kaspar.web.errors import ErrorForm, phrase_of
from kaspar.web.limits import ConnectionLimits

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as _UvicornProtocol
else:
    _UvicornProtocol = object

log = get_log(__name__)

PEER: Final = "kaspar.peer"
"""The key of the scope with the name in the client's certificate."""
MALFORMED: Final = (400, "The request is not valid HTTP.")
HEAD_TOO_LARGE: Final = (431, "The headers of the request are too large.")
_LEAST_READ: Final = 64 * 1024
"""Of a response in memory, in the time of `unread_within_s`."""

_SILENT: Final = logging.getLogger("kaspar.web.uvicorn")
"""In place of uvicorn's own: what clients do wrong is logged here, structured and at the level debug."""
_SILENT.setLevel(logging.CRITICAL + 1)


class OpenConnections:
    """Those of one server, the one that has waited longest for a complete response first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, connection: "Connection") -> None:
        self._open[connection] = None
        if len(self._open) > self._most:
            oldest = self._longest_waiting(connection)
            del self._open[oldest]
            oldest.abort("there are too many connections")

    def _longest_waiting(self, newest: "Connection") -> "Connection":
        """One without a request under way, if there is one."""
        idle = (each for each in self._open if not each.is_responding and each is not newest)
        return next(idle, None) or next(iter(self._open))

    def responded(self, connection: "Connection") -> None:
        if connection in self._open:
            self._open[connection] = self._open.pop(connection)

    def closed(self, connection: "Connection") -> None:
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
    tls: Callable[[], ssl.SSLContext | None] = lambda: None
    """Asked for each connection: certificates change. None: plain HTTP."""
    name_of_peer: Callable[[bytes], str] | None = field(default=None)
    """The name in a client's certificate (DER). Raises KasparError if it may not connect."""


class Connection(_UvicornProtocol):
    """It starts TLS itself, so that a handshake under way is bounded too."""

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
        """Status and message for what cannot be parsed; a parser's callback may change it."""
        self._socket_transport: asyncio.Transport | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._is_ready = False
        """Whether uvicorn's protocol has its transport."""
        self._early = b""
        """What came with the end of the handshake, before the encrypted transport was known here."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def abort(self, reason: str) -> None:
        log.debug("closed a connection", client=self._peer_address(), reason=reason)
        if self._socket_transport is not None:
            self._socket_transport.abort()

    def refuse(self, status: int, message: str) -> None:
        """Respond to what is no request that could reach the application, and close."""
        log.debug("refused a request", client=self._peer_address(), status=status, reason=message)
        if self.is_responding:  # an error in its middle would look like a part of that response
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
        """What uvicorn calls for bytes that are no HTTP."""
        self.refuse(*self.refusal)

    @property
    def is_responding(self) -> bool:
        # None before the first request, whatever its annotation says.
        return self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]

    # -- what asyncio calls ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._socket_transport = transport
        self._start_head_timer()
        self._listening.open_connections.opened(self)
        tls = self._listening.tls()
        if tls is None:
            self._ready(transport)
        else:
            transport.pause_reading()  # what comes is for the TLS protocol, which is not there yet
            self._handshake = self.loop.create_task(self._start_tls(transport, tls))

    async def _start_tls(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        encrypted = None
        try:
            encrypted = await self.loop.start_tls(transport, self, context, server_side=True)
            self._name_peer(encrypted)
        except OSError as problem:
            self._handshake_failed(transport, problem)
        except KasparError as problem:
            log.debug("a certificate is not accepted", client=self._peer_address(), reason=str(problem))
            encrypted = None
        if encrypted is None or encrypted.is_closing():  # None: it was closed meanwhile
            if not transport.is_closing():
                transport.abort()
            self._end()
        else:
            self._ready(encrypted)

    def _handshake_failed(self, transport: asyncio.Transport, problem: OSError) -> None:
        from kaspar.security.tls import alert_of, failure_sentence  # heavy, and loaded only where there is TLS

        log.debug("a TLS handshake failed", client=self._peer_address(), reason=failure_sentence(problem))
        if alert := alert_of(problem):
            transport.write(alert)
            transport.close()

    def _name_peer(self, encrypted: asyncio.Transport | None) -> None:
        """Requests of this connection carry the name in its certificate."""
        if encrypted is None or self._listening.name_of_peer is None:
            return
        certificate = encrypted.get_extra_info("ssl_object").getpeercert(True)
        if certificate is not None:
            self.app = _with_peer(self.app, self._listening.name_of_peer(certificate))

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
        was_responding = self.is_responding
        super().data_received(data)
        if self.is_responding:
            if not was_responding:
                self._request_begins()
        elif self._head_timer is None:  # more bytes of the same head get no more time
            self._start_head_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_unread_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    # -- the limits --------------------------------------------------------------------------------------------------

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.head_within_s, self.abort, "its request took too long")

    def _request_begins(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        if self._limits.response_within_s is not None:
            self._stop_response_timer()
            self._response_timer = self.loop.call_later(self._limits.response_within_s, self._check_response)

    def _check_response(self) -> None:
        if self.is_responding or self._unread:
            self.abort("its response took too long")

    def on_response_complete(self) -> None:
        """The response is complete, and perhaps not read yet: then it is watched until it is."""
        self._listening.open_connections.responded(self)
        super().on_response_complete()  # which begins with the next request, if it is here already
        if self.is_responding:
            self._request_begins()
        elif not self._unread:
            self._stop_response_timer()
        elif self._unread_timer is None:
            self._start_unread_timer()

    @property
    def _unread(self) -> int:
        """How many bytes wait for the client."""
        return 0 if self._socket_transport is None else self._socket_transport.get_write_buffer_size()

    def _start_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
        self._unread_timer = self.loop.call_later(self._limits.unread_within_s, self._check_unread, self._unread)

    def _check_unread(self, before: int) -> None:
        self._unread_timer = None
        unread = self._unread
        if unread > before - _LEAST_READ and unread > 0:
            self.abort("it does not read its response")
        elif unread > 0:
            self._start_unread_timer()

    def _end(self) -> None:
        self._stop_response_timer()
        for timer in (self._head_timer, self._unread_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._unread_timer = None
        self._listening.open_connections.closed(self)

    def _stop_response_timer(self) -> None:
        if self._response_timer is not None:
            self._response_timer.cancel()
            self._response_timer = None

    def _peer_address(self) -> str:
        address = None if self._socket_transport is None else self._socket_transport.get_extra_info("peername")
        return "unknown" if not address else f"{address[0]}:{address[1]}"


def _with_peer(app: App, name: str) -> App:
    async def with_peer(scope: Scope, receive: Receive, send: Send) -> None:
        scope[PEER] = name
        await app(scope, receive, send)

    return with_peer
