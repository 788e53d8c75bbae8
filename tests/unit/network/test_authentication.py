"""SASL on a connection over a transport that only remembers: what is let through, in which order, and how it fails."""

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.metrics import Counter
from kaspar.client.core import ClientCore
from kaspar.network import authentication
from kaspar.network.authentication import SaslAuthenticator, SaslTerms
from kaspar.network.authentication_metrics import AuthenticationMetrics
from kaspar.network.connection import Buffers, Connection, RequestHandler, Slot
from kaspar.network.gates import ANONYMOUS, Principal, TokenPrincipal
from kaspar.network.responses import encode_response
from kaspar.protocol.headers import read_request_header
from kaspar.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.messages.metadata import MetadataRequest
from kaspar.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kaspar.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kaspar.protocol.schema import Message
from kaspar.security.plain import PlainServer
from kaspar.security.sasl import InvalidCredentials, SaslServer
from kaspar.security.scram import SCRAM_SHA_256, ScramIdentity, ScramServer, new_credential
from tests.unit.broker.wire import RecordingTransport, frame, receive

M = TypeVar("M", bound=Message)

ALICE = b"\0alice\0secret"
CREDENTIAL = new_credential(SCRAM_SHA_256, "secret")


class Owner:
    """Responds to ApiVersions and remembers other requests."""

    name = "SASL"
    max_request_bytes = 10_000_000

    def __init__(self) -> None:
        self.shared_buffer = bytearray(256 * 1024)
        self.shared_view = memoryview(self.shared_buffer)
        self.requests: RequestHandler = self
        self.overloaded = False
        self.turn_s = math.inf
        self.malformed_requests = Counter()
        self.handled: list[tuple[Principal, int]] = []

    def handle(
        self, connection: Connection, buffer: bytearray, start: int, end: int, received: float
    ) -> Buffers | Slot | None:
        header = read_request_header(memoryview(buffer)[start:end])
        self.handled.append((connection.principal or ANONYMOUS, header.api_key))
        return encode_response(
            min(header.api_version, 3), header.correlation_id, ApiVersionsResponse(api_keys=(), throttle_time_ms=0)
        )

    def opened(self, connection: Connection) -> None: ...
    def closed(self, connection: Connection) -> None: ...
    def stalled(self, seconds: float) -> None: ...

    async def run_blocking(self, work: Callable[[int], bytes], size: int) -> bytes:
        return work(size)

    def call_soon(self, callback: Callable[[], None]) -> None:
        callback()

    def request_failed(self, connection: Connection, problem: Exception) -> None:
        raise problem


class Peer:
    """A client of one connection."""

    def __init__(
        self,
        *,
        max_reauth_ms: int = 0,
        failure_delay_ms: int = 20,
        token_expires_ms: int | None = None,
        more: Mapping[str, Callable[[], SaslServer]] | None = None,
    ) -> None:
        self.owner = Owner()
        self.transport = RecordingTransport()
        self.connection = Connection(self.owner, "1.2.3.4:5")
        self.connection.connection_made(self.transport)
        self.transport.when_closed = lambda: self.connection.connection_lost(None)
        self.metrics = AuthenticationMetrics()
        terms = SaslTerms(
            mechanisms={
                "PLAIN": lambda: PlainServer(lambda user, password: (user, password) in USERS),
                SCRAM_SHA_256: lambda: ScramServer(
                    SCRAM_SHA_256, lambda name, is_token: ScramIdentity(CREDENTIAL, "alice", token_expires_ms)
                ),
                **(more or {}),
            },
            max_reauth_ms={"PLAIN": max_reauth_ms},
            max_receive_bytes=1000,
            failure_delay_ms=failure_delay_ms,
            metrics=self.metrics,
            run_in_thread=asyncio.to_thread,
        )
        self.connection.authenticator = SaslAuthenticator(self.connection, terms, lambda: 1_000_000)
        self.core = ClientCore()

    def send(self, message: Message, version: int | None = None) -> None:
        receive(self.connection, self.core.send(message, version))

    def response(self, kind: type[M]) -> M:
        data, self.transport.sent = bytes(self.transport.sent), bytearray()
        (response,) = self.core.receive(data)
        assert isinstance(response.message, kind)
        return response.message

    def ask(self, message: Message, kind: type[M], version: int | None = None) -> M:
        self.send(message, version)
        return self.response(kind)

    def log_in(self, token: bytes = ALICE) -> SaslAuthenticateResponse:
        handshake = self.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 1)
        assert handshake.error_code == ErrorCode.NONE
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse, 2)

    async def failure(self, kind: type[M]) -> M:
        """The response to a failed attempt, which comes late and is the last one."""
        assert not self.transport.sent
        await until(lambda: self.transport.is_closing())
        return self.response(kind)


USERS = {("alice", "secret"), ("bob", "secret")}


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(_awaited(scenario))


async def _awaited(scenario: Callable[[], Awaitable[None]]) -> None:
    await scenario()


