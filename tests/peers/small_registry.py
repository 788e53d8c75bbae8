"""A registry over HTTP in this process, for tests of its clients: what a client can meet, it does on request.

with SmallRegistry() as registry:
    registry.url, registry.requests
"""

import json
import ssl
import threading
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from kaspar.serialization.errors import RegistryError
from kaspar.serialization.mock_registry import MockRegistry


class Received(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Scripted(NamedTuple):
    """A response instead of the registry's own."""

    status: int
    body: bytes = b""


class SmallRegistry:
    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.registry = MockRegistry()
        self.requests: list[Received] = []
        self.scripted: deque[Scripted] = deque()
        """The next responses."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._respond))
        self._server.daemon_threads = True
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def _respond(self, received: Received) -> Scripted:
        self.requests.append(received)
        if self.scripted:
            return self.scripted.popleft()
        parts = urlsplit(received.path)
        body = json.loads(received.body) if received.body else None
        try:
            found: Any = self.registry.request(received.method, parts.path, dict(parse_qsl(parts.query)), body)
        except RegistryError as error:
            refused = {"error_code": error.error_code, "message": str(error)}
            return Scripted(error.status, json.dumps(refused).encode())
        return Scripted(200, json.dumps(found).encode())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(respond: Callable[[Received], Scripted]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            response = respond(Received(self.command, self.path, headers, body))
            self.send_response(response.status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *arguments: Any) -> None:
            pass

    return Handler
