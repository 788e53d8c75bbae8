"""RenewDelegationToken: extends a token's expiry, up to its maximum lifetime."""

from kaspar.base.clock import Clock
from kaspar.base.errors import Refused
from kaspar.broker.security.tokens import Tokens, time_with
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


class RenewDelegationTokenHandler:
    def __init__(self, tokens: Tokens, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock

    async def __call__(
        self, context: RequestContext, request: RenewDelegationTokenRequest
    ) -> RenewDelegationTokenResponse:
        principal = context.principal.kind, context.principal.name
        try:
            self._tokens.check_may_ask(context)
            now_ms = self._clock.now_ms()
            expiry_ms = await self._tokens.renew(request.hmac, principal, request.renew_period_ms, now_ms)
        except Refused as refusal:
            return RenewDelegationTokenResponse(error_code=refusal.code, expiry_timestamp_ms=time_with(refusal))
        return RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)
