"""HTTP pages (metrics, health) served by a thread.

The thread has its own event loop, and imports the HTTP server itself, so that a start does not wait for it.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.base.page_security import OPEN, PageGuard, PageSecurity

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

log = get_log(__name__)

_STOP_SECONDS: Final = 5.0
_BACKLOG: Final = 64
_RELOAD_EVERY_S: Final = 5
"""How often files that may have changed are looked at."""


class PageServer:
    """Serves the pages until it is stopped. Several may run in one process; it sets no signal handlers."""

    def __init__(
        self, make_app: "Callable[[], Starlette]", *, host: str, port: int, security: PageSecurity = OPEN
    ) -> None:
        self._make_app = make_app
        self._guard = PageGuard(security)
        self._socket = self._bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name=f"kaspar-http-{self.port}", daemon=True)
        self._lock = threading.Lock()
        self._server: uvicorn.Server | None = None
        self._stopping = False

    @staticmethod
    def _bind(host: str, port: int) -> socket.socket:
        """Not in the thread: an invalid address must stop the start with a sentence."""
        try:
            family, _, _, _, address = socket.getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            return socket.create_server(
                (address[0], address[1]),
                family=family,
                backlog=_BACKLOG,
                dualstack_ipv6=family == socket.AF_INET6 and not host and socket.has_dualstack_ipv6(),
            )
        except socket.gaierror as problem:
            raise KasparError(f"cannot resolve the metrics page's host '{host}': {problem.strerror}") from None
        except OSError as problem:
            raise KasparError(f"cannot serve the metrics page on {host or '*'}:{port}: {problem.strerror}") from None

    def start(self) -> None:
        """Returns at once. Clients that connect before the thread is up wait in the socket's backlog."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and closes the port. Blocks, so not for an event loop. Safe to call twice."""
        with self._lock:
            self._stopping = True
            if self._server is not None:
                self._server.should_exit = True
        if self._thread.ident is None:
            self._socket.close()
            return
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            log.warning("the metrics page's thread did not end in time", port=self.port)

    def _run(self) -> None:
        try:
            server = self._make_server()
            with self._lock:
                self._server = server
                server.should_exit = self._stopping
            if not server.should_exit:
                with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                    runner.run(server.serve(sockets=[self._socket]))
        except Exception:  # the edge of the thread: the broker works without its pages
            log.exception("the metrics page has failed", port=self.port)
        finally:
            self._socket.close()

    def _make_server(self) -> "uvicorn.Server":
        import uvicorn

        from kaspar.base.page_connections import new_connection_of

        config = uvicorn.Config(
            self._guard.guarded(self._make_app()),
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            loop="none",
            log_config=None,
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=1,
            callback_notify=self._guard.reload_changed,
            timeout_notify=_RELOAD_EVERY_S,
        )
        config.load()
        # Not as an argument: uvicorn takes a class there, which would have to find the connections of this server.
        config.http_protocol_class = new_connection_of(self._guard.tls)  # type: ignore[assignment]
        # Not as an argument: uvicorn would then remove the handlers of a logger that the whole process shares.
        config.access_log = False
        return uvicorn.Server(config)
