"""SASL on one connection: SaslHandshake and SaslAuthenticate until the client has authenticated, and again when its
session ends (KIP-43, KIP-152, KIP-368).

The rules are those of Kafka's SaslServerAuthenticator:
- before the handshake a client may send ApiVersions, once, and nothing else;
- after a handshake of version 0 tokens are sent bare, without a request header;
- a failure is reported after `connection.failed.authentication.delay.ms`, and the connection is closed. Until then
  nothing more is read from it, so that guessing is slow;
- a session that has expired ends with the next request, unless the client re-authenticates: as the same principal, with
  the same mechanism.

Until a client has authenticated, its requests are limited to `sasl.server.max.receive.size`, and authentication to
AUTHENTICATE_WITHIN_S in total. A mechanism that blocks is evaluated in a thread; meanwhile nothing more is read.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Final, TypeAlias, TypeVar

from kaspar.base.errors import ErrorCode, MalformedBytes
from kaspar.base.log import get_log
from kaspar.network.authentication_metrics import AuthenticationMetrics
from kaspar.network.connection import Buffers, Connection, Slot
from kaspar.network.gates import Principal, Rejected, TokenPrincipal
from kaspar.network.responses import encode_response
from kaspar.protocol import codec
from kaspar.protocol.api import api_name
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.headers import RequestHeader, frame, read_request_header
from kaspar.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kaspar.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kaspar.protocol.schema import Message
from kaspar.security.sasl import AuthenticationRefused, InvalidCredentials, SaslServer

log = get_log(__name__)

M = TypeVar("M", bound=Message)

AUTHENTICATE_WITHIN_S: Final = 30.0
REAUTHENTICATE_AFTER_S: Final = 1.0
"""A handshake sooner after the last authentication is not accepted as a re-authentication."""
_SASL_HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE)
_HIGHEST: Final = {ApiKey.SASL_HANDSHAKE: 1, ApiKey.SASL_AUTHENTICATE: 2}


@dataclass(frozen=True, slots=True)
class SaslTerms:
    """The conditions of a listener for its clients. `mechanisms` creates the broker's side of an exchange;
    `max_reauth_ms` is `connections.max.reauth.ms` of the mechanisms that have it; `run_in_thread` is for mechanisms
    that block.
    """

    mechanisms: Mapping[str, Callable[[], SaslServer]]
    max_reauth_ms: Mapping[str, int]
    max_receive_bytes: int
    failure_delay_ms: int
    metrics: AuthenticationMetrics
    run_in_thread: Callable[[Callable[[bytes], bytes | None], bytes], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failed attempt to authenticate. If `response` is None, the connection is closed without one."""

    response: Buffers | None
    reason: str


_Evaluate: TypeAlias = Callable[[], bytes | None]
_Respond: TypeAlias = Callable[[_Evaluate], Buffers | _Failure | None]
"""Builds the response to a token from the function that evaluates the token."""


class _State(Enum):
    HANDSHAKE_OR_VERSIONS = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    COMPLETE = auto()
    FAILED = auto()


