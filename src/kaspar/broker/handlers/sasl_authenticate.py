"""SaslAuthenticate on a listener without SASL, which is refused."""

from kaspar.base.errors import ErrorCode
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate was received on a listener without SASL.",
        auth_bytes=b"",
    )
