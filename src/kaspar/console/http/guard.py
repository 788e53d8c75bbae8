"""What every request passes before a resource sees it, and the headers that every response gets.

- The host of the request must be one of the console's. A page of another site cannot read the console through its own
  name that resolves to the console's address (DNS rebinding).
- A request of another site's page gets nothing of the API. A change also needs a header that only scripts of the
  console's own page can send, so that neither links nor forms of other sites change anything (CSRF).
- The content security policy lets the page run its own files only, whatever a record contains.
"""

import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from kaspar.console.http.errors import CallFailed
from kaspar.web.asgi import App, Message, Receive, Scope, Send, header

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


class AllowedHosts:
    """The host names that requests may use. An IP address is always allowed: no other site can have it as its name."""

    def __init__(self, listeners: Sequence[str], names: Sequence[str]) -> None:
        own = {"localhost", socket.gethostname(), socket.getfqdn()}
        listening = {urlsplit(each).hostname or "" for each in listeners}
        self._names = frozenset(name.lower().rstrip(".") for name in (*own, *listening, *names) if name)

    def allow(self, host: bytes | None) -> bool:
        """`host` is the header, with or without a port."""
        try:
            parts = urlsplit(f"//{(host or b'').decode('ascii')}")
            name = parts.hostname or ""
        except ValueError:
            return False
        if parts.netloc.rpartition("@")[1] or parts.path or parts.query or parts.fragment:
            return False  # a host has none of these
        return name.rstrip(".") in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """An ASGI application in front of the console's own."""

    def __init__(self, app: App, hosts: AllowedHosts) -> None:
        self._app = app
        self._hosts = hosts

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
        """Raises CallFailed."""
        host = header(scope, b"host")
        if not self._hosts.allow(host):
            shown = (host or b"").decode("ascii", "replace")
            raise CallFailed(
                421, f"Host {shown!r} is not allowed. To allow it, add it to kaspar.console.allowed.hosts."
            )
        reads = scope["method"] in _READING
        if reads and not scope["path"].startswith("/api/"):
            return  # the page itself, to which others may have links
        if header(scope, b"sec-fetch-site") not in (None, *_OWN_SITES) or not _is_own_origin(scope, host):
            raise CallFailed(403, "Requests from other sites are not allowed.")
        if not reads and header(scope, CHANGE_HEADER) is None:
            raise CallFailed(403, "Changes require the header X-Kaspar-Console: 1.")


def _is_own_origin(scope: Scope, host: bytes | None) -> bool:
    """Browsers send the origin with changes and with requests of other sites."""
    origin = header(scope, b"origin")
    if origin is None:
        return True
    return origin.decode("latin-1").lower() == f"{scope['scheme']}://{(host or b'').decode('latin-1')}".lower()
