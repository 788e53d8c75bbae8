"""Connections that say nothing, say it slowly or do not read: others are served, and these are closed. With both
parsers of HTTP, in plain text and over TLS.
"""

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from kaspar.security.certificates import CertificateAuthority
from kaspar.web import server as web_server
from kaspar.web.connection import Connection
from kaspar.web.h11_connection import H11Connection
from kaspar.web.httptools_connection import MOST_PIPELINED, HttpToolsConnection
from kaspar.web.limits import ConnectionLimits
from kaspar.web.pages import OPEN, PageSecurity, PageServer

LARGE = "x" * 20_000_000
LIMIT = 5
ENDLESS = 100_000_000


def make_app() -> Starlette:
    async def small(request: Request) -> PlainTextResponse:
        return PlainTextResponse("ok")

    async def large(request: Request) -> PlainTextResponse:
        return PlainTextResponse(LARGE)

    async def read(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"read {len(await request.body())}")

    return Starlette(
        routes=[Route("/small", small), Route("/large", large), Route("/read", read, methods=["POST"])],
        exception_handlers={ClientDisconnect: lambda request, problem: PlainTextResponse("gone", 400)},
    )


Serve = Callable[[ConnectionLimits], "Pages"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ssl.SSLContext]:
    """The file of the server, and what trusts it."""
    authority = CertificateAuthority.new()
    file = tmp_path_factory.mktemp("certificate") / "pages.pem"
    file.write_bytes(authority.issue("pages", hosts=["localhost"]).key_and_chain)
    return str(file), ssl.create_default_context(cadata=authority.certificate.decode())


@pytest.fixture(params=["h11", "h11 over tls", "httptools", "httptools over tls"])
def serve(
    request: pytest.FixtureRequest, certificate: tuple[str, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Serve]:
    parser = HttpToolsConnection if "httptools" in request.param else H11Connection
    monkeypatch.setattr(web_server, "connection_class", lambda: parser)
    security, context = OPEN, None
    if "tls" in request.param:
        security, context = PageSecurity(certificate_file=certificate[0]), certificate[1]
    with contextlib.ExitStack() as stack:

        def start(limits: ConnectionLimits) -> Pages:
            running = PageServer(make_app, host="127.0.0.1", port=0, security=security, limits=limits)
            running.start()
            stack.callback(running.stop)
            pages = Pages(running.port, context)
            stack.callback(pages.close)
            return pages

        yield start


@pytest.fixture
def server(serve: Serve) -> "Pages":
    return serve(ConnectionLimits(connections=LIMIT))


class Pages:
    """What clients of the server do."""

    def __init__(self, port: int, context: ssl.SSLContext | None) -> None:
        self.port = port
        self.context = context
        self._stack = contextlib.ExitStack()

    def close(self) -> None:
        self._stack.close()

    def silent(self) -> socket.socket:
        return self._stack.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=30))

    def connect(self) -> socket.socket:
        plain = self.silent()
        if self.context is None:
            return plain
        return self._stack.enter_context(self.context.wrap_socket(plain, server_hostname="localhost"))

    def get(self) -> int:
        connection = http.client.HTTPConnection("localhost", self.port, timeout=30)
        connection.sock = self.connect()
        connection.request("GET", "/small")
        return connection.getresponse().status


def is_closed(sock: socket.socket) -> bool:
    try:
        while sock.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def response_to(sock: socket.socket) -> bytes:
    """The first line of what comes before the connection is closed, which may be cut: nothing then."""
    received = b""
    with contextlib.suppress(OSError):
        while chunk := sock.recv(1 << 16):
            received += chunk
    return received.partition(b"\r\n")[0]


def test_silent_connections_do_not_keep_others_out(server: Pages) -> None:
    silent = [server.silent() for _ in range(4 * LIMIT)]
    for _ in range(3):
        assert server.get() == 200
    assert all(is_closed(sock) for sock in silent[: 3 * LIMIT]), "those that were silent for longest are gone"


