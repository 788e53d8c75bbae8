"""SCRAM (RFC 5802) as in Kafka: credentials, the formulas, the messages, and both sides of an exchange.

Only the gs2 header "n" is supported (no channel binding), passwords are the bytes of their UTF-8 (no SASLprep), and the
first message of a client may have the extension `tokenauth=true`: then its user name is the id of a delegation token.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kaspar.security.sasl import AuthenticationRefused, InvalidCredentials

SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
HASHES: Final[Mapping[str, str]] = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
MECHANISM_TYPES: Final[Mapping[int, str]] = {1: SCRAM_SHA_256, 2: SCRAM_SHA_512}
"""The mechanisms by their codes in requests."""
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384

MAX_MESSAGE_BYTES: Final = 8192

# Possessive quantifiers, because senders are not authenticated yet and must not be able to cause backtracking.
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)++"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]++"
_VALUE = r"[\x01-\x2b\x2d-\x7f]++"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*+(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?+"
_EXTENSIONS = rf"(?:,[A-Za-z]++={_VALUE})*"
_CLIENT_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST = re.compile(
    rf"(?:m={_VALUE},)?r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<bare>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64})){_EXTENSIONS}")


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a broker stores of a password. This is enough to check a password, but not to authenticate."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramIdentity:
    """The credential and the principal of a user name or token id, and when a token expires."""

    credential: ScramCredential
    authorization_id: str
    expires_ms: int | None = None


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def credential_of(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    stored_key = hashlib.new(HASHES[mechanism], _hmac(mechanism, salted, b"Client Key")).digest()
    return ScramCredential(salt, stored_key, _hmac(mechanism, salted, b"Server Key"), iterations)


def new_credential(mechanism: str, password: str, iterations: int = MIN_ITERATIONS) -> ScramCredential:
    salt = secrets.token_bytes(24)
    return credential_of(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)


class ScramServer:
    """The broker's side. `identity_of` looks up a user, or a token if its second argument is true."""

    expires_ms: int | None = None
    blocks = False

    def __init__(
        self,
        mechanism: str,
        identity_of: Callable[[str, bool], ScramIdentity | None],
        *,
        new_nonce: Callable[[], str] = lambda: secrets.token_urlsafe(18),
    ) -> None:
        self.mechanism = mechanism
        self.is_complete = False
        self.authorization_id = ""
        self.is_token = False
        self._identity_of = identity_of
        self._new_nonce = new_nonce
        self._gs2 = self._first_bare = self._first_reply = self._nonce = ""
        self._credential: ScramCredential | None = None

    def evaluate(self, token: bytes) -> bytes:
        return self._first(token) if self._credential is None else self._final(token, self._credential)

    def _first(self, token: bytes) -> bytes:
        match = _match(_CLIENT_FIRST, token)
        name = match["name"].replace("=2C", ",").replace("=3D", "=")
        self.is_token = "tokenauth=true" in match["extensions"].lower().split(",")
        identity = self._identity_of(name, self.is_token)
        if identity is None:
            raise InvalidCredentials("there is no such token" if self.is_token else "there is no such user")
        if match["authzid"] not in (None, name):
            raise AuthenticationRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._credential, self.authorization_id, self.expires_ms = (
            identity.credential,
            identity.authorization_id,
            identity.expires_ms,
        )
        self._gs2, self._first_bare = match["gs2"], match["bare"]
        self._nonce = match["nonce"] + self._new_nonce()
        salt = base64.b64encode(self._credential.salt).decode()
        self._first_reply = f"r={self._nonce},s={salt},i={self._credential.iterations}"
        return self._first_reply.encode()

    def _final(self, token: bytes, credential: ScramCredential) -> bytes:
        match = _match(_CLIENT_FINAL, token)
        if not hmac.compare_digest(match["nonce"], self._nonce):
            raise InvalidCredentials("the nonce does not match this exchange")
        if base64.b64decode(match["binding"]) != self._gs2.encode():
            # RFC 5802, 5.1: a man in the middle has changed the client's channel binding.
            raise InvalidCredentials("the channel binding is not the one that the exchange began with")
        message = f"{self._first_bare},{self._first_reply},{match['bare']}".encode()
        signature = _hmac(self.mechanism, credential.stored_key, message)
        proof = base64.b64decode(match["proof"])
        if len(proof) != len(signature):
            raise InvalidCredentials("the proof has a wrong length")
        stored_key = hashlib.new(HASHES[self.mechanism], _xor(proof, signature)).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise InvalidCredentials("the password is wrong")
        self.is_complete = True
        return b"v=" + base64.b64encode(_hmac(self.mechanism, credential.server_key, message))


class ScramClient:
    """The client's side. It also checks that the server has the credential."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        *,
        token_auth: bool = False,
        nonce: str | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.is_complete = False
        self._password = password
        self._nonce = nonce or secrets.token_urlsafe(18)
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._nonce}" + (",tokenauth=true" if token_auth else "")
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        """The next message; None when the exchange is over."""
        if self._server_signature is None:
            return self._final(challenge)
        self._check(challenge)
        return None

    def _final(self, challenge: bytes) -> bytes:
        match = _match(_SERVER_FIRST, challenge)
        nonce, iterations = match["nonce"], int(match["iterations"])
        if not nonce.startswith(self._nonce):
            raise InvalidCredentials("the server's nonce does not start with the client's")
        if not MIN_ITERATIONS <= iterations <= 1_000_000:
            raise InvalidCredentials(f"the server asks for {iterations} iterations")
        salted = salted_password(self.mechanism, self._password, base64.b64decode(match["salt"]), iterations)
        client_key = _hmac(self.mechanism, salted, b"Client Key")
        stored_key = hashlib.new(HASHES[self.mechanism], client_key).digest()
        bare = f"c={base64.b64encode(b'n,,').decode()},r={nonce}"
        message = f"{self._first_bare},{challenge.decode()},{bare}".encode()
        proof = _xor(client_key, _hmac(self.mechanism, stored_key, message))
        self._server_signature = _hmac(self.mechanism, _hmac(self.mechanism, salted, b"Server Key"), message)
        return f"{bare},p={base64.b64encode(proof).decode()}".encode()

    def _check(self, challenge: bytes) -> None:
        match = _match(_SERVER_FINAL, challenge)
        if match["error"] is not None:
            raise InvalidCredentials(f"the server rejected the authentication: {match['error']}")
        if not hmac.compare_digest(base64.b64decode(match["signature"]), self._server_signature or b""):
            raise InvalidCredentials("the server does not know the credential: its signature is wrong")
        self.is_complete = True


def _match(pattern: re.Pattern[str], message: bytes) -> re.Match[str]:
    if len(message) > MAX_MESSAGE_BYTES:
        raise InvalidCredentials("a SCRAM message is too long")
    try:
        match = pattern.fullmatch(message.decode())
    except (UnicodeDecodeError, binascii.Error):
        match = None
    if match is None:
        raise InvalidCredentials("a SCRAM message is malformed")
    return match


def _hmac(mechanism: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, HASHES[mechanism])


def _xor(left: bytes, right: bytes) -> bytes:
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).to_bytes(len(left), "big")
