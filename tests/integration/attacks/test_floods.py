"""More attempts and connections than anybody needs. Others are served meanwhile, request by request."""

import contextlib
import socket
from collections.abc import Callable

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kaspar.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kaspar.security.scram import SCRAM_SHA_512
from tests.integration.attacks.target import TOPIC, Guest, Memory, Target
from tests.peers.observed import wait_until
from tests.peers.raw_client import request_frame

AT_ONCE = 200
HALF_A_MILLION = pytest.param(500_000, marks=(pytest.mark.long, pytest.mark.timeout(3 * 3600)))
FAILED = "a client failed to authenticate"
GUESSES: dict[str, Callable[[int], bytes]] = {
    "PLAIN": lambda number: f"\0alice\0guess-{number}".encode(),
    SCRAM_SHA_512: lambda number: f"n,,n=user-{number},r=x".encode(),
}


@pytest.mark.parametrize("attempts", [1000, HALF_A_MILLION])
@pytest.mark.parametrize("mechanism", GUESSES)
def test_wrong_passwords(target: Target, mechanism: str, attempts: int) -> None:
    """Each costs its sender a connection, and a line of the log says so. Another client goes on in between."""
    memory = Memory(target)
    before = len(target.log_lines(FAILED))
    handshake = request_frame(SaslHandshakeRequest(mechanism=mechanism), 1)
    with target.client() as honest:
        for first in range(0, attempts, AT_ONCE):
            guests: list[Guest] = []
            for number in range(first, first + AT_ONCE):
                guests.append(target.guest("SASL"))
                guess = SaslAuthenticateRequest(auth_bytes=GUESSES[mechanism](number))
                guests[-1].send(handshake + request_frame(guess, 2))
                if number % 20 == 0:
                    assert honest.produce(TOPIC, [b"goes on"]).error_code == ErrorCode.NONE
            for guest in guests:
                guest.receive()
                assert b"failed" in guest.receive()
                assert guest.is_closed_by_broker()
                guest.close()
    wait_until(lambda: len(target.log_lines(FAILED)) - before == attempts, "each attempt has a line")
    memory.check()


def test_silent_connections_do_not_take_the_pages_away(target: Target) -> None:
    host, _, port = target._metrics_address().rpartition(":")
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection((host, int(port)), timeout=30)) for _ in range(500)]
        for sock in silent[::2]:
            sock.send(b"GET /metr")
        assert target.metrics()
        assert target.get("healthz")[0] == 200
        for sock in silent[:250]:
            with contextlib.suppress(ConnectionError):
                assert sock.recv(1) == b"", "those that were silent for longest are closed"
