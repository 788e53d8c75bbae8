"""The checks that every request passes before a resource sees it, and the headers that every response gets.

- The host of the request must be one of the console's. A page of another site cannot read the console through its own
  name that resolves to the console's address (DNS rebinding).
- API requests from pages of other sites are rejected. A change also needs a header that only scripts of the console's
  own page can send, so that neither links nor forms of other sites change anything (CSRF).
- The content security policy lets the page run its own files only, whatever a record contains.
"""

from collections.abc import Sequence
from typing import Final

from kaspar.console.http.errors import CallFailed
from kaspar.web.asgi import App, Message, Receive, Scope, Send, header
from kaspar.web.hosts import AllowedHosts

CHANGE_HEADER: Final = b"x-kaspar-console"
_READING: Final = frozenset({"GET", "HEAD"})
_OWN_SITES: Final = frozenset({b"same-origin", b"none"})

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
]


class Guard:
    """An ASGI application in front of the console's application."""

    def __init__(self, app: App, hosts: AllowedHosts, origins: Sequence[str] = ()) -> None:
        """`origins` are the page's origins behind a proxy, besides that of the request itself."""
        self._app = app
        self._hosts = hosts
        self._origins = frozenset(each.lower() for each in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        try:
            self.check(scope)
        except CallFailed as refusal:
            await refusal.response()(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)

    def check(self, scope: Scope) -> None:
        """Raises CallFailed if the request is not allowed."""
        host = header(scope, b"host")
        if not self._hosts.allow(host):
            shown = (host or b"").decode("ascii", "replace")
            raise CallFailed(
                421, f"Host {shown!r} is not allowed. To allow it, add it to kaspar.console.allowed.hosts."
            )
        reads = scope["method"] in _READING
        if reads and not scope["path"].startswith("/api/"):
            return  # the page itself, to which other sites may link
        if header(scope, b"sec-fetch-site") not in (None, *_OWN_SITES) or not self._is_own_origin(scope, host):
            raise CallFailed(403, "Requests from other sites are not allowed.")
        if not reads and header(scope, CHANGE_HEADER) is None:
            raise CallFailed(403, "Changes require the header X-Kaspar-Console: 1.")

    def _is_own_origin(self, scope: Scope, host: bytes | None) -> bool:
        """Whether the origin, which browsers send with changes and with requests from other sites, is the console's."""
        origin = header(scope, b"origin")
        if origin is None:
            return True
        named = origin.decode("latin-1").lower()
        return named in self._origins or named == f"{scope['scheme']}://{(host or b'').decode('latin-1')}".lower()
