"""Delegation tokens for the handlers: who may request them, which token an HMAC belongs to, and when it expires."""

from collections.abc import Mapping
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import random_uuid, uuid_to_text
from kaspar.broker.services import CurrentSettings
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import PutDelegationToken, RemoveDelegationToken
from kaspar.metadata.images import ImageSource
from kaspar.network.api import RequestContext
from kaspar.network.gates import ANONYMOUS, TokenPrincipal
from kaspar.security.delegation_tokens import DelegationToken, Owner, hmac_of

_REFUSED_BY_BROKER: Final = (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, ErrorCode.INVALID_PRINCIPAL_TYPE)


def time_with(refusal: Refused) -> int:
    """The timestamps in a response that refuses: -1 if Kafka's broker would refuse, 0 if its controller would."""
    return -1 if refusal.code in _REFUSED_BY_BROKER else 0


class _Digests:
    """The HMACs of the tokens of an image. Computing them all for each request would block others."""

    __slots__ = ("secret_key", "token_ids", "tokens")

    def __init__(self, secret_key: str, tokens: Mapping[str, DelegationToken], known: Mapping[str, bytes] = {}) -> None:
        self.secret_key = secret_key
        self.tokens = tokens
        self.token_ids = {known.get(token_id) or hmac_of(secret_key, token_id): token_id for token_id in tokens}

    def following(self, tokens: Mapping[str, DelegationToken]) -> "_Digests":
        """The HMACs for changed tokens. Only those of new tokens are computed."""
        return _Digests(self.secret_key, tokens, {token_id: digest for digest, token_id in self.token_ids.items()})


class Tokens:
    def __init__(self, settings: CurrentSettings, images: ImageSource, controller: ControllerChannel) -> None:
        self._settings = settings
        self._images = images
        self._controller = controller
        self._digests = _Digests("", {})

    def check_may_ask(self, context: RequestContext) -> None:
        """Only a client that has authenticated by itself, without a token, may request tokens or details of them."""
        principal, protocol = context.principal, context.security_protocol
        is_stranger = protocol == "PLAINTEXT" or (protocol == "SSL" and principal == ANONYMOUS)
        if is_stranger or isinstance(principal, TokenPrincipal):
            raise Refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "")

    def hmac_of(self, token: DelegationToken) -> bytes:
        return hmac_of(self._secret_key(), token.token_id)

    def all(self) -> list[DelegationToken]:
        self._secret_key()
        return list(self._images.current.delegation_tokens.values())

    async def create(
        self, owner: Owner, requester: Owner, renewers: tuple[Owner, ...], max_lifetime_ms: int, now_ms: int
    ) -> DelegationToken:
        self._secret_key()
        config = self._settings.config
        lifetime_ms = config.delegation_token_max_lifetime_ms
        if max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, max_lifetime_ms)
        max_ms = now_ms + lifetime_ms
        expiry_ms = min(max_ms, now_ms + config.delegation_token_expiry_time_ms)
        token = DelegationToken(uuid_to_text(random_uuid()), owner, requester, renewers, now_ms, expiry_ms, max_ms)
        await self._controller.submit(PutDelegationToken(token, now_ms, is_new=True))
        return token

    async def renew(self, hmac: bytes, principal: Owner, renew_period_ms: int, now_ms: int) -> int:
        """Renew a token. Returns its new expiry time."""
        token = self._owned(hmac, principal, now_ms)
        lifetime_ms = self._settings.config.delegation_token_expiry_time_ms
        if renew_period_ms > 0:
            lifetime_ms = min(lifetime_ms, renew_period_ms)
        return await self._expire_at(token, now_ms + lifetime_ms, now_ms)

    async def expire(self, hmac: bytes, principal: Owner, period_ms: int, now_ms: int) -> int:
        token = self._owned(hmac, principal, now_ms)
        if period_ms < 0:
            await self._controller.submit(RemoveDelegationToken(token.token_id))
            return period_ms
        return await self._expire_at(token, now_ms + period_ms, now_ms)

    async def _expire_at(self, token: DelegationToken, wanted_ms: int, now_ms: int) -> int:
        expiry_ms = min(token.max_ms, wanted_ms)
        changed = DelegationToken(
            token.token_id,
            token.owner,
            token.requester,
            token.renewers,
            token.issue_ms,
            expiry_ms,
            token.max_ms,
        )
        await self._controller.submit(PutDelegationToken(changed, now_ms, is_new=False))
        return expiry_ms

    def _owned(self, digest: bytes, principal: Owner, now_ms: int) -> DelegationToken:
        secret_key = self._secret_key()
        tokens = self._images.current.delegation_tokens
        if self._digests.secret_key != secret_key:
            self._digests = _Digests(secret_key, {})
        if self._digests.tokens is not tokens:
            self._digests = self._digests.following(tokens)
        token_id = self._digests.token_ids.get(digest)
        if token_id is None:
            raise Refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "")
        token = tokens[token_id]
        if token.has_expired(now_ms):
            raise Refused(ErrorCode.DELEGATION_TOKEN_EXPIRED, "")
        if not token.belongs_to(principal):
            raise Refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, "")
        return token

    def _secret_key(self) -> str:
        secret_key = self._settings.config.delegation_token_secret_key
        if not secret_key:
            raise Refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "")
        return secret_key
