"""HTTP pages (metrics, health) served by a thread of a program that has other work.

The thread has its own event loop, and imports the HTTP server itself, so that the import does not delay the program's
start.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kaspar.base.log import get_log
from kaspar.web.authentication import Authenticator, BasicAuthenticator, TokenAuthenticator
from kaspar.web.credentials import TokensFile, UsersFile
from kaspar.web.errors import plain_error
from kaspar.web.files import Loaded, Reloader
from kaspar.web.identity import Scheme
from kaspar.web.limits import PAGES, ConnectionLimits, RequestLimits
from kaspar.web.listeners import Listener, ListenerAddress, bind_all

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from kaspar.web.server import WebServer
    from kaspar.web.tls import PemTls

log = get_log(__name__)

_STOP_SECONDS: Final = 5.0
_GRACEFUL_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class PageSecurity:
    """Without a certificate, pages are served without TLS; without a scheme, to everyone."""

    certificate_file: str = ""
    key_file: str = ""
    """Empty if the certificate's file also contains the key."""
    scheme: Scheme | None = None
    credentials_file: str = ""
    """Users or tokens (kaspar.web.credentials)."""


OPEN: Final = PageSecurity()


class PageServer:
    """Serves the pages until it is stopped. A process may have several. Sets no signal handlers."""

    def __init__(
        self,
        make_app: "Callable[[], Starlette]",
        *,
        host: str,
        port: int,
        security: PageSecurity = OPEN,
        limits: ConnectionLimits = PAGES,
    ) -> None:
        """Loads and binds everything here rather than in the thread, so that an error stops the program's start. Raises
        KasparError.
        """
        self._make_app = make_app
        self._limits = limits
        self._tls = _tls_of(security)
        self._authenticator, file = _authenticator_of(security)
        self._reloader = Reloader(*(each for each in (self._tls, file) if each is not None))
        scheme = "http" if self._tls is None else "https"
        (self._listener,) = bind_all([ListenerAddress(scheme, host, port)], "the metrics page")
        self.port: int = self._listener.address.port
        self._thread = threading.Thread(target=self._run, name=f"kaspar-http-{self.port}", daemon=True)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_requested: asyncio.Event | None = None
        self._stopping = False

    def start(self) -> None:
        """Start without waiting. Clients that connect before the thread serves wait in the socket's backlog."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close the port. Blocks, so do not call it from an event loop. Safe to call twice."""
        with self._lock:
            self._stopping = True
            if self._loop is not None and self._stop_requested is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._stop_requested.set)
        if self._thread.ident is None:
            self._listener.socket.close()
            return
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            log.warning("the metrics page's thread did not stop in time", port=self.port)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                runner.run(self._serve(self._make_server(self._listener)))
                with self._lock:
                    self._loop = None
        except Exception:  # the edge of the thread: the broker works without its pages
            log.exception("the metrics page failed", port=self.port)
        finally:
            self._listener.socket.close()

    async def _serve(self, server: "WebServer") -> None:
        with self._lock:
            self._loop, self._stop_requested = asyncio.get_running_loop(), asyncio.Event()
            if self._stopping:
                return
        await server.start()
        try:
            await self._stop_requested.wait()
        finally:
            await server.stop(_GRACEFUL_S)

    def _make_server(self, listener: Listener) -> "WebServer":
        from kaspar.web.requests import Gate, LogIn
        from kaspar.web.server import WebServer

        gate = Gate(self._make_app(), log_in=LogIn(self._authenticator), limits=RequestLimits(), error_form=plain_error)
        return WebServer(
            gate, [listener], limits=self._limits, error_form=plain_error, tls=self._tls, reloader=self._reloader
        )


def _tls_of(security: PageSecurity) -> "PemTls | None":
    if not security.certificate_file:
        return None
    from kaspar.web.tls import PemTls

    return PemTls(security.certificate_file, security.key_file)


def _authenticator_of(security: PageSecurity) -> tuple[Authenticator | None, Loaded | None]:
    match security.scheme:
        case Scheme.BASIC:
            users = UsersFile(security.credentials_file)
            return BasicAuthenticator(users), users
        case Scheme.BEARER:
            tokens = TokensFile(security.credentials_file)
            return TokenAuthenticator(tokens), tokens
        case _:
            return None, None
