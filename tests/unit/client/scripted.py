"""A broker whose responses are scripted by a test: real sockets, no storage."""

import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias

from kaspar.protocol.api import SERVED_VERSIONS, ApiKey, read_request
from kaspar.protocol.codec import write_into
from kaspar.protocol.headers import RequestHeader, read_request_header, set_frame_size, start_response
from kaspar.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.schema import Message

HANG_UP = b""
"""As a response: close the connection instead."""


class Last(NamedTuple):
    """As a response: send these bytes and close the connection."""

    data: bytes


Reply: TypeAlias = Message | bytes | Last | None
Handler: TypeAlias = Callable[[RequestHeader, Message], Reply]


def api_versions() -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in SERVED_VERSIONS.items()
        )
    )


def responding_with(response: Reply) -> "ScriptedBroker":
    """A broker that serves ApiVersions, and responds to everything else with this."""
    return ScriptedBroker(
        lambda header, request: api_versions() if isinstance(request, ApiVersionsRequest) else response
    )


def response_frame(header: RequestHeader, response: Message, version: int | None = None) -> bytes:
    version = header.api_version if version is None else version
    out = start_response(header.api_key, version, header.correlation_id)
    write_into(out, response, version)
    set_frame_size(out)
    return bytes(out)


class ScriptedBroker:
    """Gives each request to the handler and sends what it returns: a message, raw bytes, or nothing (None)."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.requests: list[Message] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while len(prefix := _read_exactly(connection, 4)) == 4:
                data = _read_exactly(connection, struct.unpack(">i", prefix)[0])
                header = read_request_header(data)
                if (
                    header.api_key == ApiKey.API_VERSIONS
                    and header.api_version > SERVED_VERSIONS[ApiKey.API_VERSIONS].last
                ):
                    return
                request = read_request(header, data)
                self.requests.append(request)
                response = self.handler(header, request)
                if response == HANG_UP:
                    return
                if response is None:
                    continue
                try:
                    if isinstance(response, Last):
                        connection.sendall(response.data)
                        return
                    connection.sendall(response if isinstance(response, bytes) else response_frame(header, response))
                except OSError:
                    return  # a client may close without waiting for what it asked for ahead

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in self._threads:
            thread.join(5)


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        try:
            piece = connection.recv(size - len(data))
        except OSError:
            return b""
        if not piece:
            return b""
        data += piece
    return data
