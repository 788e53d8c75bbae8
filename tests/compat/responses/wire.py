"""One connection to a broker: whole frames out, whole frames in, and what happened when none came."""

import socket
import struct
from types import TracebackType
from typing import Self

RESPONSE_SECONDS = 15.0


class ClosedError(Exception):
    """The broker closed the connection."""


class SilentError(Exception):
    """The broker kept the connection open and did not respond in time."""


class Connection:
    def __init__(self, host: str, port: int, source: str | None = None) -> None:
        """`source`: the address that it comes from."""
        address = None if source is None else (source, 0)
        self._socket = socket.create_connection((host, port), timeout=RESPONSE_SECONDS, source_address=address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, payload: bytes) -> None:
        self.send_raw(struct.pack(">i", len(payload)) + payload)

    def send_raw(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ClosedError from error

    def receive(self, patience: float | None = None) -> bytes:
        """The next frame, without its length."""
        self._socket.settimeout(patience or RESPONSE_SECONDS)
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            try:
                chunk = self._socket.recv(count - len(received))
            except TimeoutError as error:
                raise SilentError from error
            except ConnectionResetError as error:
                raise ClosedError from error
            if not chunk:
                raise ClosedError
            received += chunk
        return bytes(received)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
