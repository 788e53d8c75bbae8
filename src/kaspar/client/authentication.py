"""The log-in on a connection as a generator of decisions: requests to send, given the responses. A shell does the I/O.

steps = log_in(core, security, host)
request = next(steps)
while True:
    request = steps.send(response of request)   # StopIteration has the lifetime of the session
"""

import random
from collections.abc import Generator
from typing import Final, NamedTuple, TypeAlias

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.core import ClientCore
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kaspar.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kaspar.protocol.schema import Message
from kaspar.security.client import ClientSecurity
from kaspar.security.sasl import InvalidCredentials

_HANDSHAKE_VERSION: Final = 1
"""The first version in which tokens are sent in separate requests; the only other version is 0."""
_AUTHENTICATE_VERSION: Final = 2


class LogInRequest(NamedTuple):
    message: Message
    version: int


LogIn: TypeAlias = Generator[LogInRequest, Message, int]
"""Returns the lifetime of the session in milliseconds; 0 if it is not limited."""


def log_in(core: ClientCore, security: ClientSecurity, host: str) -> LogIn:
    """The steps of a log-in. Each step blocks if `security.log_in_blocks`. Raises Refused (SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM).
    """
    exchange = security.new_login(host)
    if exchange is None:
        return 0
    response = yield LogInRequest(SaslHandshakeRequest(mechanism=security.mechanism), _HANDSHAKE_VERSION)
    assert isinstance(response, SaslHandshakeResponse)
    _check_handshake(response, security.mechanism)
    version = min(_AUTHENTICATE_VERSION, core.version_of(ApiKey.SASL_AUTHENTICATE))
    lifetime_ms = 0
    try:
        token: bytes | None = exchange.first()
        while token is not None:
            response = yield LogInRequest(SaslAuthenticateRequest(auth_bytes=token), version)
            assert isinstance(response, SaslAuthenticateResponse)
            if response.error_code != ErrorCode.NONE:
                raise Refused(
                    ErrorCode(response.error_code), response.error_message or ErrorCode(response.error_code).name
                )
            lifetime_ms = response.session_lifetime_ms
            token = exchange.evaluate(response.auth_bytes)
    except InvalidCredentials as problem:
        raise Refused(ErrorCode.SASL_AUTHENTICATION_FAILED, str(problem)) from None
    return lifetime_ms


def log_in_again_after_s(lifetime_ms: int) -> float:
    """When to log in again: after 85 to 95 per cent of the session's lifetime, as in Kafka's clients (KIP-368)."""
    return lifetime_ms / 1000 * random.uniform(0.85, 0.95)


def _check_handshake(response: SaslHandshakeResponse, mechanism: str) -> None:
    code = response.error_code
    if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise Refused(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            f"Client SASL mechanism '{mechanism}' not enabled in the server, enabled mechanisms are "
            f"[{', '.join(response.mechanisms)}]",
        )
    if code == ErrorCode.ILLEGAL_SASL_STATE:
        raise Refused(
            ErrorCode.ILLEGAL_SASL_STATE,
            f"Unexpected handshake request with client mechanism {mechanism}, enabled mechanisms are "
            f"[{', '.join(response.mechanisms)}]",
        )
    if code != ErrorCode.NONE:
        raise Refused(ErrorCode(code), f"the SASL handshake was refused: {ErrorCode(code).name}")
