"""JSON Web Tokens that somebody else made, or that were made for something else."""

import hashlib
import hmac
import json
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kaspar.base.errors import ErrorCode
from kaspar.security.oauthbearer import OAuthBearerClient
from tests.integration.attacks.target import (
    AUDIENCE,
    ISSUER,
    SIGNING_KEY,
    Guest,
    Target,
    base64url,
    keys_document,
    now_s,
    signed,
)

HEADER = {"alg": "RS256", "kid": "one"}
HOUR_S = 3600


def token(header: dict[str, object] | None = None, **claims: object) -> str:
    usual = {"sub": "alice", "iat": now_s(), "exp": now_s() + HOUR_S, "aud": AUDIENCE, "iss": ISSUER}
    return signed(json.dumps(HEADER | (header or {})).encode(), json.dumps(usual | claims).encode())


def by_shared_secret(secret: bytes) -> str:
    """The public key, which everybody has, taken as the secret of an HMAC."""
    _, claims, _ = token().split(".")
    message = f"{base64url(json.dumps(HEADER | {'alg': 'HS256'}).encode())}.{claims}"
    return f"{message}.{base64url(hmac.digest(secret, message.encode(), hashlib.sha256))}"


def unsigned(algorithm: str) -> str:
    return f"{base64url(json.dumps({'alg': algorithm}).encode())}.{token().split('.')[1]}."


def public_key(encoding: serialization.Encoding) -> bytes:
    return SIGNING_KEY.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)


def twice(*members: str) -> str:
    usual = f'"iat": {now_s()}, "exp": {now_s() + HOUR_S}, "aud": "{AUDIENCE}", "iss": "{ISSUER}"'
    return signed(json.dumps(HEADER).encode(), f"{{{usual}, {', '.join(members)}}}".encode())


def with_other_claims() -> str:
    header, _, signature = token().split(".")
    return f"{header}.{token(sub='admin').split('.')[1]}.{signature}"


TOKENS: dict[str, Callable[[], str]] = {
    "no signature": lambda: unsigned("none"),
    "no signature, written otherwise": lambda: unsigned("nOnE"),
    "no algorithm": lambda: unsigned(""),
    "a signature under alg none": lambda: token({"alg": "none"}),
    "another key": lambda: signed(
        json.dumps(HEADER).encode(),
        json.dumps({"sub": "alice", "exp": now_s() + HOUR_S, "aud": AUDIENCE, "iss": ISSUER}).encode(),
        rsa.generate_private_key(65537, 2048),
    ),
    "the public key as a secret": lambda: by_shared_secret(public_key(serialization.Encoding.PEM)),
    "the public key as a secret in DER": lambda: by_shared_secret(public_key(serialization.Encoding.DER)),
    "the document of keys as a secret": lambda: by_shared_secret(keys_document()),
    "another algorithm of the same key": lambda: token({"alg": "PS256"}),
    "an algorithm of another kind of key": lambda: token({"alg": "ES256"}),
    "an own key in the header": lambda: token({"jwk": json.loads(keys_document())["keys"][0], "kid": "mine"}),
    "a key from an address": lambda: token({"jku": "http://127.0.0.1:1/keys", "kid": "mine"}),
    "a kid that names a path": lambda: token({"kid": "../../../../dev/null"}),
    "a kid that names a file": lambda: token({"kid": "file:///etc/passwd"}),
    "a kid that is no text": lambda: token({"kid": ["one"]}),
    "a critical extension": lambda: token({"crit": ["b64"], "b64": False}),
    "other claims": with_other_claims,
    "expired": lambda: token(exp=now_s() - HOUR_S),
    "expired without an expiry": lambda: token(exp=None),
    "expires in text": lambda: token(exp="9999999999"),
    "not yet valid": lambda: token(nbf=now_s() + HOUR_S),
    "issued in the future": lambda: token(iat=now_s() + HOUR_S),
    "another audience": lambda: token(aud="elsewhere"),
    "no audience": lambda: token(aud=[]),
    "an audience that begins alike": lambda: token(aud=AUDIENCE + "-test"),
    "another issuer": lambda: token(iss="https://evil.example"),
    "an issuer among others": lambda: token(iss=[ISSUER]),
    "no subject": lambda: token(sub=""),
    "a subject that is no text": lambda: token(sub={"name": "alice"}),
    "two subjects": lambda: twice('"sub": "alice"', '"sub": "admin"'),
    "two expiries": lambda: twice('"sub": "alice"', f'"exp": {now_s() + HOUR_S}'),
    "nested without end": lambda: signed(json.dumps(HEADER).encode(), b'{"a":' * 8000 + b"1" + b"}" * 8000),
    "a list without end": lambda: signed(json.dumps(HEADER).encode(), b"[" * 20_000),
    "a number without end": lambda: signed(json.dumps(HEADER).encode(), b'{"exp":' + b"9" * 40_000 + b"}"),
    "more than is read": lambda: token(padding="x" * 60_000),
    "four parts": lambda: token() + ".x",
    "no parts": lambda: "x",
}


def attempt(guest: Guest, bearer: str) -> tuple[int, str]:
    """The code and the sentence with which an exchange ends."""
    guest.handshake("OAUTHBEARER")
    client = OAuthBearerClient(bearer)
    response = guest.authenticate(client.first())
    if response.error_code == ErrorCode.NONE and response.auth_bytes:
        response = guest.authenticate(b"\x01")
    return response.error_code, response.error_message or ""


def test_a_right_token_gets_in(target: Target) -> None:
    with target.guest("SASL") as guest:
        assert attempt(guest, token()) == (ErrorCode.NONE, "")
        guest.metadata()


@pytest.mark.parametrize("attack", TOKENS)
def test_a_token_that_is_wrong_in_one_thing(target: Target, attack: str) -> None:
    """Whatever it is, the client is told the same, or that the message was none."""
    with target.guest("SASL") as guest:
        code, told = attempt(guest, TOKENS[attack]())
        assert code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert told in (
            '{"status":"invalid_token"}',
            "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER",
        )
        assert guest.is_closed_by_broker()


@pytest.mark.parametrize(
    "message",
    [
        b"n,a=admin,\x01auth=Bearer TOKEN\x01\x01",
        b"y,,\x01auth=Bearer TOKEN\x01\x01",
        b"n,,\x01auth=Basic TOKEN\x01\x01",
        b"n,,\x01auth=Bearer TOKEN\x01",
        b"n,,\x01auth=Bearer TOKEN,TOKEN\x01\x01",
        b"n,,\x01auth=Bearer \x01auth=Bearer TOKEN\x01\x01",
    ],
)
def test_a_right_token_in_a_wrong_message(target: Target, message: bytes) -> None:
    with target.guest("SASL") as guest:
        guest.handshake("OAUTHBEARER")
        guest.is_refused(message.replace(b"TOKEN", token().encode()))


def test_a_session_ends_with_its_token(target: Target) -> None:
    """Also one that had just expired when it was used, within the clocks' difference."""
    with target.guest("SASL") as guest:
        guest.handshake("OAUTHBEARER")
        response = guest.authenticate(OAuthBearerClient(token(exp=now_s() - 5)).first())
        assert (response.error_code, response.session_lifetime_ms) == (ErrorCode.NONE, 0)
        with pytest.raises(ConnectionError):
            guest.metadata()
