"""Sockets to ZooKeeper: what is seen of their beginning, and when one by TLS is readable."""

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.handlers.threading import KazooTimeoutError

from kaspar.metadata.zookeeper.connections import Greeting, PlainConnection, TlsConnection
from kaspar.metadata.zookeeper.wire import Wire
from kaspar.security.certificates import CertificateAuthority
from kaspar.security.tls import client_context, server_context
from kaspar.security.zookeeper import IN_THE_CLEAR, Login

SERVER = ("localhost", 2181)
LOGIN = Login("broker", "hush", "the file")
SASL = struct.pack("!iii", 12, 1, 102) + b"...."


class Seen:
    def __init__(self) -> None:
        self.granted_ms = 0
        self.problems: list[tuple[str, bool]] = []

    def granted(self, server: tuple[str, int], timeout_ms: int) -> None:
        assert server == SERVER
        self.granted_ms = timeout_ms

    def failed(self, server: tuple[str, int], problem: str, *, is_definite: bool) -> None:
        assert server == SERVER
        self.problems.append((problem, is_definite))


def test_granted_timeout_is_read_from_the_first_message() -> None:
    seen = Seen()
    greeting = Greeting(seen, SERVER, None)
    first = struct.pack("!iii", 37, 0, 4_000)
    for byte in first[:-1]:
        greeting.received(bytes([byte]))
    assert seen.granted_ms == 0
    greeting.received(first[-1:])
    assert seen.granted_ms == 4_000
    greeting.received(struct.pack("!iii", 37, 0, 5_000))
    assert seen.granted_ms == 4_000


def test_login_that_the_server_does_not_understand_ends() -> None:
    seen = Seen()
    greeting = Greeting(seen, SERVER, LOGIN)
    greeting.sent(memoryview(SASL))
    greeting.sent(memoryview(SASL))
    with pytest.raises(ConnectionAbortedError):
        greeting.sent(memoryview(SASL))
    ((problem, is_definite),) = seen.problems
    assert "it does not know logins by SASL" in problem
    assert is_definite


def test_login_is_over_with_the_first_other_request() -> None:
    greeting = Greeting(Seen(), SERVER, LOGIN)
    for frame in (b"connect.....", SASL, SASL, struct.pack("!iii", 8, 3, 14), SASL, SASL):
        greeting.sent(memoryview(frame))
    greeting.received(b"")


@pytest.mark.parametrize("sent", [(), (SASL,), (SASL, SASL)], ids=len)
def test_end_of_a_connection_in_a_login_is_no_wrong_password(sent: tuple[bytes, ...]) -> None:
    """kazoo would say that the login has failed."""
    greeting = Greeting(Seen(), SERVER, LOGIN)
    for frame in (b"connect.....", *sent):
        greeting.sent(memoryview(frame))
    with pytest.raises(KazooTimeoutError):
        greeting.received(b"")


def test_server_that_closes_at_once_may_expect_tls() -> None:
    seen = Seen()
    Greeting(seen, SERVER, None).received(b"")
    ((problem, is_definite),) = seen.problems
    assert "zookeeper.ssl.client.enable" in problem
    assert not is_definite
    Greeting(seen, SERVER, None, is_encrypted=True).received(b"")
    assert "zookeeper.ssl" not in seen.problems[-1][0]


def test_plain_connection_passes_bytes_on() -> None:
    seen = Seen()
    ours, theirs = socket.socketpair()
    with theirs, PlainConnection(Greeting(seen, SERVER, None), ours) as connection:
        connection.send(b"ping")
        assert theirs.recv(10) == b"ping"
        theirs.send(struct.pack("!iii", 37, 0, 4_000))
        assert len(connection.recv(100)) == 12
        assert seen.granted_ms == 4_000


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[TlsConnection, ssl.SSLSocket]]:
    """Ours and the server's end, after the handshake."""
    authority = CertificateAuthority.new()
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    (tmp_path / "server.pem").write_bytes(authority.issue("server", hosts=["localhost"]).key_and_chain)
    serving = server_context(
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "server.pem")}, "none"
    )
    ours, theirs = socket.socketpair()
    accepted: list[ssl.SSLSocket] = []
    thread = threading.Thread(target=lambda: accepted.append(serving.wrap_socket(theirs, server_side=True)))
    thread.start()
    context = client_context({"ssl.truststore.type": "PEM", "ssl.truststore.location": str(tmp_path / "ca.pem")})
    connection = TlsConnection.over(ours, context, "localhost", Greeting(Seen(), SERVER, None))
    thread.join()
    connection.setblocking(False)
    with connection, accepted[0]:
        yield connection, accepted[0]


def test_connection_with_decrypted_bytes_is_readable(pair: tuple[TlsConnection, ssl.SSLSocket]) -> None:
    """Two responses in one record: after the first the socket has nothing, and kazoo would wait for more."""
    connection, server = pair
    wire = Wire(1.0, IN_THE_CLEAR)
    server.send(b"first,second")
    assert wire.select([connection], [], [], 10.0)[0] == [connection]
    assert connection.recv(6) == b"first,"
    assert connection.pending() == 6
    assert wire.select([connection], [], [], None)[0] == [connection]
    assert connection.recv(100) == b"second"


def test_messages_of_tls_itself_make_nothing_readable(pair: tuple[TlsConnection, ssl.SSLSocket]) -> None:
    """A server of TLS 1.3 sends session tickets after the handshake."""
    connection, server = pair
    wire = Wire(1.0, IN_THE_CLEAR)
    assert server.version() == "TLSv1.3"
    assert wire.select([connection], [], [], 0.05)[0] == []
    with pytest.raises(ssl.SSLWantReadError):
        connection.recv(100)
    server.send(b"x" * 100_000)
    received = b""
    while len(received) < 100_000:
        assert wire.select([connection], [], [], 10.0)[0] == [connection]
        received += connection.recv(1_000_000)
    assert received == b"x" * 100_000


def test_end_of_an_encrypted_connection_is_readable(pair: tuple[TlsConnection, ssl.SSLSocket]) -> None:
    connection, server = pair
    server.close()
    assert Wire(1.0, IN_THE_CLEAR).select([connection], [], [], 10.0)[0] == [connection]
    assert connection.recv(100) == b""


def test_all_servers_must_refuse_before_nothing_helps() -> None:
    refusals: list[str] = []
    wire = Wire(1.0, IN_THE_CLEAR, servers=2, on_refused=refusals.append)
    wire.failed(("a", 1), "untrusted", is_definite=True)
    wire.failed(("a", 1), "untrusted", is_definite=True)
    wire.failed(("b", 1), "away", is_definite=False)
    assert (refusals, wire.problem) == ([], "away")
    wire.granted(("a", 1), 4_000)
    wire.failed(("b", 1), "untrusted", is_definite=True)
    assert refusals == []
    wire.failed(("a", 1), "untrusted", is_definite=True)
    assert refusals == ["untrusted"]