def test_requests_are_handled_after_the_log_in_only() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.ask(ApiVersionsRequest(), ApiVersionsResponse, 3)
        assert peer.log_in().session_lifetime_ms == 0
        assert peer.connection.principal == ("User", "alice")
        peer.send(MetadataRequest(topics=()), 9)
        assert peer.owner.handled == [(ANONYMOUS, 18), (("User", "alice"), 3)]
        assert peer.metrics.succeeded.total == 1
        assert peer.connection.max_request_bytes == peer.owner.max_request_bytes

    run(scenario)


@pytest.mark.parametrize("first", [None, "versions", "handshake"])
def test_any_other_request_closes_the_connection(first: str | None) -> None:
    async def scenario() -> None:
        peer = Peer()
        if first == "versions":
            peer.ask(ApiVersionsRequest(), ApiVersionsResponse, 3)
        elif first == "handshake":
            peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 1)
        peer.send(MetadataRequest(topics=()), 9)
        assert peer.transport.is_closing()
        assert all(key == 18 for _, key in peer.owner.handled)

    run(scenario)


def test_api_versions_is_served_once_and_not_after_the_handshake() -> None:
    async def scenario() -> None:
        for before in (ApiVersionsRequest(), SaslHandshakeRequest(mechanism="PLAIN")):
            peer = Peer()
            peer.send(before, 1)
            peer.send(ApiVersionsRequest(), 3)
            assert peer.transport.is_closing()

    run(scenario)


def test_a_failure_is_reported_late_and_closes_the_connection() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 1)
        peer.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
        assert not peer.transport.is_reading(), "nothing more is read from it"
        response = await peer.failure(SaslAuthenticateResponse)
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert response.error_message == "Authentication failed: Invalid username or password"
        assert peer.connection.principal is None
        assert peer.metrics.failed.total == 1

    run(scenario)


def test_what_follows_a_failed_attempt_is_not_handled() -> None:
    async def scenario() -> None:
        peer = Peer(failure_delay_ms=0)
        peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 1)
        attempts = [
            peer.core.send(SaslAuthenticateRequest(auth_bytes=token), 2) for token in (b"\0alice\0wrong", ALICE)
        ]
        receive(peer.connection, b"".join(attempts))
        await until(lambda: peer.transport.is_closing())
        assert peer.connection.principal is None

    run(scenario)


def test_an_invalid_credential_does_not_say_why() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.ask(SaslHandshakeRequest(mechanism=SCRAM_SHA_256), SaslHandshakeResponse, 1)
        peer.send(SaslAuthenticateRequest(auth_bytes=b"nonsense"), 2)
        response = await peer.failure(SaslAuthenticateResponse)
        assert response.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
        )

    run(scenario)


def test_an_unknown_mechanism_is_answered_with_those_that_are_enabled() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.send(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
        response = await peer.failure(SaslHandshakeResponse)
        assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert response.mechanisms == ("PLAIN", SCRAM_SHA_256)

    run(scenario)


def test_tokens_come_bare_after_a_handshake_of_version_0() -> None:
    async def scenario() -> None:
        peer = Peer()
        peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 0)
        receive(peer.connection, frame(ALICE))
        assert bytes(peer.transport.sent) == frame(b"")
        assert peer.connection.principal == ("User", "alice")

    run(scenario)


def test_a_stranger_may_not_send_large_requests() -> None:
    async def scenario() -> None:
        peer = Peer()
        receive(peer.connection, (2000).to_bytes(4, "big"))
        assert peer.transport.is_closing()

    run(scenario)


def test_a_handshake_that_never_ends_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "AUTHENTICATE_WITHIN_S", 0.01)

    async def scenario() -> None:
        peer = Peer()
        peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 1)
        await until(lambda: peer.transport.is_closing())

    run(scenario)


def test_a_delegation_token_makes_the_session_end_with_it() -> None:
    async def scenario() -> None:
        from kaspar.security.scram import ScramClient

        peer = Peer(token_expires_ms=1_005_000)
        peer.ask(SaslHandshakeRequest(mechanism=SCRAM_SHA_256), SaslHandshakeResponse, 1)
        exchange = ScramClient(SCRAM_SHA_256, "token", "secret", token_auth=True)
        token: bytes | None = exchange.first()
        response = None
        while token is not None:
            response = peer.ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse, 2)
            token = exchange.evaluate(response.auth_bytes)
        assert response is not None
        assert response.session_lifetime_ms == 5000
        assert isinstance(peer.connection.principal, TokenPrincipal)

    run(scenario)


