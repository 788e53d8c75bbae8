"""DescribeDelegationToken: the tokens of the named owners, or of all."""

from kaspar.base.errors import Refused
from kaspar.broker.security.tokens import Tokens
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kaspar.security.delegation_tokens import DelegationToken


class DescribeDelegationTokenHandler:
    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def __call__(
        self, context: RequestContext, request: DescribeDelegationTokenRequest
    ) -> DescribeDelegationTokenResponse:
        owners = request.owners
        try:
            self._tokens.check_may_ask(context)
            tokens = self._tokens.all()
        except Refused as refusal:
            return DescribeDelegationTokenResponse(error_code=refusal.code, tokens=())
        if owners is not None:
            wanted = [(each.principal_type, each.principal_name) for each in owners]
            tokens = [token for token in tokens if any(map(token.belongs_to, wanted))]
        return DescribeDelegationTokenResponse(tokens=tuple(map(self._described, tokens)))

    def _described(self, token: DelegationToken) -> DescribedDelegationToken:
        return DescribedDelegationToken(
            principal_type=token.owner[0],
            principal_name=token.owner[1],
            token_requester_principal_type=token.requester[0],
            token_requester_principal_name=token.requester[1],
            issue_timestamp=token.issue_ms,
            expiry_timestamp=token.expiry_ms,
            max_timestamp=token.max_ms,
            token_id=token.token_id,
            hmac=self._tokens.hmac_of(token),
            renewers=tuple(
                DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
                for kind, name in token.renewers
            ),
        )
