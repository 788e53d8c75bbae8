"""A connection for programs that wait: one socket, one timeout for each answer."""

import socket
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from kaspar.base.errors import invariant
from kaspar.client.core import MAX_FRAME_BYTES, Answer, ClientCore, UnsupportedByPeer
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.api_versions import ApiVersionsResponse
from kaspar.protocol.schema import Message
from kaspar.records.codec import Octets

_CONNECT_TIMEOUT_S = 10.0  # as socket.connection.setup.timeout.ms of Kafka's clients


class Connection:
    """Not for several threads at once. After any error it is of no further use: close it."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str = "kaspar",
        timeout_s: float = 30.0,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        records_in_place: bool = False,
        negotiate: bool = True,
    ) -> None:
        """Raises OSError if nobody is there. With negotiate=False the versions of requests are the caller's to give."""
        self.timeout_s = timeout_s
        self.core = ClientCore(client_id=client_id, max_frame_bytes=max_frame_bytes, records_in_place=records_in_place)
        self._socket = socket.create_connection((host, port), min(timeout_s, _CONNECT_TIMEOUT_S))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if negotiate:
            try:
                self._learn_versions()
            except BaseException:
                self.close()
                raise

    def request(self, message: Message, version: int | None = None) -> Message:
        """Send the request and wait for its answer; in the newest version that both sides know, if none is given."""
        invariant(not self.core.open_requests, "answers of requests sent before are still to be received")
        self.send(message, version)
        return self.receive().message

    def send(self, message: Message, version: int | None = None, *, answered: bool = True) -> None:
        """Send a request without waiting: receive() gives the answers in the order of the requests."""
        self._socket.settimeout(self.timeout_s)
        self._socket.sendall(self.core.send(message, version, answered=answered))

    def send_pieces(self, api_key: ApiKey, version: int, pieces: Sequence[Octets], *, answered: bool = True) -> None:
        """Send a request whose body is given in pieces, without copying them."""
        self._socket.settimeout(self.timeout_s)
        left = deque(memoryview(piece) for piece in self.core.send_pieces(api_key, version, pieces, answered=answered))
        while left:
            sent = self._socket.sendmsg(left)
            while left and sent >= len(left[0]):
                sent -= len(left.popleft())
            if sent:
                left[0] = left[0][sent:]

    def fileno(self) -> int:
        """For select(): when it can be read, receive() does not wait, or for the rest of an answer at most."""
        return self._socket.fileno()

    def receive(self) -> Answer:
        """The next answer. Raises TimeoutError if it does not come in time, ConnectionError if the peer hangs up."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError(f"no answer within {self.timeout_s} s")
            self._socket.settimeout(remaining)
            count = self._socket.recv_into(self.core.room())
            if not count:
                raise ConnectionResetError("the peer closed the connection")
            answer = self.core.received(count)
            if answer is not None:
                return answer

    def _learn_versions(self) -> None:
        for _ in range(2):
            self._socket.sendall(self.core.api_versions_request())
            message = self.receive().message
            assert isinstance(message, ApiVersionsResponse)
            if self.core.learn_versions(message):
                return
        raise UnsupportedByPeer("the peer refuses the version of ApiVersions that it named itself")

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
