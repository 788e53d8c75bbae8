"""Accepts connections of a TLS listener. A handshake in progress counts as a connection and has a time limit, because
anyone who reaches the port can begin one.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Final

from kaspar.base.log import get_log
from kaspar.security.tls import failure_sentence
from kaspar.web.connection import Connection, OpenConnections

log = get_log(__name__)

_PAUSE_S: Final = 0.1
"""The pause after a connection could not be accepted, most likely because there are no more file descriptors."""


class _Handshake:
    is_responding = False

    def __init__(self, accepted: socket.socket) -> None:
        self._accepted = accepted

    def abort(self, reason: str) -> None:
        """Shut the socket down. The event loop, which owns it, notices this and closes it."""
        with contextlib.suppress(OSError):
            self._accepted.shutdown(socket.SHUT_RDWR)


class TlsListener:
    def __init__(
        self,
        listening: socket.socket,
        new_connection: Callable[[], Connection],
        open_connections: OpenConnections,
        context: Callable[[], ssl.SSLContext],
        *,
        within_s: float,
    ) -> None:
        """`context` is called for each connection, because certificates change."""
        self._socket = listening
        self._new_connection = new_connection
        self._open = open_connections
        self._context = context
        self._within_s = within_s
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._socket.setblocking(False)
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def stop(self) -> None:
        """Accept no more connections."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait((self._accepting,))

    async def end_handshakes(self) -> None:
        """Wait for handshakes to end after `OpenConnections.abort_all` has aborted them."""
        if self._handshakes:
            await asyncio.wait(self._handshakes, timeout=self._within_s)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._socket)
            except OSError as problem:
                log.warning("a connection cannot be accepted", reason=problem.strerror)
                await asyncio.sleep(_PAUSE_S)
                continue
            task = loop.create_task(self._shake_hands(accepted))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, accepted: socket.socket) -> None:
        handshake = _Handshake(accepted)
        self._open.opened(handshake)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._new_connection, accepted, ssl=self._context(), ssl_handshake_timeout=self._within_s
            )
        except OSError as problem:
            log.debug("a TLS handshake failed", reason=failure_sentence(problem))
        finally:
            self._open.closed(handshake)
