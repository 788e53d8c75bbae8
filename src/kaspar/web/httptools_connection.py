"""Connections whose HTTP is parsed by httptools, which is written in C and takes half of h11's time for a small
request.

httptools has no limits of its own, so they are enforced here: on the head, the trailer of a chunked body, the bytes
between chunks, and the number of requests that a client sends before it has read a response.
"""

import asyncio
from typing import Any, Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from kaspar.web.connection import HEAD_TOO_LARGE, MALFORMED, Connection

MOST_PIPELINED: Final = 100
_OFFER: Final = (b"connection", b"upgrade", b"http2-settings")


class _Stop(Exception):
    """Raised in a callback to stop the parser."""


class _BoundedParser(HttpToolsProtocol):
    refusal = MALFORMED

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._most_head_bytes = config.h11_max_incomplete_event_size or 0
        self._is_in_head = False
        self._head_bytes = 0
        """The size of the request line and of complete headers, including those of a trailer."""
        self._quiet_bytes = 0
        """Bytes received since the parser last called back, for example for a single header or a chunk extension."""

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._quiet_bytes += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.send_400_response("")
            return
        if self._quiet_bytes > self._most_head_bytes:
            self.refusal = HEAD_TOO_LARGE
            self.send_400_response("")

    def _feed(self, data: bytes) -> None:
        """A request that offers to upgrade the protocol, as those of Java's HttpClient do, is treated like any other.
        The parser skips the body of such a request, so it is parsed again without the offer."""
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = self._head_without_offer() + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)

    def _head_without_offer(self) -> bytes:
        kept = [b"%b: %b\r\n" % header for header in self.headers if header[0] not in _OFFER]
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (self.parser.get_method(), self.url, b"".join(kept))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head, self._head_bytes, self._quiet_bytes = True, 0, 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + len(b": \r\n"))
        if self._is_in_head:  # otherwise it is in a trailer, which no application reads
            super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._quiet_bytes = 0
        self._head_bytes += size
        if self._head_bytes > self._most_head_bytes:
            self.refusal = HEAD_TOO_LARGE
            raise _Stop

    def on_headers_complete(self) -> None:
        self._is_in_head, self._quiet_bytes = False, 0
        if len(self.pipeline) >= MOST_PIPELINED or self.parser.get_method() == b"CONNECT":
            raise _Stop
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        self._quiet_bytes = 0
        super().on_body(body)


class HttpToolsConnection(Connection, _BoundedParser):  # type: ignore[misc]  # Connection is typed as if over h11
    pass
