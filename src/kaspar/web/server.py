"""Serves an application over HTTP/1.1 on sockets that are already bound. uvicorn's protocols handle HTTP. We do not use
its server, because several servers share one event loop, and signals are handled once per process.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from kaspar.base.log import get_log
from kaspar.web.asgi import App
from kaspar.web.connection import Connection, Listening, OpenConnections
from kaspar.web.errors import ErrorForm
from kaspar.web.files import Reloader
from kaspar.web.limits import ConnectionLimits
from kaspar.web.listeners import BACKLOG, Listener

if TYPE_CHECKING:
    from kaspar.web.tls import PemTls, StoreTls
    from kaspar.web.tls_listener import TlsListener

log = get_log(__name__)

RELOAD_EVERY_S: Final = 5.0
"""How often files are checked for changes."""
_CANCEL_WITHIN_S: Final = 5.0


class _DatedState(ServerState):
    """Creates the Date header of responses on demand rather than by a timer."""

    def __init__(self) -> None:
        self._second = 0
        self._headers: list[tuple[bytes, bytes]] = []
        super().__init__()

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        now = int(time.time())
        if now != self._second:
            self._second, self._headers = now, [(b"date", formatdate(now, usegmt=True).encode())]
        return self._headers

    @default_headers.setter
    def default_headers(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Ignores the headers with which uvicorn initializes the state."""


class WebServer:
    def __init__(
        self,
        app: App,
        listeners: Sequence[Listener],
        *,
        limits: ConnectionLimits,
        error_form: ErrorForm,
        tls: "StoreTls | PemTls | None" = None,
        reloader: Reloader | None = None,
        name_of_peer: Callable[[bytes], str] | None = None,
    ) -> None:
        self._app = app
        self._listeners = listeners
        self._limits = limits
        self._error_form = error_form
        self._tls = tls
        self._reloader = reloader
        self._name_of_peer = name_of_peer
        self._open = OpenConnections(limits.connections)
        self._state = _DatedState()
        self._servers: list[asyncio.AbstractServer] = []
        self._tls_listeners: list[TlsListener] = []
        self._reloading: asyncio.Task[None] | None = None

    def connection_count(self) -> int:
        return len(self._open)

    async def start(self) -> None:
        config = Config(
            self._app,
            ws="none",
            lifespan="off",
            interface="asgi3",
            loop="none",
            http="h11",
            log_config=None,
            timeout_keep_alive=self._limits.idle_s,  # type: ignore[arg-type]  # seconds, for call_later
            h11_max_incomplete_event_size=self._limits.head_bytes,
        )
        config.load()
        connection = connection_class()
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            listening = Listening(self._limits, self._open, self._error_form, self._name_of_peer)
            new_connection = partial(connection, config, self._state, {}, listening=listening)
            if listener.address.is_tls:
                self._start_tls(listener, new_connection)
            else:
                self._servers.append(await loop.create_server(new_connection, sock=listener.socket, backlog=BACKLOG))
        if self._reloader is not None:
            self._reloading = loop.create_task(self._reload(self._reloader))

    def _start_tls(self, listener: Listener, new_connection: Callable[[], Connection]) -> None:
        from kaspar.web.tls_listener import TlsListener  # imports what TLS needs

        tls = self._tls
        assert tls is not None, "a TLS listener comes with a certificate"
        self._tls_listeners.append(
            TlsListener(
                listener.socket, new_connection, self._open, lambda: tls.context, within_s=self._limits.head_within_s
            )
        )
        self._tls_listeners[-1].start()

    @staticmethod
    async def _reload(reloader: Reloader) -> None:
        while True:
            await asyncio.sleep(RELOAD_EVERY_S)
            reloader.reload_changed()

    async def stop(self, graceful_s: float) -> None:
        """Requests in progress have this long to complete. Safe to call twice, and before `start`."""
        if self._reloading is not None:
            self._reloading.cancel()
        for server in self._servers:
            server.close()
        for tls_listener in self._tls_listeners:
            await tls_listener.stop()
        for listener in self._listeners:
            listener.socket.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        tasks = set(self._state.tasks)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=graceful_s)
            for task in late:
                task.cancel()
            if late:
                log.warning("requests in progress were aborted: the service is stopping", requests=len(late))
                await asyncio.wait(late, timeout=_CANCEL_WITHIN_S)
        self._open.abort_all("the service stops")
        for tls_listener in self._tls_listeners:
            await tls_listener.end_handshakes()
        await asyncio.sleep(0)  # aborted connections are notified in the next turn of the loop


def connection_class() -> type[Connection]:
    try:
        from kaspar.web.httptools_connection import HttpToolsConnection
    except ModuleNotFoundError:  # it comes with kaspar[registry]
        from kaspar.web.h11_connection import H11Connection

        return H11Connection
    connection: type[Any] = HttpToolsConnection
    return connection
