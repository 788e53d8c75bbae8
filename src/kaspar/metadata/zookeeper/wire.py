"""How kazoo runs its thread and its sockets for a session of ours.

kazoo has one thread per client, which connects, sends, receives and pings. Two things differ from kazoo's own handler:

- Callbacks run in that thread, at once, and only pass on what they got. So the event loop sees watch events and
  responses in the order in which the server sent them; kazoo's two queues would let a response overtake a watch event.
- When a session is over, nothing connects any more: kazoo would open another session, and callers would not notice.
"""

import contextlib
import socket
import struct
import time
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import Callback

_GRANTED: Final = struct.Struct("!i")
_GRANTED_AT: Final = 8  # after the frame's length and the protocol version
_HEAD_BYTES: Final = _GRANTED_AT + _GRANTED.size


class Wire(SequentialThreadingHandler):
    """The handler of one client. Used by kazoo's thread, and read from the event loop."""

    def __init__(self, connect_timeout_s: float) -> None:
        super().__init__()
        self.session_is_over = False
        self.connecting_since = time.monotonic()
        """When the last connection was begun."""
        self.granted_ms = 0
        """The session timeout that the ensemble grants; 0 before the first connection."""
        self.problem = "none of the host names can be resolved"
        """Why there is no connection, as far as it is known."""
        self._connect_timeout_s = connect_timeout_s

    def start(self) -> None:
        """There are no threads for callbacks to start."""

    def stop(self) -> None:
        """There are none to stop."""

    def dispatch_callback(self, callback: Callback) -> None:
        callback.func(*callback.args)

    def create_connection(self, *arguments: Any, timeout: float, **options: Any) -> socket.socket:
        """kazoo would wait for a machine that is down as long as a session lives."""
        if self.session_is_over:
            raise ConnectionRefusedError("the session is over")
        self.connecting_since = time.monotonic()
        try:
            plain = super().create_connection(*arguments, timeout=min(timeout, self._connect_timeout_s), **options)
        except OSError as problem:
            self.problem = problem.strerror or str(problem)
            raise
        self.problem = "it accepts connections and does not serve, as an ensemble without a majority of its members"
        return _Connection(self, plain)


class _Connection(socket.socket):
    """Reads the granted session timeout from the server's first message, which kazoo keeps to itself."""

    def __init__(self, wire: Wire, plain: socket.socket) -> None:
        super().__init__(fileno=plain.detach())
        self._wire = wire
        self._head = b""

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        received = super().recv(size, flags)
        if len(self._head) < _HEAD_BYTES:
            self._head += received
            with contextlib.suppress(struct.error):  # more of it is to come
                (granted_ms,) = _GRANTED.unpack_from(self._head, _GRANTED_AT)
                if granted_ms > 0:  # otherwise the session has expired
                    self._wire.granted_ms = granted_ms
        return received
