"""The blocking shell of a connection: one socket, and one timeout for each response.

If the broker limits the lifetime of a session (KIP-368), the client logs in again in time, before it sends a request
while no other is in flight.
"""

import socket
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from kaspar.base.errors import invariant
from kaspar.base.primitives import Octets
from kaspar.client.core import (
    API_VERSIONS_REQUEST,
    CONNECT_TIMEOUT_S,
    MAX_FRAME_BYTES,
    REQUEST_TIMEOUT_S,
    ClientCore,
    Response,
)
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.schema import Message

if TYPE_CHECKING:  # PLAINTEXT connections do not need these modules
    import ssl

    from kaspar.security.client import ClientSecurity


class Connection:
    """A connection, not thread-safe. It must be closed after any error, because later responses could be attributed to
    the wrong requests.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str = "kaspar",
        timeout_s: float = REQUEST_TIMEOUT_S,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        records_in_place: bool = False,
        negotiate: bool = True,
        security: "ClientSecurity | None" = None,
    ) -> None:
        """Raises OSError if nothing listens there, HandshakeFailed or Refused if the peer refuses the client. With
        `negotiate=False` the caller chooses all versions. Without `security` the connection is PLAINTEXT.
        """
        self.timeout_s = timeout_s
        self._security = security
        self._host = host
        self._log_in_again_at: float | None = None
        self.core = ClientCore(client_id=client_id, max_frame_bytes=max_frame_bytes, records_in_place=records_in_place)
        self._socket = socket.create_connection((host, port), min(timeout_s, CONNECT_TIMEOUT_S))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if security is not None:
                self._socket = security.wrap(self._socket, host)
            if negotiate:
                while not self.core.learn_versions(self._exchange(API_VERSIONS_REQUEST)):
                    pass
            if security is not None:
                self._log_in(security)
        except OSError as problem:
            self.close()
            if security is not None:
                raise security.explain(problem, f"{host}:{port}") from None
            if isinstance(problem, ConnectionResetError):  # a broker that expects TLS does this
                raise ConnectionResetError(
                    "the peer closed the connection at once: it may require TLS or a log-in (security.protocol)"
                ) from None
            raise
        except BaseException:
            self.close()
            raise

    def _log_in(self, security: "ClientSecurity") -> None:
        from kaspar.client.authentication import log_in, log_in_again_after_s

        steps = log_in(self.core, security, self._host)
        try:
            request = next(steps)
            while True:
                request = steps.send(self._exchange(*request))
        except StopIteration as done:
            lifetime_ms: int = done.value
        if lifetime_ms:
            self._log_in_again_at = time.monotonic() + log_in_again_after_s(lifetime_ms)

    def _maybe_log_in_again(self) -> None:
        at = self._log_in_again_at
        if at is not None and time.monotonic() >= at and not self.core.open_requests and self._security is not None:
            self._log_in_again_at = None
            self._log_in(self._security)

    def _exchange(self, message: Message, version: int | None = None) -> Message:
        self._socket.settimeout(self.timeout_s)
        self._socket.sendall(self.core.send(message, version))
        return self.receive().message

    def request(self, message: Message, version: int | None = None) -> Message:
        """Send a request and wait for its response; by default in the newest version that both sides know."""
        invariant(not self.core.open_requests, "responses to earlier requests have not been received yet")
        self.send(message, version)
        return self.receive().message

    def send(self, message: Message, version: int | None = None, *, has_response: bool = True) -> None:
        """Send a request without waiting: receive() returns the responses in the order of the requests."""
        self._maybe_log_in_again()
        self._socket.settimeout(self.timeout_s)
        self._socket.sendall(self.core.send(message, version, has_response=has_response))

    def send_pieces(
        self, api_key: ApiKey, version: int, pieces: Sequence[Octets], *, has_response: bool = True
    ) -> None:
        """Send a request whose body is already encoded, in pieces. Only TLS copies them."""
        self._maybe_log_in_again()
        self._socket.settimeout(self.timeout_s)
        if self._is_encrypted:
            self._socket.sendall(b"".join(self.core.send_pieces(api_key, version, pieces, has_response=has_response)))
            return
        left = deque(
            memoryview(piece) for piece in self.core.send_pieces(api_key, version, pieces, has_response=has_response)
        )
        while left:
            sent = self._socket.sendmsg(left)
            while left and sent >= len(left[0]):
                sent -= len(left.popleft())
            if sent:
                left[0] = left[0][sent:]

    def fileno(self) -> int:
        """The socket, for select(). If it is readable, or `has_buffered`, receive() waits only for the rest of a
        response.
        """
        return self._socket.fileno()

    @property
    def has_buffered(self) -> bool:
        """Whether there are bytes that were read from the socket and decrypted, but not received yet."""
        return self._is_encrypted and cast("ssl.SSLSocket", self._socket).pending() > 0

    @property
    def _is_encrypted(self) -> bool:
        return self._security is not None and self._security.tls is not None

    def receive(self) -> Response:
        """The next response. Raises TimeoutError if it is late, ConnectionError if the peer closes the connection."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError(f"no response within {self.timeout_s:g} s")
            self._socket.settimeout(remaining)
            count = self._socket.recv_into(self.core.get_buffer())
            if not count:
                raise ConnectionResetError("the peer closed the connection")
            response = self.core.buffer_updated(count)
            if response is not None:
                return response

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
