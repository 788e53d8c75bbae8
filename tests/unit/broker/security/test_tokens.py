"""Delegation tokens are those of users, since a log-in with one is that of a user; and how they are found."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kaspar.base.clock import SystemClock
from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers.create_delegation_token import CreateDelegationTokenHandler
from kaspar.broker.security import tokens as tokens_module
from kaspar.broker.security.credentials import Credentials
from kaspar.broker.security.tokens import Tokens
from kaspar.network.api import RequestContext
from kaspar.network.gates import Principal
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from kaspar.security.delegation_tokens import DelegationToken, Owner, hmac_of
from kaspar.security.scram import SCRAM_SHA_256

SETTINGS: Any = SimpleNamespace(
    config=SimpleNamespace(
        delegation_token_secret_key="key", delegation_token_max_lifetime_ms=1000, delegation_token_expiry_time_ms=1000
    )
)


def token(token_id: str, owner: Owner) -> DelegationToken:
    return DelegationToken(token_id, owner, owner, (), 0, 1000, 1000)


def images(*tokens: DelegationToken) -> Any:
    return SimpleNamespace(current=SimpleNamespace(delegation_tokens={each.token_id: each for each in tokens}))


class Controller:
    def __init__(self) -> None:
        self.events: list[Any] = []

    async def submit(self, event: Any) -> None:
        self.events.append(event)


@pytest.mark.parametrize(
    ("requester", "kind", "name", "code"),
    [
        ("User", "", "", ErrorCode.NONE),
        ("User", "User", "bob", ErrorCode.NONE),
        ("User", "Group", "bob", ErrorCode.INVALID_PRINCIPAL_TYPE),
        ("Group", "", "", ErrorCode.INVALID_PRINCIPAL_TYPE),
    ],
)
def test_a_token_is_created_for_a_user_only(requester: str, kind: str, name: str, code: ErrorCode) -> None:
    controller: Any = Controller()
    handler = CreateDelegationTokenHandler(Tokens(SETTINGS, images(), controller), SystemClock())
    context = RequestContext(
        ApiKey.CREATE_DELEGATION_TOKEN, 3, 1, "c", "127.0.0.1:1", "L", Principal(requester, "alice"), "SASL_SSL"
    )
    request = CreateDelegationTokenRequest(
        owner_principal_type=kind, owner_principal_name=name, renewers=(), max_lifetime_ms=-1
    )
    response = asyncio.run(handler(context, request))
    assert response.error_code == code
    assert bool(controller.events) == bool(response.hmac) == (code is ErrorCode.NONE)


def test_a_token_of_another_kind_of_principal_does_not_log_in() -> None:
    known = images(token("of-user", ("User", "alice")), token("of-group", ("Group", "alice")))
    credentials = Credentials(known, SETTINGS, lambda: 0)
    identity = credentials.scram(SCRAM_SHA_256, "of-user", True)
    assert identity is not None
    assert identity.authorization_id == "alice"
    assert credentials.scram(SCRAM_SHA_256, "of-group", True) is None


def test_digests_are_computed_once_for_each_token(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []

    def counted(secret_key: str, token_id: str) -> bytes:
        computed.append(token_id)
        return hmac_of(secret_key, token_id)

    monkeypatch.setattr(tokens_module, "hmac_of", counted)
    alice = ("User", "alice")
    known = images(token("a", alice), token("b", alice))
    controller: Any = Controller()
    tokens = Tokens(SETTINGS, known, controller)

    async def renewed(secret_key: str, token_id: str) -> None:
        await tokens.renew(hmac_of(secret_key, token_id), alice, -1, 0)

    async def scenario() -> None:
        for _ in range(3):
            await renewed("key", "b")
        with pytest.raises(Refused):
            await renewed("other key", "b")
        assert computed == ["a", "b"]
        known.current = images(token("b", alice), token("c", alice)).current
        await renewed("key", "c")
        with pytest.raises(Refused):
            await renewed("key", "a")
        assert computed == ["a", "b", "c"]
        monkeypatch.setattr(SETTINGS.config, "delegation_token_secret_key", "other key")
        await renewed("other key", "b")
        with pytest.raises(Refused):
            await renewed("key", "b")

    asyncio.run(scenario())
    assert [event.token.token_id for event in controller.events] == ["b", "b", "b", "c", "b"]