class Again(Peer):
    """Has logged in, and may log in again at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, max_reauth_ms: int = 60_000) -> None:
        monkeypatch.setattr(authentication, "REAUTHENTICATE_AFTER_S", 0.0)
        super().__init__(max_reauth_ms=max_reauth_ms)
        assert self.log_in().session_lifetime_ms == max_reauth_ms


def test_the_same_principal_may_authenticate_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        peer = Again(monkeypatch)
        assert peer.log_in().session_lifetime_ms == 60_000
        peer.send(MetadataRequest(topics=()), 9)
        assert peer.owner.handled == [(("User", "alice"), 3)]
        assert peer.metrics.reauthenticated.total == 1

    run(scenario)


def test_another_principal_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        peer = Again(monkeypatch)
        peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 1)
        peer.send(SaslAuthenticateRequest(auth_bytes=b"\0bob\0secret"), 2)
        response = await peer.failure(SaslAuthenticateResponse)
        assert response.error_message == ("Cannot change principals during re-authentication from User.alice: User.bob")

    run(scenario)


def test_nor_may_another_mechanism_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        peer = Again(monkeypatch)
        peer.ask(SaslHandshakeRequest(mechanism=SCRAM_SHA_256), SaslHandshakeResponse, 1)
        peer.send(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x"), 2)
        response = await peer.failure(SaslAuthenticateResponse)
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED

    run(scenario)


def test_an_expired_session_ends_with_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        peer = Again(monkeypatch, max_reauth_ms=1)
        await asyncio.sleep(0.01)
        peer.send(MetadataRequest(topics=()), 9)
        assert peer.transport.is_closing()
        assert peer.owner.handled == []
        assert peer.metrics.expired == 1

    run(scenario)


def test_a_mechanism_that_fails_costs_the_client_the_same_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(server: PlainServer, token: bytes) -> bytes:
        raise TypeError("a bug")

    monkeypatch.setattr(PlainServer, "evaluate", broken)

    async def scenario() -> None:
        peer = Peer()
        peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 1)
        peer.send(SaslAuthenticateRequest(auth_bytes=ALICE), 2)
        failure = await peer.failure(SaslAuthenticateResponse)
        assert failure.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "a bug" not in (failure.error_message or "")
        assert peer.metrics.failed.total == 1

    run(scenario)


class SlowServer:
    """Blocks until the test lets it go on, and has no last response, as GSSAPI."""

    is_token = False
    expires_ms: int | None = None
    blocks = True
    authorization_id = "alice"

    def __init__(self) -> None:
        self.is_complete = False
        self.has_begun = threading.Event()
        self.goes_on = threading.Event()

    def evaluate(self, token: bytes) -> bytes | None:
        self.has_begun.set()
        assert self.goes_on.wait(30)
        if token == b"wrong":
            raise InvalidCredentials("the ticket is stale")
        if token == b"bug":
            raise TypeError("a bug")
        self.is_complete = token == b"last"
        return None if self.is_complete else b"challenge"


class Slow(Peer):
    def __init__(self, handshake_version: int = 1) -> None:
        self.server = SlowServer()
        super().__init__(more={"SLOW": lambda: self.server})
        self.ask(SaslHandshakeRequest(mechanism="SLOW"), SaslHandshakeResponse, handshake_version)

    async def answer(self) -> None:
        await until(lambda: bool(self.transport.sent))


def test_a_mechanism_that_blocks_does_not_stop_the_event_loop() -> None:
    async def scenario() -> None:
        peer = Slow()
        requests = [
            peer.core.send(SaslAuthenticateRequest(auth_bytes=b"first"), 2),
            peer.core.send(SaslAuthenticateRequest(auth_bytes=b"last"), 2),
            peer.core.send(MetadataRequest(topics=()), 9),
        ]
        receive(peer.connection, b"".join(requests))  # returns, while nothing is evaluated yet
        await until(peer.server.has_begun.is_set)
        assert not peer.transport.sent
        assert not peer.transport.is_reading()
        peer.server.goes_on.set()
        await until(lambda: peer.owner.handled == [(("User", "alice"), 3)])
        assert peer.transport.is_reading()
        assert peer.metrics.succeeded.total == 1

    run(scenario)


@pytest.mark.parametrize("token", [b"wrong", b"bug"])
def test_a_failure_in_the_thread_is_reported_as_any_other(token: bytes) -> None:
    async def scenario() -> None:
        peer = Slow()
        peer.server.goes_on.set()
        peer.send(SaslAuthenticateRequest(auth_bytes=token), 2)
        response = await peer.failure(SaslAuthenticateResponse)
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert response.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism SLOW"
        )
        assert peer.metrics.failed.total == 1

    run(scenario)


def test_a_client_that_leaves_meanwhile_is_forgotten() -> None:
    async def scenario() -> None:
        peer = Slow()
        peer.send(SaslAuthenticateRequest(auth_bytes=b"last"), 2)
        await until(peer.server.has_begun.is_set)
        peer.connection.close()
        peer.server.goes_on.set()
        await until(lambda: peer.server.is_complete)
        await asyncio.sleep(0.01)
        assert peer.connection.principal is None
        assert peer.metrics.succeeded.total == 0

    run(scenario)


def test_a_last_token_without_a_response_has_no_frame_either() -> None:
    async def scenario() -> None:
        peer = Slow(handshake_version=0)
        peer.server.goes_on.set()
        receive(peer.connection, frame(b"first"))
        await peer.answer()
        assert bytes(peer.transport.sent) == frame(b"challenge")
        peer.transport.sent.clear()
        receive(peer.connection, frame(b"last"))
        await until(lambda: peer.connection.principal == ("User", "alice"))
        assert not peer.transport.sent

    run(scenario)
