"""Who may read HTTP pages, and how: TLS from PEM files, and basic or bearer authentication.

Secrets are in files, one on each line; files that change are read again while the pages are served. Empty lines and
those that start with # do not count. A wrong secret costs the client a pause, and is compared in constant time.
"""

import asyncio
import base64
import binascii
import hmac
import ssl
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeAlias

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log

log = get_log(__name__)

WRONG_SECRET_PAUSE_S: Final = 0.3

_Scope: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[_Scope, _Receive, _Send], Awaitable[None]]
"""An ASGI application."""


class Scheme(Enum):
    """How clients authenticate."""

    BASIC = "basic"
    BEARER = "bearer"


@dataclass(frozen=True, slots=True)
class PageSecurity:
    """What is configured. Without a certificate pages are served in plain text, without a scheme to everybody."""

    certificate_file: str = ""
    key_file: str = ""
    """Empty if the certificate's file has the key too."""
    scheme: Scheme | None = None
    credentials_file: str = ""
    """`name:password` on each line, or a token."""


OPEN: Final = PageSecurity()


class PageGuard:
    """Carries out a PageSecurity. Raises KasparError with a sentence where a file cannot be used."""

    def __init__(self, security: PageSecurity) -> None:
        self._security = security
        self._secrets: frozenset[bytes] = frozenset()
        self._seen: dict[str, float] = {}
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if security.certificate_file else None
        self._load()

    def _load(self) -> None:
        security = self._security
        if self.tls is not None:
            try:
                self.tls.load_cert_chain(security.certificate_file, security.key_file or None)
            except (OSError, ssl.SSLError) as problem:
                reason = problem.strerror or str(problem)
                raise KasparError(
                    f"the certificate {security.certificate_file} of the HTTP pages cannot be used: {reason}"
                ) from None
        if security.scheme is not None:
            self._secrets = _read_secrets(security.credentials_file, security.scheme)
        self._seen = self._modified()

    def _modified(self) -> dict[str, float]:
        security = self._security
        files = (security.certificate_file, security.key_file, security.credentials_file)
        return {file: Path(file).stat().st_mtime for file in files if file and Path(file).exists()}

    async def reload_changed(self) -> None:
        """Read files again that have changed. If they cannot be used, the earlier ones stay in use."""
        if self._modified() != self._seen:
            try:
                self._load()
            except KasparError as problem:
                log.warning("a changed file is not used", problem=str(problem))

    def allows(self, authorization: bytes | None) -> bool:
        """Whether the value of an Authorization header is right."""
        scheme = self._security.scheme
        if scheme is None:
            return True
        kind, _, given = (authorization or b"").partition(b" ")
        if kind.lower() != scheme.value.encode():
            return False
        given = given.strip()
        if scheme is Scheme.BASIC:
            try:
                given = base64.b64decode(given, validate=True)
            except binascii.Error:
                return False
        right = False
        for secret in self._secrets:  # all of them: the time tells nothing
            right |= hmac.compare_digest(secret, given)
        return right

    def guarded(self, app: App) -> App:
        """The application, for those who may read it."""
        scheme = self._security.scheme
        if scheme is None:
            return app

        async def guard(scope: _Scope, receive: _Receive, send: _Send) -> None:
            if scope["type"] != "http" or self.allows(dict(scope["headers"]).get(b"authorization")):
                await app(scope, receive, send)
                return
            await asyncio.sleep(WRONG_SECRET_PAUSE_S)
            challenge = f'{scheme.value.capitalize()} realm="kaspar"'.encode()
            headers = [(b"www-authenticate", challenge), (b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"This page needs authentication.\n"})

        return guard


def _read_secrets(file: str, scheme: Scheme) -> frozenset[bytes]:
    try:
        lines = [line.strip() for line in Path(file).read_bytes().splitlines()]
    except OSError as problem:
        raise KasparError(f"the credentials of the HTTP pages, {file}, cannot be read: {problem.strerror}") from None
    secrets = frozenset(line for line in lines if line and not line.startswith(b"#"))
    if not secrets or (scheme is Scheme.BASIC and any(b":" not in secret for secret in secrets)):
        form = "name:password" if scheme is Scheme.BASIC else "one token"
        raise KasparError(f"the credentials of the HTTP pages, {file}, must have {form} on each line")
    return secrets
