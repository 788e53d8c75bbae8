"""Who may create tokens for others, and see those of others."""

from collections.abc import Awaitable
from typing import Any

import pytest

from kaspar.acls import AclOperation, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.broker.authorization.delegation_tokens import CREATE_DELEGATION_TOKEN, DESCRIBE_DELEGATION_TOKEN
from kaspar.broker.authorization.guards import Call, Guard
from kaspar.network.api import RequestContext
from kaspar.network.gates import Principal
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kaspar.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kaspar.protocol.schema import Message

ALICE = Principal("User", "alice")

Permission = tuple[AclOperation, ResourceType, str]


class Caller:
    def __init__(self, *allowed: Permission) -> None:
        self._allowed = allowed
        self.loud = 0

    def is_authorized(
        self, operation: AclOperation, resource_type: ResourceType, name: str, *, quietly: bool = False, count: int = 1
    ) -> bool:
        self.loud += not quietly
        return (operation, resource_type, name) in self._allowed


def guarded(guard: Guard, request: Message, response: Message, *allowed: Permission) -> Any:
    context = RequestContext(ApiKey.CREATE_DELEGATION_TOKEN, 3, 1, "client", "127.0.0.1:1", "L", ALICE)
    images: Any = None
    caller: Any = Caller(*allowed)
    result = guard(Call(caller, context, images, lambda context, request: response), request)
    assert not isinstance(result, Awaitable)
    return result


def token(token_id: str, owner: str, *renewers: str) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        token_id=token_id,
        principal_type="User",
        principal_name=owner,
        renewers=tuple(
            DescribedDelegationTokenRenewer(principal_type="User", principal_name=renewer) for renewer in renewers
        ),
        issue_timestamp=0,
        expiry_timestamp=1,
        max_timestamp=2,
        hmac=b"",
    )


TOKENS = DescribeDelegationTokenResponse(
    tokens=(
        token("mine", "alice"),
        token("renewed", "bob", "carol", "alice"),
        token("bobs", "bob"),
        token("carols", "carol"),
    )
)


@pytest.mark.parametrize(
    ("allowed", "seen"),
    [
        ((), {"mine", "renewed"}),
        (((AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, "carols"),), {"mine", "renewed", "carols"}),
        (((AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:bob"),), {"mine", "renewed", "bobs"}),
    ],
)
def test_tokens_of_others_are_seen_with_a_permission_on_the_token_or_its_owner(
    allowed: tuple[Permission, ...], seen: set[str]
) -> None:
    request = DescribeDelegationTokenRequest(owners=None)
    response = guarded(DESCRIBE_DELEGATION_TOKEN, request, TOKENS, *allowed)
    assert {each.token_id for each in response.tokens} == seen


CREATED = CreateDelegationTokenResponse(
    principal_type="User",
    principal_name="alice",
    issue_timestamp_ms=0,
    expiry_timestamp_ms=1,
    max_timestamp_ms=2,
    token_id="new",
    hmac=b"secret",
)


def asked_for(owner: str) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name=owner, renewers=(), max_lifetime_ms=-1
    )


@pytest.mark.parametrize("owner", ["", "alice"])
def test_everybody_may_create_tokens_of_their_own(owner: str) -> None:
    request = asked_for(owner)
    assert guarded(CREATE_DELEGATION_TOKEN, request, CREATED) is CREATED


def test_a_token_of_another_user_needs_a_permission_on_that_user() -> None:
    request = asked_for("bob")
    refused = guarded(CREATE_DELEGATION_TOKEN, request, CREATED)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert refused.token_id == ""
    permission = AclOperation.CREATE_TOKENS, ResourceType.USER, "User:bob"
    assert guarded(CREATE_DELEGATION_TOKEN, request, CREATED, permission) is CREATED


def test_tokens_that_are_left_out_are_no_news_for_the_audit_log() -> None:
    context = RequestContext(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, 1, "client", "127.0.0.1:1", "L", ALICE)
    images: Any = None
    caller: Any = Caller()
    DESCRIBE_DELEGATION_TOKEN(
        Call(caller, context, images, lambda context, request: TOKENS), DescribeDelegationTokenRequest(owners=None)
    )
    assert caller.loud == 0
