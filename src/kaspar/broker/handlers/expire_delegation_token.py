"""ExpireDelegationToken: expires a token, now or after a given time."""

from kaspar.base.clock import Clock
from kaspar.base.errors import Refused
from kaspar.broker.security.tokens import Tokens, time_with
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


class ExpireDelegationTokenHandler:
    def __init__(self, tokens: Tokens, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock

    async def __call__(
        self, context: RequestContext, request: ExpireDelegationTokenRequest
    ) -> ExpireDelegationTokenResponse:
        principal = context.principal.kind, context.principal.name
        try:
            self._tokens.check_may_ask(context)
            now_ms = self._clock.now_ms()
            expiry_ms = await self._tokens.expire(request.hmac, principal, request.expiry_time_period_ms, now_ms)
        except Refused as refusal:
            return ExpireDelegationTokenResponse(error_code=refusal.code, expiry_timestamp_ms=time_with(refusal))
        return ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)
