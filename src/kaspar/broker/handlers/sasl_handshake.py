"""SaslHandshake on a listener without SASL, which is refused for every mechanism."""

from kaspar.base.errors import ErrorCode
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
