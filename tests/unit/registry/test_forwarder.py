"""Requests on their way to the leader: what is sent, and what comes back."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kaspar.registry.forwarding import HttpForwarder
from kaspar.registry.interfaces import ForwardedRequest, ForwardedResponse, ForwardingFailed

REQUEST = ForwardedRequest(
    "POST",
    "/subjects/a%2Fb/versions?normalize=true",
    {
        "Content-Type": "application/vnd.schemaregistry.v1+json",
        "Authorization": "Basic eDp5",
        "X-Request-ID": "7",
        "X-Team": "data",
        "Cookie": "secret",
        "Host": "follower:8081",
        "Connection": "close",
    },
    b'{"schema":"x"}',
)


class Leader(ThreadingHTTPServer):
    received: list[tuple[str, str, dict[str, str], bytes]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Leader

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append((self.command, self.path, headers, body))
        self.send_response(409)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.send_header("X-Internal", "no")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def leader() -> Iterator[Leader]:
    with Leader(("127.0.0.1", 0), _Handler) as server:
        server.received = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def forward(
    url: str, *, also_forwarded: tuple[str, ...] = (), request: ForwardedRequest = REQUEST
) -> ForwardedResponse:
    async def run() -> ForwardedResponse:
        forwarder = HttpForwarder(connect_timeout_s=5, read_timeout_s=5, also_forwarded=also_forwarded)
        try:
            return await forwarder.forward(url, REQUEST)
        finally:
            await forwarder.close()

    return asyncio.run(run())


def test_request_arrives_as_it_was_sent_and_is_marked_as_forwarded(leader: Leader) -> None:
    forward(leader.url + "/")
    ((method, path, headers, body),) = leader.received
    assert (method, path, body) == (REQUEST.method, REQUEST.target, REQUEST.body)
    assert headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    assert headers["authorization"] == "Basic eDp5"
    assert headers["x-request-id"] == "7"
    assert headers["x-forward"] == "false"


def test_only_headers_that_the_leader_needs_are_forwarded(leader: Leader) -> None:
    forward(leader.url)
    forward(leader.url, also_forwarded=("x-team",))
    without, with_team = (headers for _, _, headers, _ in leader.received)
    assert "cookie" not in without
    assert "x-team" not in without
    assert with_team["x-team"] == "data"
    assert without["host"] == leader.url.removeprefix("http://")


def test_response_of_the_leader_is_returned_whatever_it_is(leader: Leader) -> None:
    assert forward(leader.url) == ForwardedResponse(409, {"content-type": "application/json"}, b"{}")


def test_leader_that_is_away_is_an_error(leader: Leader) -> None:
    url = leader.url
    leader.server_close()
    with pytest.raises(ForwardingFailed, match="could not be reached"):
        forward(url)


def test_unreachable_leader_is_logged_once(leader: Leader, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        forwarder = HttpForwarder(connect_timeout_s=5, read_timeout_s=5)
        try:
            for url in ("http://127.0.0.1:1", "http://127.0.0.1:1", leader.url, leader.url, "http://127.0.0.1:1"):
                with contextlib.suppress(ForwardingFailed):
                    await forwarder.forward(url, REQUEST)
        finally:
            await forwarder.close()

    with caplog.at_level(logging.INFO, "kaspar.registry.forwarding"):
        asyncio.run(run())
    logged = [record.message.partition(" leader=")[0] for record in caplog.records if "forward" in record.message]
    assert logged == ["requests cannot be forwarded", "requests can be forwarded again", "requests cannot be forwarded"]


@pytest.mark.parametrize("url", ["http://", "http://[::", "http://host:port", "ftp://a:1"])
def test_url_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(ForwardingFailed):
        forward(url)


def test_https_needs_settings_of_its_own() -> None:
    with pytest.raises(ForwardingFailed, match=r"inter\.instance\.protocol"):
        forward("https://127.0.0.1:1")
