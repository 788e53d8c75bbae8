"""How kazoo runs its thread and its sockets for a session of ours.

kazoo has one thread per client, which connects, sends, receives and pings. What differs from kazoo's own handler:

- Callbacks run in that thread, at once, and only pass on what they got. So the event loop sees watch events and
  responses in the order in which the server sent them; kazoo's two queues would let a response overtake a watch event.
- When a session is over, nothing connects any more: kazoo would open another session, and callers would not notice.
- TLS is that of our own contexts: kazoo would read keys from files, and by default check no host name.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import Callback

from kaspar.base.errors import InvalidSetting
from kaspar.metadata.zookeeper.connections import (
    NOT_SERVING,
    Connection,
    Greeting,
    PlainConnection,
    TlsConnection,
)
from kaspar.security.zookeeper import ZooKeeperSecurity, is_definite, tls_problem

_NO_TIME: Final = 0.0


class Wire(SequentialThreadingHandler):
    """The handler of one client. Used by kazoo's thread, and read from the event loop."""

    def __init__(
        self,
        connect_timeout_s: float,
        security: ZooKeeperSecurity,
        *,
        servers: int = 1,
        on_refused: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """`on_refused` is called by kazoo's thread when all `servers` have refused a connection and to try again would
        not help: an operator has to.
        """
        super().__init__()
        self.session_is_over = False
        self.connecting_since = time.monotonic()
        """When the last connection was begun."""
        self.granted_ms = 0
        """The session timeout that the ensemble grants; 0 before the first connection."""
        self.problem = "none of the host names can be resolved"
        """Why there is no connection, as far as it is known."""
        self._connect_timeout_s = connect_timeout_s
        self._security = security
        self._servers = servers
        self._on_refused = on_refused
        self._refused_by: set[tuple[str, int]] = set()

    def start(self) -> None:
        """There are no threads for callbacks to start."""

    def stop(self) -> None:
        """There are none to stop."""

    def dispatch_callback(self, callback: Callback) -> None:
        callback.func(*callback.args)

    def create_connection(
        self, address: tuple[str, int], hostname: str = "", timeout: float = _NO_TIME, **options: Any
    ) -> Connection:
        """kazoo would wait for a machine that is down as long as a session lives. `hostname` is as zookeeper.connect
        has it, `address` what it resolves to."""
        if self.session_is_over:
            raise ConnectionRefusedError("the session is over")
        self.connecting_since = time.monotonic()
        limit_s = min(timeout or self._connect_timeout_s, self._connect_timeout_s)
        try:
            plain = super().create_connection(address, timeout=limit_s)
        except OSError as problem:
            self.problem = problem.strerror or str(problem)
            raise
        new_context = self._security.new_context
        greeting = Greeting(self, (hostname, address[1]), self._security.login, is_encrypted=new_context is not None)
        if new_context is None:
            self.problem = NOT_SERVING
            return PlainConnection(greeting, plain)
        plain.settimeout(limit_s)
        try:
            connection = TlsConnection.over(plain, new_context(), hostname.strip("[]"), greeting)
        except InvalidSetting as problem:  # a store that is just being replaced, perhaps
            plain.close()
            self.problem = str(problem)
            raise ConnectionRefusedError(str(problem)) from None
        except OSError as problem:
            self.failed(greeting.server, tls_problem(problem), is_definite=is_definite(problem))
            raise
        self.problem = NOT_SERVING
        return connection

    def select(
        self, rlist: Sequence[Any], wlist: Sequence[Any], xlist: Sequence[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Readable is a connection with bytes to read, not one whose socket has some: they may be decrypted already,
        or be none of the peer's data."""
        encrypted = [each for each in rlist if isinstance(each, TlsConnection)]
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            ready = [each for each in encrypted if each.is_ready]
            left_s = 0.0 if ready else None if until is None else max(0.0, until - time.monotonic())
            readable, writable, failed = super().select(rlist, wlist, xlist, left_s)
            readable = [each for each in readable if each not in encrypted or each.fill()]
            readable += [each for each in ready if each not in readable]
            if readable or writable or failed or (until is not None and time.monotonic() >= until):
                return readable, writable, failed

    # -- what connections report -------------------------------------------------------------------------------------

    def granted(self, server: tuple[str, int], timeout_ms: int) -> None:
        self.granted_ms = timeout_ms
        self._refused_by.discard(server)

    def failed(self, server: tuple[str, int], problem: str, *, is_definite: bool) -> None:
        self.problem = problem
        if is_definite:
            self._refused_by.add(server)
            if len(self._refused_by) >= self._servers:
                self._on_refused(problem)