class SaslAuthenticator:
    """An `Authenticator` for the lifetime of one connection."""

    def __init__(self, connection: Connection, terms: SaslTerms, now_ms: Callable[[], int]) -> None:
        self._connection = connection
        self._terms = terms
        self._now_ms = now_ms
        self._state = _State.HANDSHAKE_OR_VERSIONS
        self._mechanism = self._other_mechanism = ""
        self._server: SaslServer | None = None
        self._has_headers = False
        self._can_reauthenticate = False
        self._began_again = 0.0
        self._authenticated: Principal | None = None
        self._session_began = 0.0
        self._session_ends: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._evaluating: asyncio.Task[None] | None = None
        connection.max_request_bytes = min(terms.max_receive_bytes, connection.owner.max_request_bytes)
        self._start_timer(AUTHENTICATE_WITHIN_S, self._took_too_long)

    def connection_lost(self) -> None:
        self._stop_timer()
        if self._evaluating is not None:
            self._evaluating.cancel()

    def handle(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        state = self._state
        if state is _State.COMPLETE:
            return self._handle_authenticated(buffer, start, end, received)
        if state is _State.FAILED:
            return None
        if state is _State.AUTHENTICATE and not self._has_headers:
            return self._bare_token(bytes(buffer[start:end]))
        content = memoryview(buffer)[start:end]
        header = read_request_header(content)
        connection.client_id = header.client_id
        match header.api_key:
            case ApiKey.API_VERSIONS if state is _State.HANDSHAKE_OR_VERSIONS:
                if header.api_version <= _API_VERSIONS_NEWEST:
                    self._state = _State.HANDSHAKE
                return connection.owner.requests.handle(connection, buffer, start, end, received)
            case ApiKey.SASL_HANDSHAKE if state is not _State.AUTHENTICATE:
                return self._handshake(header, _read(SaslHandshakeRequest, header, content))
            case ApiKey.SASL_AUTHENTICATE if state is _State.AUTHENTICATE:
                return self._authenticate(header, _read(SaslAuthenticateRequest, header, content))
        # This is not a failed authentication: Kafka does not count it as one either.
        doing = "authentication" if state is _State.AUTHENTICATE else "handshake"
        raise Rejected(f"{_name(header.api_key)} during the SASL {doing}: check the client's security.protocol")

    # -- the exchange ------------------------------------------------------------------------------------------------

    def _handshake(self, header: RequestHeader, request: SaslHandshakeRequest) -> Buffers | Slot:
        mechanisms, mechanism = self._terms.mechanisms, request.mechanism
        names = tuple(mechanisms)
        if mechanism not in mechanisms:
            response = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=names)
            return self._fail(
                _Failure(_encoded(header, response), f"the SASL mechanism {mechanism[:64]} is not enabled")
            )
        self._has_headers = header.api_version >= 1
        if self._authenticated is not None and mechanism != self._mechanism:
            # Kafka accepts the handshake and refuses the first token.
            self._server, self._other_mechanism = None, mechanism
        else:
            self._mechanism, self._server = mechanism, mechanisms[mechanism]()
        self._state = _State.AUTHENTICATE
        return _encoded(header, SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=names))

    def _authenticate(self, header: RequestHeader, request: SaslAuthenticateRequest) -> Buffers | Slot | None:
        self._can_reauthenticate = header.api_version > 0
        return self._evaluate(request.auth_bytes, partial(self._response, header))

    def _bare_token(self, token: bytes) -> Buffers | Slot | None:
        return self._evaluate(token, self._bare_response)

    def _evaluate(self, token: bytes, respond: _Respond) -> Buffers | Slot | None:
        server = self._server
        if server is not None and server.blocks:
            return self._evaluate_in_thread(server, token, respond)
        response = respond(lambda: None if server is None else server.evaluate(token))
        return self._fail(response) if isinstance(response, _Failure) else response

    def _evaluate_in_thread(self, server: SaslServer, token: bytes, respond: _Respond) -> Slot:
        """Evaluate a token in a thread. Meanwhile nothing more is read from the connection."""
        slot = self._connection.take_slot()
        self._connection.hold(memoryview(b""))
        self._evaluating = asyncio.get_running_loop().create_task(self._fill(slot, server, token, respond))
        return slot

    async def _fill(self, slot: Slot, server: SaslServer, token: bytes, respond: _Respond) -> None:
        try:
            (outcome,) = await asyncio.gather(self._terms.run_in_thread(server.evaluate, token), return_exceptions=True)
            response = respond(partial(_token_of, outcome))
            if isinstance(response, _Failure):
                self._fail(response, slot)
                return
            slot.fill(response)
            self._connection.resume()
        except Exception as problem:
            slot.fail(problem)

    def _response(self, header: RequestHeader, evaluate: _Evaluate) -> Buffers | _Failure:
        try:
            token, lifetime_ms = self._evaluated(evaluate)
        except AuthenticationRefused as refused:
            sentence = reason = str(refused)
        except InvalidCredentials as invalid:
            again = "re-authentication" if self._authenticated is not None else "authentication"
            sentence = f"Authentication failed during {again} due to invalid credentials with SASL mechanism " + (
                self._mechanism
            )
            reason = f"{sentence}: {invalid}"
        else:
            return _encoded(header, SaslAuthenticateResponse(auth_bytes=token or b"", session_lifetime_ms=lifetime_ms))
        response = SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=sentence, auth_bytes=b""
        )
        return _Failure(_encoded(header, response), reason)

    def _bare_response(self, evaluate: _Evaluate) -> Buffers | _Failure | None:
        try:
            token, _ = self._evaluated(evaluate)
        except (AuthenticationRefused, InvalidCredentials) as problem:
            return _Failure(None, str(problem))
        return None if token is None else (frame(token),)

    def _evaluated(self, evaluate: _Evaluate) -> tuple[bytes | None, int]:
        """The response, and the lifetime of the session in milliseconds: 0 if unlimited, or if there is none yet."""
        server = self._server
        if server is None:
            raise AuthenticationRefused(
                f"SASL mechanism '{self._other_mechanism}' requested by client is not supported for re-authentication "
                f"of mechanism '{self._mechanism}'"
            )
        try:
            response = evaluate()
        except (AuthenticationRefused, InvalidCredentials):
            raise
        except Exception as problem:  # a bug, which must cost the client as much as a failed attempt
            log.exception("a SASL mechanism failed", peer=self._connection.peer, mechanism=self._mechanism)
            raise InvalidCredentials("the mechanism failed") from problem
        if not server.is_complete:
            return response, 0
        principal = (TokenPrincipal if server.is_token else Principal)("User", server.authorization_id)
        before = self._authenticated
        if before is not None and before != principal:
            raise AuthenticationRefused(
                f"Cannot change principals during re-authentication from {before.kind}.{before.name}: "
                f"{principal.kind}.{principal.name}"
            )
        return response, self._complete(principal, server.expires_ms)

    # -- the end of the exchange -------------------------------------------------------------------------------------

    def _complete(self, principal: Principal, expires_ms: int | None) -> int:
        self._stop_timer()
        connection = self._connection
        self._count_success()
        self._authenticated = connection.principal = principal
        connection.max_request_bytes = connection.owner.max_request_bytes
        self._server, self._state = None, _State.COMPLETE
        max_reauth_ms = self._terms.max_reauth_ms.get(self._mechanism, 0)
        limits = [max_reauth_ms] if max_reauth_ms > 0 else []
        if expires_ms is not None:
            limits.append(expires_ms - self._now_ms())
        if not limits:
            self._session_ends = None
            connection.authenticator = None
            return 0
        lifetime_ms = max(0, min(limits))
        self._session_began = time.perf_counter()
        self._session_ends = self._session_began + lifetime_ms / 1000
        return lifetime_ms

    def _fail(self, failure: _Failure, slot: Slot | None = None) -> Slot:
        """Fail the authentication. `slot` is the place of its response, if it already has one."""
        connection = self._connection
        self._count_failure()
        self._state, self._server = _State.FAILED, None
        log.info(
            "a client failed to authenticate",
            peer=connection.peer,
            listener=connection.owner.name,
            reason=failure.reason,
        )
        slot_of_it = slot or connection.take_slot()
        connection.hold(memoryview(b""))
        self._start_timer(self._terms.failure_delay_ms / 1000, lambda: self._close(slot_of_it, failure.response))
        return slot_of_it

    def _close(self, slot: Slot, response: Buffers | None) -> None:
        self._connection.closing = True
        slot.fill(response)

    def _count_success(self) -> None:
        metrics = self._terms.metrics
        if self._authenticated is not None:
            metrics.reauthenticated_in(time.perf_counter() - self._began_again)
            return
        metrics.succeeded.mark()
        metrics.succeeded_without_reauthentication += not self._can_reauthenticate

    def _count_failure(self) -> None:
        metrics = self._terms.metrics
        (metrics.failed if self._authenticated is None else metrics.failed_to_reauthenticate).mark()

    def _took_too_long(self) -> None:
        self._count_failure()
        self._connection.refuse(f"it did not authenticate within {AUTHENTICATE_WITHIN_S:g} s")

    # -- authenticated requests --------------------------------------------------------------------------------------

    def _handle_authenticated(self, buffer: bytearray, start: int, end: int, received: float) -> Buffers | Slot | None:
        ends = self._session_ends
        if ends is not None:
            now = time.perf_counter()
            asks_again = end - start > 1 and buffer[start] << 8 | buffer[start + 1] == _SASL_HANDSHAKE
            if asks_again and now - self._session_began >= REAUTHENTICATE_AFTER_S:
                return self._begin_again(buffer, start, end)
            if now > ends:
                self._terms.metrics.expired += 1
                raise Rejected("its session expired without re-authentication")
        return self._connection.owner.requests.handle(self._connection, buffer, start, end, received)

    def _begin_again(self, buffer: bytearray, start: int, end: int) -> Buffers | Slot:
        content = memoryview(buffer)[start:end]
        header = read_request_header(content)
        request = _read(SaslHandshakeRequest, header, content)
        self._began_again = time.perf_counter()
        self._start_timer(AUTHENTICATE_WITHIN_S, self._took_too_long)
        return self._handshake(header, request)

    # -- the timer ---------------------------------------------------------------------------------------------------

    def _start_timer(self, seconds: float, action: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, action)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_API_VERSIONS_NEWEST: Final = 4


def _token_of(outcome: bytes | BaseException | None) -> bytes | None:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _read(kind: type[M], header: RequestHeader, content: memoryview) -> M:
    if not 0 <= header.api_version <= _HIGHEST[ApiKey(header.api_key)]:
        raise MalformedBytes(f"version {header.api_version} of {_name(header.api_key)} is not served")
    request, _ = codec.read(kind, header.api_version, content, header.body_position)
    return request


def _name(api_key: int) -> str:
    try:
        return api_name(ApiKey(api_key))
    except ValueError:
        return f"API key {api_key}"


def _encoded(header: RequestHeader, response: Message) -> Buffers:
    return encode_response(header.api_version, header.correlation_id, response)
