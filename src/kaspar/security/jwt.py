"""JSON Web Tokens (RFC 7519) and the keys that sign them (RFC 7517), checked as far as OAUTHBEARER needs it.

Only asymmetric signatures are accepted. A token without one (`none`), or with a shared secret (HS256), is refused
whatever the keys are, and so is an algorithm that does not fit the key. Errors never contain the token.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from kaspar.base.errors import KasparError

MAX_TOKEN_BYTES: Final = 64 * 1024
_HASHES: Final = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
_CURVES: Final[Mapping[str, tuple[ec.EllipticCurve, str]]] = {
    "P-256": (ec.SECP256R1(), "ES256"),
    "P-384": (ec.SECP384R1(), "ES384"),
    "P-521": (ec.SECP521R1(), "ES512"),
}
_MIN_RSA_BITS: Final = 2048


class InvalidToken(KasparError):
    """The text is for the broker's log."""


class UnknownKey(InvalidToken):
    """The token refers to an unknown key, which may be new."""


@dataclass(frozen=True, slots=True)
class Jwk:
    """A public key, and the algorithms that may be used with it."""

    key_id: str | None
    algorithms: frozenset[str]
    key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey

    def verify(self, algorithm: str, signature: bytes, message: bytes) -> bool:
        try:
            if isinstance(self.key, rsa.RSAPublicKey):
                self.key.verify(signature, message, _padding(algorithm), _HASHES[algorithm[2:]])
            else:
                half = len(signature) // 2
                numbers = (int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big"))
                self.key.verify(encode_dss_signature(*numbers), message, ec.ECDSA(_HASHES[algorithm[2:]]))
        except InvalidSignature:
            return False
        return True


def _padding(algorithm: str) -> padding.AsymmetricPadding:
    if algorithm.startswith("RS"):
        return padding.PKCS1v15()
    return padding.PSS(padding.MGF1(_HASHES[algorithm[2:]]), padding.PSS.DIGEST_LENGTH)


def read_keys(text: bytes) -> list[Jwk]:
    """The keys of a JWKS document that sign tokens, except those of unknown kinds. Raises InvalidToken."""
    try:
        entries = json.loads(text)["keys"]
        return [key for entry in entries if (key := _key(entry)) is not None]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidToken("the keys are not a JWKS document") from None


def _key(entry: Mapping[str, Any]) -> Jwk | None:
    if entry.get("use", "sig") != "sig":
        return None
    match entry.get("kty"):
        case "RSA":
            public: rsa.RSAPublicKey | ec.EllipticCurvePublicKey = rsa.RSAPublicNumbers(
                _number(entry["e"]), _number(entry["n"])
            ).public_key()
            if public.key_size < _MIN_RSA_BITS:
                return None
            algorithms = {f"{kind}{size}" for kind in ("RS", "PS") for size in _HASHES}
        case "EC" if entry.get("crv") in _CURVES:
            curve, algorithm = _CURVES[entry["crv"]]
            public = ec.EllipticCurvePublicNumbers(_number(entry["x"]), _number(entry["y"]), curve).public_key()
            algorithms = {algorithm}
        case _:
            return None
    if "alg" in entry:
        algorithms &= {entry["alg"]}
    return Jwk(entry.get("kid"), frozenset(algorithms), public)


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token has to satisfy: `sasl.oauthbearer.*`. Scopes are not required, but are part of the result."""

    scope_claim: str = "scope"
    subject_claim: str = "sub"
    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    clock_skew_s: int = 30


@dataclass(frozen=True, slots=True)
class ValidToken:
    principal: str
    scopes: tuple[str, ...]
    expires_ms: int


def validate(token: str, keys: Sequence[Jwk], rules: TokenRules, now_ms: int) -> ValidToken:
    """Check a token and its signature. Raises InvalidToken, or UnknownKey."""
    header, claims, signature, signed = _parts(token)
    algorithm = header.get("alg")
    if not isinstance(algorithm, str):
        raise InvalidToken("the token does not say how it is signed")
    if "crit" in header:  # RFC 7515, 4.1.11: extensions that must be understood; none is
        raise InvalidToken("the token has a critical extension")
    candidates = [key for key in keys if "kid" not in header or key.key_id == header["kid"]]
    if not candidates:
        raise UnknownKey("the token was signed with an unknown key")
    if not any(algorithm in key.algorithms and key.verify(algorithm, signature, signed) for key in candidates):
        raise InvalidToken("the signature of the token is invalid")
    return check_claims(claims, rules, now_ms)


def read_unsecured(token: str, rules: TokenRules, now_ms: int) -> ValidToken:
    """Check a token without a signature, which anyone can create: for development. Raises InvalidToken."""
    header, claims, signature, _ = _parts(token)
    if header.get("alg") != "none" or signature:
        raise InvalidToken("a token without a signature was expected")
    return check_claims(claims, rules, now_ms)


def check_claims(claims: Mapping[str, Any], rules: TokenRules, now_ms: int) -> ValidToken:
    skew_ms = rules.clock_skew_s * 1000
    expires_ms = _time_ms(claims, "exp")
    if expires_ms is None:
        raise InvalidToken("the token has no expiry time")
    if expires_ms + skew_ms <= now_ms:
        raise InvalidToken("the token has expired")
    for name in ("nbf", "iat"):
        begins_ms = _time_ms(claims, name)
        if begins_ms is not None and begins_ms - skew_ms > now_ms:
            raise InvalidToken(f"the token is not valid yet ({name})")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidToken("the issuer of the token is not sasl.oauthbearer.expected.issuer")
    if rules.audiences and not set(rules.audiences) & set(_texts(claims, "aud")):
        raise InvalidToken("the token has none of sasl.oauthbearer.expected.audience")
    principal = claims.get(rules.subject_claim)
    if not isinstance(principal, str) or not principal.strip():
        raise InvalidToken(f"the token has no {rules.subject_claim}")
    if any("\ud800" <= character <= "\udfff" for character in principal):  # half of a pair, which is not valid text
        raise InvalidToken(f"{rules.subject_claim} of the token is not text")
    scopes = claims.get(rules.scope_claim)
    listed = scopes.split() if isinstance(scopes, str) else _texts(claims, rules.scope_claim)
    return ValidToken(principal.strip(), tuple(listed), expires_ms)


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    """A claim that is one text or a list of them."""
    value = claims.get(name, [])
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise InvalidToken(f"{name} of the token is neither a text nor a list")
    return [each for each in value if isinstance(each, str)]


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """The header, the claims, the signature, and the signed text."""
    if len(token) > MAX_TOKEN_BYTES:
        raise InvalidToken("the token is too long")
    try:
        header, claims, signature = token.split(".")
        parts = _json(_decoded(header)), _json(_decoded(claims))
        if not all(isinstance(part, dict) for part in parts):
            raise InvalidToken("the token is not a JWT")
        return *parts, _decoded(signature), f"{header}.{claims}".encode()
    except (ValueError, binascii.Error, RecursionError):
        raise InvalidToken("the token is not a JWT") from None


def _json(text: bytes) -> Any:
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unambiguous)


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse duplicate names: another reader of the token may use the other value."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name is repeated")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e11:
        raise InvalidToken(f"{name} of the token is not a time")
    return int(value * 1000)


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _number(text: str) -> int:
    return int.from_bytes(_decoded(text), "big")
