"""The interface of a hosted service: an ASGI application that can be started and stopped, and the settings by which it
is served.

The host binds a service's listeners, passes it their addresses, starts it, and then serves requests. So a port in use
is reported before anything starts, and early clients wait in the socket's backlog.
"""

from collections.abc import Sequence
from typing import Protocol

from kaspar.web.asgi import App
from kaspar.web.errors import ErrorForm
from kaspar.web.settings import WebSettings


class HostedService(Protocol):
    @property
    def name(self) -> str:
        """A short name, for the log and for people: `registry`, `rest`."""

    @property
    def settings(self) -> WebSettings:
        """How it is served: listeners, TLS, authentication, limits."""

    @property
    def error_form(self) -> ErrorForm:
        """The format of errors that do not reach the application (kaspar.web.errors)."""

    @property
    def app(self) -> App:
        """The application. Read after `start`."""

    def bound(self, listeners: Sequence[str]) -> None:
        """Called once, before `start`, with the URLs of its listeners, such as `http://0.0.0.0:8081`. Port 0 in the
        settings is replaced by the actual port."""

    async def start(self) -> None:
        """Return when requests can be served. A KasparError ends the process. May be cancelled; `stop` is called in
        this case, too."""

    async def stop(self) -> None:
        """Called once, when no requests are in progress any more, also after a failed `start`."""
