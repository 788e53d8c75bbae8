"""Delegation tokens (KIP-48): a name and a password that stand for the user who asked for them, for a limited time.

The password of a token is a digest of its id under `delegation.token.secret.key`, so it is stored nowhere: every broker
computes it.
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
        """Whether the principal may renew, expire and describe it: its owner and its renewers may."""
        return principal == self.owner or principal in self.renewers

    def has_expired(self, now_ms: int) -> bool:
        return min(self.max_ms, self.expiry_ms) < now_ms


def hmac_of(secret_key: str, token_id: str) -> bytes:
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def password_of(secret_key: str, token_id: str) -> str:
    """What a client logs in with by SCRAM."""
    return base64.b64encode(hmac_of(secret_key, token_id)).decode()
