"""CreateDelegationToken: a token for the client's own principal, or for another that it may create tokens for."""

from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.security.tokens import Tokens, time_with
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kaspar.security.delegation_tokens import DelegationToken, Owner

_USER = "User"


class CreateDelegationTokenHandler:
    def __init__(self, tokens: Tokens, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock

    async def __call__(
        self, context: RequestContext, request: CreateDelegationTokenRequest
    ) -> CreateDelegationTokenResponse:
        requester = context.principal.kind, context.principal.name
        owner = requester
        if request.owner_principal_name:
            owner = request.owner_principal_type or _USER, request.owner_principal_name
        renewers = tuple((each.principal_type, each.principal_name) for each in request.renewers)
        try:
            self._tokens.check_may_ask(context)
            # An authentication with a token knows only users, so a token of another kind would be that of the user of
            # that name.
            if any(kind != _USER for kind, _ in (owner, *renewers)):
                raise Refused(ErrorCode.INVALID_PRINCIPAL_TYPE, "")
            now_ms = self._clock.now_ms()
            token = await self._tokens.create(owner, requester, renewers, request.max_lifetime_ms, now_ms)
        except Refused as refusal:
            return _response(owner, requester, refusal=refusal)
        return _response(owner, requester, token, self._tokens.hmac_of(token))


def _response(
    owner: Owner,
    requester: Owner,
    token: DelegationToken | None = None,
    hmac: bytes = b"",
    *,
    refusal: Refused | None = None,
) -> CreateDelegationTokenResponse:
    no_time = 0 if refusal is None else time_with(refusal)
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=requester[0],
        token_requester_principal_name=requester[1],
        issue_timestamp_ms=no_time if token is None else token.issue_ms,
        expiry_timestamp_ms=no_time if token is None else token.expiry_ms,
        max_timestamp_ms=no_time if token is None else token.max_ms,
        token_id="" if token is None else token.token_id,
        hmac=hmac,
    )
