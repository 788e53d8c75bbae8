"""Guards of the delegation token APIs. The owner and the renewers of a token need no permission (KIP-48, KIP-373)."""

from dataclasses import dataclass
from typing import Final

from kaspar.acls.acl import AclOperation, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.broker.authorization.guards import Call, Guard, Need, filtered
from kaspar.network.api import HandlerResult
from kaspar.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kaspar.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenRequest,
)

_NOT_LISTED: Final = "left out"


@dataclass(frozen=True, slots=True)
class CreateDelegationToken:
    needs: tuple[Need, ...] = (
        Need(
            AclOperation.CREATE_TOKENS,
            ResourceType.USER,
            ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            of="the owner, if that is another user",
        ),
    )

    def __call__(self, call: Call, request: CreateDelegationTokenRequest) -> HandlerResult:
        requester = call.context.principal
        kind, name = request.owner_principal_type or "User", request.owner_principal_name
        if not name or (kind, name) == (requester.kind, requester.name):
            return call.proceed(request)
        (create,) = self.needs
        if create.is_authorized(call.caller, f"{kind}:{name}"):
            return call.proceed(request)
        return CreateDelegationTokenResponse(
            error_code=create.code,
            principal_type=kind,
            principal_name=name,
            token_requester_principal_type=requester.kind,
            token_requester_principal_name=requester.name,
            issue_timestamp_ms=-1,
            expiry_timestamp_ms=-1,
            max_timestamp_ms=-1,
            token_id="",
            hmac=b"",
        )


@dataclass(frozen=True, slots=True)
class DescribeDelegationToken:
    needs: tuple[Need, ...] = (
        Need(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, _NOT_LISTED, of="tokens of others"),
        Need(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, _NOT_LISTED, of="or, instead, their owners"),
    )

    def __call__(self, call: Call, request: DescribeDelegationTokenRequest) -> HandlerResult:
        requester = call.context.principal
        of_token, of_owner = self.needs

        def is_authorized(needed: Need, name: str) -> bool:
            return call.caller.is_authorized(needed.operation, needed.resource_type, name, quietly=True)

        def may_see(token: DescribedDelegationToken) -> bool:
            principals = [(token.principal_type, token.principal_name)]
            principals += [(each.principal_type, each.principal_name) for each in token.renewers]
            return (
                (requester.kind, requester.name) in principals
                or is_authorized(of_token, token.token_id)
                or is_authorized(of_owner, f"{token.principal_type}:{token.principal_name}")
            )

        return filtered(call.proceed(request), "tokens", DescribedDelegationToken, may_see, call.context.version)


CREATE_DELEGATION_TOKEN: Final[Guard] = CreateDelegationToken()
DESCRIBE_DELEGATION_TOKEN: Final[Guard] = DescribeDelegationToken()
