"""What a hosted service is: an ASGI application with a start and an end, and the settings by which it is served.

The host binds a service's listeners, passes it their addresses, starts it, and serves requests when it has started. So
a port that is taken is reported before anything starts, and clients that come early wait in the socket's backlog.
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
        """How it is served: listeners, TLS, log-in, limits."""

    @property
    def error_form(self) -> ErrorForm:
        """How errors that do not reach the application are written (kaspar.web.errors)."""

    @property
    def app(self) -> App:
        """The application. Asked for after `start`."""

    def bound(self, listeners: Sequence[str]) -> None:
        """Called once, before `start`: the URLs of its listeners, as `http://0.0.0.0:8081`, with the ports that were
        taken where the settings have port 0."""

    async def start(self) -> None:
        """Return when requests can be served. Raises KasparError with a sentence, which ends the process. May be
        cancelled; `stop` is called then too."""

    async def stop(self) -> None:
        """Called once, when no request is under way any more, also after a `start` that failed."""
