"""Delegation tokens (KIP-48): a name and a password that stand for the user who requested them, for a limited time.

The password of a token is a digest of its id under `delegation.token.secret.key`. It is not stored, because every
broker can compute it.
"""

import base64
import hmac
from dataclasses import dataclass

Owner = tuple[str, str]
"""The type and the name of a principal."""


@dataclass(frozen=True, slots=True)
class DelegationToken:
    token_id: str
    owner: Owner
    requester: Owner
    renewers: tuple[Owner, ...]
    issue_ms: int
    expiry_ms: int
    max_ms: int

    def belongs_to(self, principal: Owner) -> bool:
        """Whether the principal may renew, expire and describe the token, as its owner and its renewers may."""
        return principal == self.owner or principal in self.renewers

    def has_expired(self, now_ms: int) -> bool:
        return min(self.max_ms, self.expiry_ms) < now_ms


def hmac_of(secret_key: str, token_id: str) -> bytes:
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def password_of(secret_key: str, token_id: str) -> str:
    """The password with which a client authenticates by SCRAM."""
    return base64.b64encode(hmac_of(secret_key, token_id)).decode()
