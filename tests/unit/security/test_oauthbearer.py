"""OAUTHBEARER: tokens that are accepted, and those that an attacker may try."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from kaspar.base.errors import InvalidSetting
from kaspar.security.jaas import parse_jaas
from kaspar.security.jwks import UNSECURED_HANDLER, KeySource, TokenValidator
from kaspar.security.jwt import (
    MAX_TOKEN_BYTES,
    InvalidToken,
    TokenRules,
    UnknownKey,
    ValidToken,
    read_keys,
    validate,
)
from kaspar.security.oauthbearer import OAuthBearerClient, OAuthBearerServer, unsecured_token
from kaspar.security.sasl import AuthenticationRefused, InvalidCredentials

NOW_MS = 1_000_000_000_000
NOW_S = NOW_MS // 1000
EC_KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(65537, 2048)
CLAIMS = {"sub": "alice", "exp": NOW_S + 100, "iat": NOW_S, "scope": "read write", "aud": ["kafka"], "iss": "me"}
RULES = TokenRules()


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def number(value: int) -> str:
    return text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def keys_document() -> bytes:
    point, numbers = EC_KEY.public_key().public_numbers(), RSA_KEY.public_key().public_numbers()
    return json.dumps(
        {
            "keys": [
                {"kty": "EC", "crv": "P-256", "kid": "ec", "x": number(point.x), "y": number(point.y)},
                {"kty": "RSA", "kid": "rsa", "use": "sig", "n": number(numbers.n), "e": number(numbers.e)},
                {"kty": "oct", "kid": "shared", "k": text(b"secret")},
                {"kty": "RSA", "kid": "for-encryption", "use": "enc", "n": "AQAB", "e": "AQAB"},
            ]
        }
    ).encode()


KEYS = read_keys(keys_document())


def signed(algorithm: str, claims: dict[str, Any] = CLAIMS, **header: str) -> str:
    message = f"{text(json.dumps({'alg': algorithm, **header}).encode())}.{text(json.dumps(claims).encode())}"
    match algorithm:
        case "ES256":
            r, s = decode_dss_signature(EC_KEY.sign(message.encode(), ec.ECDSA(hashes.SHA256())))
            signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
        case "RS256":
            signature = RSA_KEY.sign(message.encode(), padding.PKCS1v15(), hashes.SHA256())
        case "PS256":
            mask = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
            signature = RSA_KEY.sign(message.encode(), mask, hashes.SHA256())
        case "HS256":
            mac = hmac.HMAC(b"secret", hashes.SHA256())
            mac.update(message.encode())
            signature = mac.finalize()
        case _:
            signature = b""
    return f"{message}.{text(signature)}"


@pytest.mark.parametrize(("algorithm", "key"), [("ES256", "ec"), ("RS256", "rsa"), ("PS256", "rsa")])
def test_signed_tokens_are_accepted(algorithm: str, key: str) -> None:
    for token in (signed(algorithm), signed(algorithm, kid=key)):
        valid = validate(token, KEYS, RULES, NOW_MS)
        assert (valid.principal, valid.scopes, valid.expires_ms) == ("alice", ("read", "write"), NOW_MS + 100_000)


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "RS256"])
def test_unsigned_and_shared_secrets_are_refused_whatever_the_keys_are(algorithm: str) -> None:
    with pytest.raises(InvalidToken):
        validate(signed(algorithm, kid="ec"), KEYS, RULES, NOW_MS)


def test_the_name_of_a_shared_key_is_unknown() -> None:
    with pytest.raises(UnknownKey):
        validate(signed("HS256", kid="shared"), KEYS, RULES, NOW_MS)


def test_another_key_and_changed_claims_are_refused() -> None:
    header, claims, signature = signed("ES256").split(".")
    other = text(json.dumps({**CLAIMS, "sub": "admin"}).encode())
    for token in (
        f"{header}.{other}.{signature}",
        f"{header}.{claims}.{signature[:-4]}AAAA",
        signed("RS256", kid="ec"),
    ):
        with pytest.raises(InvalidToken):
            validate(token, KEYS, RULES, NOW_MS)


def test_critical_extensions_are_refused() -> None:
    with pytest.raises(InvalidToken, match="critical"):
        validate(signed("ES256", crit="b64"), KEYS, RULES, NOW_MS)


@pytest.mark.parametrize("part", [0, 1], ids=["header", "claims"])
def test_a_name_that_comes_twice_is_refused(part: int) -> None:
    parts = signed("ES256").split(".")
    again = {0: b'{"alg": "ES256", "alg": "ES256"}', 1: b'{"sub": "alice", "sub": "admin", "exp": 9e9}'}
    parts[part] = text(again[part])
    with pytest.raises(InvalidToken, match="is not a JWT"):
        validate(".".join(parts), KEYS, RULES, NOW_MS)


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({"exp": NOW_S - 31}, RULES),
        ({"exp": None}, RULES),
        ({"exp": "soon"}, RULES),
        ({"nbf": NOW_S + 31}, RULES),
        ({"iat": NOW_S + 31}, RULES),
        ({"sub": ""}, RULES),
        ({"sub": 5}, RULES),
        ({}, TokenRules(audiences=("other",))),
        ({"aud": "kafka-not"}, TokenRules(audiences=("kafka",))),
        ({}, TokenRules(issuer="somebody")),
        ({}, TokenRules(subject_claim="client_id")),
    ],
)
def test_claims_are_checked(changes: dict[str, Any], rules: TokenRules) -> None:
    with pytest.raises(InvalidToken):
        validate(signed("ES256", {**CLAIMS, **changes}), KEYS, rules, NOW_MS)


def test_clocks_may_differ() -> None:
    late = {**CLAIMS, "exp": NOW_S - 29, "iat": NOW_S + 29}
    rules = TokenRules(audiences=("kafka",), issuer="me")
    assert validate(signed("ES256", late), KEYS, rules, NOW_MS).principal == "alice"


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c.d", "....", "e30.e30.", "W10.W10.", "x" * 70_000])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidToken):
        validate(token, KEYS, RULES, NOW_MS)


def server() -> OAuthBearerServer:
    return OAuthBearerServer(lambda token: validate(token, KEYS, RULES, NOW_MS))


def test_an_exchange_ends_with_the_principal_and_the_expiry_of_the_token() -> None:
    broker, client = server(), OAuthBearerClient(signed("ES256"), {"traceId": "1"})
    assert client.evaluate(broker.evaluate(client.first())) is None
    assert (broker.authorization_id, broker.expires_ms, client.is_complete) == ("alice", NOW_MS + 100_000, True)


def test_a_token_that_is_not_accepted_fails_in_two_steps() -> None:
    broker, client = server(), OAuthBearerClient(signed("none"))
    challenge = broker.evaluate(client.first())
    assert challenge == b'{"status":"invalid_token"}'
    answer = client.evaluate(challenge)
    assert answer == b"\x01"
    with pytest.raises(AuthenticationRefused, match="invalid_token"):
        broker.evaluate(answer)
    assert not broker.is_complete


@pytest.mark.parametrize(
    "message", [b"", b"\x01", b"n,,\x01\x01", b"n,,\x01auth=Basic abc\x01\x01", b"y,,\x01auth=Bearer a\x01\x01"]
)
def test_malformed_messages_are_refused(message: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        server().evaluate(message)


def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(AuthenticationRefused):
        server().evaluate(f"n,a=admin,\x01auth=Bearer {signed('ES256')}\x01\x01".encode())


def test_keys_in_a_file_may_be_exchanged(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text('{"keys": []}')
    source = KeySource(file.as_uri(), refresh_s=3600)
    assert list(source.current()) == []
    file.write_bytes(keys_document())
    assert [key.key_id for key in source.current()] == ["ec", "rsa"]
    file.write_text("broken")
    assert [key.key_id for key in source.current()] == ["ec", "rsa"], "what cannot be read changes nothing"


def test_tokens_without_a_signature_only_when_asked_for() -> None:
    with pytest.raises(InvalidSetting, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url"):
        TokenValidator({})
    login = parse_jaas('x.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="bob";')
    accepted = TokenValidator({"sasl.server.callback.handler.class": UNSECURED_HANDLER})
    assert accepted(unsecured_token(login.options)).principal == "bob"
    with pytest.raises(InvalidToken):
        accepted(signed("ES256"))


@pytest.mark.parametrize("url", ["ftp://host/keys", "file:///does/not/exist"])
def test_keys_that_cannot_be_read_keep_a_broker_from_starting(url: str) -> None:
    with pytest.raises(InvalidSetting):
        TokenValidator({"sasl.oauthbearer.jwks.endpoint.url": url})


def test_a_message_that_is_too_long_is_refused_at_once() -> None:
    broker = OAuthBearerServer(lambda token: ValidToken("alice", (), NOW_MS))
    for message in (b"n,,\x01" + b"a=b\x01" * 125_000, b"n,,\x01auth=Bearer " + b" " * 500_000 + b"\x01\x01"):
        with pytest.raises(InvalidCredentials, match="too long"):
            broker.evaluate(message)
    broker.evaluate(b"n,,\x01auth=Bearer " + b"a" * MAX_TOKEN_BYTES + b"\x01\x01")
    assert broker.is_complete


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": 5},
        {"aud": None},
        {"aud": [["kafka"], {}]},
        {"scope": None},
        {"scope": 1},
        {"exp": float("nan")},
        {"exp": float("inf")},
        {"iat": float("nan")},
        {"sub": "\ud800"},
    ],
)
def test_claims_of_the_wrong_kind_are_refused(claims: dict[str, Any]) -> None:
    rules = TokenRules(audiences=("kafka",))
    with pytest.raises(InvalidToken):
        validate(signed("ES256", {**CLAIMS, **claims}), KEYS, rules, NOW_MS)


@pytest.mark.parametrize("algorithm", [["ES256"], {}, 5, None])
def test_an_algorithm_of_the_wrong_kind_is_refused(algorithm: Any) -> None:
    with pytest.raises(InvalidToken):
        validate(signed(algorithm), KEYS, RULES, NOW_MS)
