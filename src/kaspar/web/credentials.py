"""Credentials files: users with passwords, or tokens. One on each line; empty lines and lines that start with # are
ignored.

A password may be hashed: `name:{scrypt}SALT:HASH` or `name:{sha512}SALT:HASH` (also sha256 and sha1), with the hash in
Base64. The hashes, and JSON files with a list of `users`, are those of `karapace_mkpasswd`: scrypt, or PBKDF2 with HMAC
of the named function.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kaspar.base.errors import KasparError

ALGORITHMS: Final = ("scrypt", "sha512", "sha256", "sha1")
"""The most expensive one first."""
_HASHED: Final = re.compile(rb"\{(scrypt|sha512|sha256|sha1)\}([^:]*):([A-Za-z0-9+/]+=*)")
_SCRYPT: Final[Mapping[str, int]] = {"n": 16_384, "r": 8, "p": 1, "maxmem": 64 * 1024 * 1024}
_PBKDF2_ROUNDS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Password:
    """If `algorithm` is None, `secret` is the password itself."""

    secret: bytes = field(repr=False)
    algorithm: str | None = None
    salt: bytes = b""

    @property
    def is_slow(self) -> bool:
        """Whether checking it takes milliseconds."""
        return self.algorithm is not None

    def matches(self, given: bytes) -> bool:
        return hmac.compare_digest(self.secret, _hashed(self.algorithm, self.salt, given))


def _hashed(algorithm: str | None, salt: bytes, password: bytes) -> bytes:
    if algorithm is None:
        return password
    if algorithm == "scrypt":
        return hashlib.scrypt(password, salt=salt, **_SCRYPT)
    return hashlib.pbkdf2_hmac(algorithm, password, salt, _PBKDF2_ROUNDS)


def hash_password(password: str, salt: str, algorithm: str = "scrypt") -> str:
    """The part of a line in a credentials file after the name and the colon."""
    hashed = base64.b64encode(_hashed(algorithm, salt.encode(), password.encode())).decode()
    return f"{{{algorithm}}}{salt}:{hashed}"


class UsersFile:
    def __init__(self, file: str) -> None:
        self._file = Path(file)
        self.passwords: Mapping[str, Password] = {}
        self.generation = 0
        """How many times the file was loaded."""

    def files(self) -> Iterable[Path]:
        return (self._file,)

    def load(self) -> None:
        text = _read(self._file)
        users = self._from_json(text) if text.lstrip().startswith(b"{") else self._from_lines(text)
        self.passwords, self.generation = users, self.generation + 1

    def _from_lines(self, text: bytes) -> Mapping[str, Password]:
        lines = _lines(text)
        if not lines or any(b":" not in line for line in lines):
            raise self._unusable("must contain name:password on each line")
        parts = [line.split(b":", 1) for line in lines]
        return {name.decode("utf-8", "surrogateescape"): _password(secret) for name, secret in parts}

    def _from_json(self, text: bytes) -> Mapping[str, Password]:
        try:
            users = {user["username"]: _from_karapace(user) for user in json.loads(text)["users"]}
        except (ValueError, KeyError, TypeError, AttributeError, binascii.Error):
            raise self._unusable("must contain users with a username, algorithm, salt and password_hash") from None
        if not users:
            raise self._unusable("must contain at least one user")
        return users

    def _unusable(self, reason: str) -> KasparError:
        return KasparError(f"the credentials of the HTTP pages, {self._file}, {reason}")

    @property
    def decoy(self) -> Password:
        """A password to check for an unknown name. It takes as long as the slowest of the others, so that the time does
        not reveal which names exist.
        """
        used = {password.algorithm for password in self.passwords.values()}
        return Password(b"\0", next((algorithm for algorithm in ALGORITHMS if algorithm in used), None))


def _password(secret: bytes) -> Password:
    match = _HASHED.fullmatch(secret)
    if match is None:
        return Password(secret)
    return Password(base64.b64decode(match[3]), match[1].decode(), match[2])


def _from_karapace(user: Mapping[str, Any]) -> Password:
    algorithm = user["algorithm"]
    if algorithm not in ALGORITHMS:
        raise ValueError(algorithm)
    return Password(base64.b64decode(user["password_hash"], validate=True), algorithm, user["salt"].encode())


class TokensFile:
    """Bearer tokens, one on each line. `name:token` gives the token a name."""

    def __init__(self, file: str) -> None:
        self._file = Path(file)
        self.names: Mapping[bytes, str | None] = {}
        """The name of each token."""

    def files(self) -> Iterable[Path]:
        return (self._file,)

    def load(self) -> None:
        lines = _lines(_read(self._file))
        if not lines:
            raise KasparError(f"the credentials of the HTTP pages, {self._file}, must contain one token on each line")
        self.names = dict(map(_named_token, lines))


def _named_token(line: bytes) -> tuple[bytes, str | None]:
    """The colon separates the two: a token cannot contain one (RFC 6750)."""
    name, colon, token = line.rpartition(b":")
    return (token, name.decode("utf-8", "surrogateescape")) if colon else (line, None)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as problem:
        raise KasparError(f"the credentials of the HTTP pages, {file}, cannot be read: {problem.strerror}") from None


def _lines(text: bytes) -> list[bytes]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(b"#")]