def test_clients_that_do_not_read_do_not_keep_others_out(server: Pages) -> None:
    greedy = [server.connect() for _ in range(LIMIT)]
    for sock in greedy:
        sock.sendall(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
    for _ in range(3):
        assert server.get() == 200


def test_something_has_to_come_in_time(serve: Serve) -> None:
    assert is_closed(serve(ConnectionLimits(head_within_s=0.3)).silent())


def test_a_head_has_to_come_in_time(serve: Serve) -> None:
    server = serve(ConnectionLimits(head_within_s=0.3))
    deadline = time.monotonic() + 30
    with contextlib.suppress(OSError):
        sock = server.connect()
        sock.sendall(b"GET /small HTTP/1.1\r\nx-slow: ")
        while time.monotonic() < deadline:
            sock.sendall(b"y")
            time.sleep(0.02)
    assert time.monotonic() < deadline, "it was closed"


def test_a_later_head_has_to_come_in_time_too(serve: Serve) -> None:
    sock = serve(ConnectionLimits(head_within_s=1.0)).connect()
    sock.sendall(b"GET /small HTTP/1.1\r\nhost: x\r\n\r\n")
    assert sock.recv(1 << 16).startswith(b"HTTP/1.1 200")
    sock.sendall(b"GET /small HTT")
    assert is_closed(sock)


@pytest.mark.parametrize("limits", [ConnectionLimits(response_within_s=0.5), ConnectionLimits(unread_within_s=0.5)])
def test_a_response_has_to_be_read_in_time(
    serve: Serve, limits: ConnectionLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    aborted, abort = threading.Event(), Connection.abort

    def recorded(connection: Connection, reason: str) -> None:
        abort(connection, reason)
        aborted.set()

    monkeypatch.setattr(Connection, "abort", recorded)
    sock = serve(limits).connect()
    sock.sendall(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
    assert aborted.wait(30)
    received = 0
    with contextlib.suppress(OSError):
        while chunk := sock.recv(1 << 20):
            received += len(chunk)
    assert received < len(LARGE)


def test_a_response_that_is_read_slowly_is_sent_to_its_end(serve: Serve) -> None:
    sock = serve(ConnectionLimits(unread_within_s=0.2)).connect()
    sock.sendall(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
    received = 0
    while received < len(LARGE):
        chunk = sock.recv(1 << 16)
        assert chunk, "it was closed, although something was read all the time"
        received += len(chunk)
        if received % (1 << 20) < len(chunk):
            time.sleep(0.02)


def test_a_head_that_is_too_large_is_refused(serve: Serve) -> None:
    server = serve(ConnectionLimits(head_bytes=4_000))
    for head in (b"GET /small HTTP/1.1\r\nx: " + b"y" * 500_000, b"GET /" + b"x" * 500_000):
        sock = server.connect()
        with contextlib.suppress(OSError):
            sock.sendall(head)
        assert response_to(sock) in (b"HTTP/1.1 431 Request Header Fields Too Large", b"")
        assert server.get() == 200


def test_a_head_of_many_small_headers_is_refused(serve: Serve) -> None:
    sock = serve(ConnectionLimits(head_bytes=4_000)).connect()
    sock.sendall(b"GET /small HTTP/1.1\r\nhost: x\r\n")
    with contextlib.suppress(OSError):
        for _ in range(1_000):
            sock.sendall(b"x-%b: y\r\n" % (b"z" * 20))
    assert response_to(sock) in (b"HTTP/1.1 431 Request Header Fields Too Large", b"")


@pytest.mark.parametrize("endless", [b"x: %b\r\n" % (b"y" * 100), b"y" * 100])
def test_the_trailer_of_a_body_has_an_end(serve: Serve, endless: bytes) -> None:
    sock = serve(ConnectionLimits(head_bytes=4_000)).connect()
    sock.sendall(b"POST /read HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n")
    with contextlib.suppress(OSError):
        for _ in range(10_000):
            sock.sendall(endless)
        pytest.fail("a trailer of a megabyte was taken")


def test_requests_that_are_sent_ahead_are_responded_to_in_order(server: Pages) -> None:
    sock = server.connect()
    sock.sendall(b"GET /small HTTP/1.1\r\nhost: x\r\n\r\n" * 20)
    received = b""
    while received.count(b"\r\n\r\nok") < 20:
        received += sock.recv(1 << 16)
    assert received.count(b"HTTP/1.1 200") == 20


def test_endless_requests_are_not_kept_in_memory(serve: Serve) -> None:
    """Their responses are not read: at some point nothing more is taken, or the connection is closed."""
    sock = serve(ConnectionLimits(unread_within_s=0.5)).connect()
    sock.settimeout(1)
    ahead = b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n" * (10 * MOST_PIPELINED)
    sent = 0
    with contextlib.suppress(OSError):
        while sent < ENDLESS:
            sent += sock.send(ahead)
    assert sent < ENDLESS


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x01\x02\xff\r\n\r\n",
        b"GET\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        b"POST /small HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n",
        b"POST /small HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /read HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /small HTTP/1.1\r\nhost: x\r\nbad header: \x00\r\n\r\n",
    ],
)
def test_garbage_is_refused_and_harms_nobody(server: Pages, garbage: bytes) -> None:
    sock = server.connect()
    sock.sendall(garbage)
    assert response_to(sock) in (b"HTTP/1.1 400 Bad Request", b"HTTP/1.1 404 Not Found", b"")
    assert server.get() == 200


@pytest.mark.parametrize("sent", [b"", b"GET /sm", b"POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf"])
def test_a_client_that_closes_its_half_is_let_go(server: Pages, sent: bytes) -> None:
    """Of TLS too, where it is the end of everything."""
    sock = server.connect()
    sock.sendall(sent)
    sock.shutdown(socket.SHUT_WR)
    assert is_closed(sock)
    assert server.get() == 200


def test_an_offered_upgrade_is_ignored_and_the_connection_goes_on(server: Pages) -> None:
    """Java's HttpClient offers HTTP/2 with every first request."""
    connection = http.client.HTTPConnection("localhost", server.port, timeout=30)
    connection.sock = server.connect()
    offer = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAE"}
    for _ in range(2):
        connection.request("POST", "/read", b"hello", offer)
        assert connection.getresponse().read() == b"read 5"
        connection.request("GET", "/small", headers=offer)
        assert connection.getresponse().read() == b"ok"
        connection.request("GET", "/small")
        assert connection.getresponse().read() == b"ok"


def test_a_connection_may_be_used_again(server: Pages) -> None:
    connection = http.client.HTTPConnection("localhost", server.port, timeout=30)
    connection.sock = server.connect()
    for _ in range(5):
        connection.request("GET", "/small")
        assert connection.getresponse().read() == b"ok"
