"""Signed JWTs, and the keys that verify them."""

import base64
import json
import time

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def jwks_of(key: ec.EllipticCurvePrivateKey) -> str:
    numbers = key.public_key().public_numbers()
    x, y = (_encoded(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
    return json.dumps({"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": y, "use": "sig"}]})


def signed_token(key: ec.EllipticCurvePrivateKey, *, lifetime_s: int = 3600, **claims: str) -> str:
    all_claims = {"exp": int(time.time()) + lifetime_s, **claims}
    signed = f"{_encoded(json.dumps({'alg': 'ES256'}).encode())}.{_encoded(json.dumps(all_claims).encode())}"
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
