"""OAUTHBEARER (RFC 7628, KIP-255): a client authenticates with a bearer token. Both sides.

The response to a rejected token is a JSON object, which the client acknowledges with one byte. Then the exchange fails
with that object as its message, as in Kafka's OAuthBearerSaslServer.
"""

import base64
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.security.jwt import MAX_TOKEN_BYTES, InvalidToken, ValidToken
from kaspar.security.sasl import AuthenticationRefused, InvalidCredentials

MAX_MESSAGE_BYTES: Final = MAX_TOKEN_BYTES + 8192
_SEPARATOR: Final = "\x01"
_INITIAL: Final = re.compile(
    r"n,(?:a=(?P<authzid>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)++))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]++=[\x21-\x7e \t\r\n]++\x01)*+)\x01"
)
_BEARER: Final = re.compile(r"(?P<scheme>[A-Za-z]++) ++(?P<token>[-_.~+/a-zA-Z0-9]++=*+)")


class OAuthBearerServer:
    is_token = False
    blocks = False

    def __init__(self, validate: Callable[[str], ValidToken]) -> None:
        """`validate` raises InvalidToken."""
        self.is_complete = False
        self.authorization_id = ""
        self.expires_ms: int | None = None
        self._validate = validate
        self._error: str | None = None

    def evaluate(self, token: bytes) -> bytes:
        if self._error is not None and token == _SEPARATOR.encode():
            raise AuthenticationRefused(self._error)
        self._error = None
        wanted_id, bearer = _parse(token)
        try:
            valid = self._validate(bearer)
        except InvalidToken:
            self._error = json.dumps({"status": "invalid_token"}, separators=(",", ":"))
            return self._error.encode()
        if wanted_id not in ("", valid.principal):
            raise AuthenticationRefused(
                f"Authentication failed: Client requested an authorization id ({wanted_id}) that is different from the "
                f"token's principal name ({valid.principal})"
            )
        self.authorization_id, self.expires_ms, self.is_complete = valid.principal, valid.expires_ms, True
        return b""


def _parse(message: bytes) -> tuple[str, str]:
    """The authorization id, which may be empty, and the token."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise InvalidCredentials("the first message of OAUTHBEARER is too long")
    match = _INITIAL.fullmatch(message.decode("utf-8", "replace"))
    if match is None:
        raise InvalidCredentials("the first message of OAUTHBEARER is malformed")
    listed = [(pair.partition("=")[0], pair.partition("=")[2]) for pair in match["pairs"].split(_SEPARATOR) if pair]
    pairs: dict[str, str] = dict(listed)
    if len(pairs) != len(listed):
        raise InvalidCredentials("the first message of OAUTHBEARER has a name twice")
    bearer = _BEARER.fullmatch(pairs.get("auth", ""))
    if bearer is None or bearer["scheme"].lower() != "bearer":
        raise InvalidCredentials("the first message of OAUTHBEARER has no bearer token")
    authzid = (match["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
    return authzid, bearer["token"]


class OAuthBearerClient:
    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        self.is_complete = False
        more = "".join(f"{name}={value}{_SEPARATOR}" for name, value in (extensions or {}).items())
        self._message = f"n,,{_SEPARATOR}auth=Bearer {token}{_SEPARATOR}{more}{_SEPARATOR}".encode()

    def first(self) -> bytes:
        return self._message

    def evaluate(self, challenge: bytes) -> bytes | None:
        if challenge:
            return _SEPARATOR.encode()  # then the broker reports the error
        self.is_complete = True
        return None


def unsecured_token(options: Mapping[str, str]) -> str:
    """A token without a signature from the options of OAuthBearerLoginModule: `unsecuredLoginStringClaim_sub="alice"`.
    Raises InvalidSetting.
    """
    claims: dict[str, object] = {}
    for name, value in options.items():
        if name.startswith("unsecuredLoginStringClaim_"):
            claims[name.partition("_")[2]] = value
        elif name.startswith("unsecuredLoginNumberClaim_"):
            claims[name.partition("_")[2]] = float(value)
        elif name.startswith("unsecuredLoginListClaim_"):
            claims[name.partition("_")[2]] = [part for part in value[1:].split(value[0]) if part] if value else []
    if "sub" not in claims:
        raise InvalidSetting('the login module needs unsecuredLoginStringClaim_sub="..." to make an unsecured token')
    now_s = time.time()
    lifetime_s = float(options.get("unsecuredLoginLifetimeSeconds", "3600"))
    claims = {"iat": now_s, "exp": now_s + lifetime_s, **claims}
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def _encoded(part: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).decode().rstrip("=")
