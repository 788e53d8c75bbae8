"""Checks the Authorization header of requests: basic by a file of users, bearer by a file of tokens or by JWTs.

Secrets are compared in constant time. Hashed passwords are checked in a thread, and a correct one is not hashed again.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Protocol

from kaspar.base.errors import KasparError
from kaspar.web.credentials import Password, TokensFile, UsersFile
from kaspar.web.identity import Caller, Scheme

if TYPE_CHECKING:
    from kaspar.security.jwt import ValidToken

_HASHING_THREADS: Final = 2
_REMEMBERED: Final = 1_000


class Authenticator(Protocol):
    @property
    def scheme(self) -> Scheme: ...

    async def caller(self, given: bytes) -> Caller | None:
        """The caller with these credentials, the part of the header after the scheme. None if they are wrong."""


class BasicAuthenticator:
    scheme = Scheme.BASIC

    def __init__(self, users: UsersFile) -> None:
        self._users = users
        self._key = secrets.token_bytes(32)
        self._right: set[bytes] = set()
        """Keyed digests of the names and passwords whose hashes matched, so that neither is kept in memory."""
        self._threads: ThreadPoolExecutor | None = None

    async def caller(self, given: bytes) -> Caller | None:
        try:
            decoded = base64.b64decode(given, validate=True)
        except binascii.Error:
            return None
        raw_name, colon, password = decoded.partition(b":")
        name = raw_name.decode("utf-8", "surrogateescape")
        known = self._users.passwords.get(name)
        if not await self._matches(known or self._users.decoy, decoded, password) or known is None or not colon:
            return None
        return Caller(name, Scheme.BASIC, password.decode("utf-8", "surrogateescape"))

    async def _matches(self, wanted: Password, whole: bytes, password: bytes) -> bool:
        if not wanted.is_slow:
            return wanted.matches(password)
        digest = hmac.digest(self._key, b"%d:%b" % (self._users.generation, whole), hashlib.sha256)
        if digest in self._right:
            return True
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_HASHING_THREADS, thread_name_prefix="kaspar-password")
        is_right = await asyncio.get_running_loop().run_in_executor(self._threads, wanted.matches, password)
        if is_right:
            if len(self._right) >= _REMEMBERED:
                self._right.clear()
            self._right.add(digest)
        return is_right


class TokenAuthenticator:
    scheme = Scheme.BEARER

    def __init__(self, tokens: TokensFile) -> None:
        self._tokens = tokens

    async def caller(self, given: bytes) -> Caller | None:
        found = None
        for token, name in self._tokens.names.items():  # always all of them, so that the time reveals nothing
            if hmac.compare_digest(token, given):
                found = Caller(name, Scheme.BEARER, token.decode("utf-8", "surrogateescape"))
        return found


class JwtAuthenticator:
    scheme = Scheme.BEARER

    def __init__(self, validate: "Callable[[str], ValidToken]") -> None:
        """`validate` raises InvalidToken, a KasparError (kaspar.security.jwks)."""
        self._validate = validate

    async def caller(self, given: bytes) -> Caller | None:
        try:
            token = given.decode("ascii")
            return Caller(self._validate(token).principal, Scheme.BEARER, token)
        except (UnicodeDecodeError, KasparError):
            return None
