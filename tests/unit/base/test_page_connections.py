"""Connections to HTTP pages that say nothing, say it slowly or do not read: others are served, and these are closed."""

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from kaspar.base import page_connections
from kaspar.base.page_security import OPEN, PageSecurity
from kaspar.base.pages import PageServer
from kaspar.security.certificates import CertificateAuthority

LARGE = "x" * 20_000_000
LIMIT = 5


def make_app() -> Starlette:
    return Starlette(
        routes=[
            Route("/small", lambda request: PlainTextResponse("ok")),
            Route("/large", lambda request: PlainTextResponse(LARGE)),
        ]
    )


@pytest.fixture(params=["plain", "tls"])
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["Pages"]:
    monkeypatch.setattr(page_connections, "MAX_CONNECTIONS", LIMIT)
    authority = CertificateAuthority.new()
    security, context = OPEN, None
    if request.param == "tls":
        file = tmp_path / "pages.pem"
        file.write_bytes(authority.issue("pages", hosts=["localhost"]).key_and_chain)
        security = PageSecurity(certificate_file=str(file))
        context = ssl.create_default_context(cadata=authority.certificate.decode())
    running = PageServer(make_app, host="127.0.0.1", port=0, security=security)
    running.start()
    pages = Pages(running.port, context)
    yield pages
    pages.close()
    running.stop()


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


def test_something_has_to_come_in_time(server: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_connections, "HEAD_WITHIN_S", 0.3)
    assert is_closed(server.silent())


def test_a_head_has_to_come_in_time(server: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_connections, "HEAD_WITHIN_S", 0.3)
    deadline = time.monotonic() + 30
    with contextlib.suppress(OSError):
        sock = server.connect()
        sock.sendall(b"GET /small HTTP/1.1\r\nx-slow: ")
        while time.monotonic() < deadline:
            sock.sendall(b"y")
            time.sleep(0.02)
    assert time.monotonic() < deadline, "it was closed"


def test_a_later_head_has_to_come_in_time_too(server: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    sock = server.connect()
    sock.sendall(b"GET /small HTTP/1.1\r\nhost: x\r\n\r\n")
    assert sock.recv(1 << 16).startswith(b"HTTP/1.1 200")
    monkeypatch.setattr(page_connections, "HEAD_WITHIN_S", 0.3)
    sock.sendall(b"GET /small HTT")
    assert is_closed(sock)


def test_a_response_has_to_be_read_in_time(server: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_connections, "RESPONSE_WITHIN_S", 0.5)
    aborted, abort = threading.Event(), page_connections.PageConnection.abort

    def recorded(connection: page_connections.PageConnection, reason: str) -> None:
        abort(connection, reason)
        aborted.set()

    monkeypatch.setattr(page_connections.PageConnection, "abort", recorded)
    sock = server.connect()
    sock.sendall(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
    assert aborted.wait(30)
    received = 0
    with contextlib.suppress(OSError):
        while chunk := sock.recv(1 << 20):
            received += len(chunk)
    assert received < len(LARGE)


def test_a_connection_may_be_used_again(server: Pages) -> None:
    connection = http.client.HTTPConnection("localhost", server.port, timeout=30)
    connection.sock = server.connect()
    for _ in range(5):
        connection.request("GET", "/small")
        assert connection.getresponse().read() == b"ok"
