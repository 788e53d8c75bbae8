"""Creates, renews, expires and lists delegation tokens (KIP-48, KIP-373).

Brokers allow these calls only to clients that have authenticated, and not with a token."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from kaspar.acls.principal import Principal
from kaspar.client.admin.session import Admin, refuse
from kaspar.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kaspar.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kaspar.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kaspar.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

BROKERS_DEFAULT_MS: Final = -1
"""The period in the brokers' settings; for `expire_token`, at once."""


@dataclass(frozen=True, slots=True)
class DelegationToken:
    token_id: str
    hmac: bytes = field(repr=False)
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_expires_ms: int
    """The token cannot be renewed beyond this time."""


def create_token(
    admin: Admin,
    *,
    owner: Principal | None = None,
    renewers: Collection[Principal] = (),
    max_lifetime_ms: int = BROKERS_DEFAULT_MS,
) -> DelegationToken:
    """Create a token for this owner, by default for the user of this session. Raises Refused."""
    response = admin.ask_any(
        "createDelegationToken",
        CreateDelegationTokenRequest(
            owner_principal_type=owner.kind if owner is not None else "",
            owner_principal_name=owner.name if owner is not None else "",
            renewers=tuple(CreatableRenewers(principal_type=each.kind, principal_name=each.name) for each in renewers),
            max_lifetime_ms=max_lifetime_ms,
        ),
        CreateDelegationTokenResponse,
    )
    refuse(response.error_code)
    return DelegationToken(
        response.token_id,
        response.hmac,
        Principal(response.principal_type, response.principal_name),
        Principal(response.token_requester_principal_type, response.token_requester_principal_name),
        tuple(renewers),
        response.issue_timestamp_ms,
        response.expiry_timestamp_ms,
        response.max_timestamp_ms,
    )


def renew_token(admin: Admin, hmac: bytes, period_ms: int = BROKERS_DEFAULT_MS) -> int:
    """Renew a token. Returns the new time of its expiry. Raises Refused."""
    response = admin.ask_any(
        "renewDelegationToken",
        RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms),
        RenewDelegationTokenResponse,
    )
    refuse(response.error_code)
    return response.expiry_timestamp_ms


def expire_token(admin: Admin, hmac: bytes, period_ms: int = BROKERS_DEFAULT_MS) -> int:
    """Change the expiry of a token. Returns the new time of its expiry. Raises Refused."""
    response = admin.ask_any(
        "expireDelegationToken",
        ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms),
        ExpireDelegationTokenResponse,
    )
    refuse(response.error_code)
    return response.expiry_timestamp_ms


def describe_tokens(admin: Admin, owners: Collection[Principal] | None = None) -> list[DelegationToken]:
    """The tokens of these owners, or of all (None), that the user of this session may see. Raises Refused."""
    wanted = None
    if owners is not None:
        wanted = tuple(
            DescribeDelegationTokenOwner(principal_type=each.kind, principal_name=each.name) for each in owners
        )
    response = admin.ask_any(
        "describeDelegationToken", DescribeDelegationTokenRequest(owners=wanted), DescribeDelegationTokenResponse
    )
    refuse(response.error_code)
    return list(map(_token, response.tokens))


def _token(found: DescribedDelegationToken) -> DelegationToken:
    return DelegationToken(
        found.token_id,
        found.hmac,
        Principal(found.principal_type, found.principal_name),
        Principal(found.token_requester_principal_type, found.token_requester_principal_name),
        tuple(Principal(each.principal_type, each.principal_name) for each in found.renewers),
        found.issue_timestamp,
        found.expiry_timestamp,
        found.max_timestamp,
    )
