"""PLAIN (RFC 4616): user and password as plain text, for use over TLS. Both sides."""

import hmac
from collections.abc import Callable, Mapping

from kaspar.security.jaas import LoginModule
from kaspar.security.sasl import AuthenticationRefused, InvalidCredentials

_USER_PREFIX = "user_"


def users_of(login: LoginModule) -> dict[str, str]:
    """The users of a broker's PlainLoginModule and their passwords, from the `user_NAME` options."""
    return {
        name.removeprefix(_USER_PREFIX): password
        for name, password in login.options.items()
        if name.startswith(_USER_PREFIX)
    }


def checker_of(users: Mapping[str, str]) -> Callable[[str, str], bool]:
    def check(username: str, password: str) -> bool:
        wanted = users.get(username)
        given = password.encode()
        # An unknown user takes as long as a known one.
        return hmac.compare_digest(given, (wanted if wanted is not None else password + "-").encode())

    return check


class PlainServer:
    is_token = False
    blocks = False
    expires_ms: int | None = None

    def __init__(self, check: Callable[[str, str], bool]) -> None:
        self.is_complete = False
        self.authorization_id = ""
        self._check = check

    def evaluate(self, token: bytes) -> bytes:
        parts = token.decode("utf-8", "replace").split("\0")
        if len(parts) != 3:
            raise InvalidCredentials("the message does not have the three parts of PLAIN")
        wanted_id, username, password = parts
        if not username or not password:
            raise InvalidCredentials("the user or the password is empty")
        if not self._check(username, password):
            raise AuthenticationRefused("Authentication failed: Invalid username or password")
        if wanted_id not in ("", username):
            raise AuthenticationRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.authorization_id, self.is_complete = username, True
        return b""


class PlainClient:
    def __init__(self, username: str, password: str) -> None:
        self.is_complete = False
        self._message = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def evaluate(self, challenge: bytes) -> bytes | None:
        self.is_complete = True
        return None
