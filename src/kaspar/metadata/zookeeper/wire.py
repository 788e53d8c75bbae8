"""The handler that runs kazoo's thread and sockets for a session.

kazoo has one thread per client, which connects, sends, receives and pings. Differences from kazoo's own handler:

- Callbacks run in that thread, at once, and only pass on their arguments. So the event loop sees watch events and
  responses in the order in which the server sent them; with kazoo's two queues a response could overtake a watch event.
- When a session is over, there are no more connections: kazoo would open another session, unnoticed by callers.
- TLS uses our own contexts: kazoo would read keys from files, and by default would not check host names.
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
        """`on_refused` is called by kazoo's thread when all `servers` have refused a connection for a reason that only
        an operator can fix, so that retries do not help.
        """
        super().__init__()
        self.session_is_over = False
        self.connecting_since = time.monotonic()
        """The start of the last connection attempt."""
        self.granted_ms = 0
        """The session timeout that the ensemble grants; 0 before the first connection."""
        self.problem = "none of the host names can be resolved"
        """Why there is no connection, as far as known."""
        self._connect_timeout_s = connect_timeout_s
        self._security = security
        self._servers = servers
        self._on_refused = on_refused
        self._refused_by: set[tuple[str, int]] = set()

    def start(self) -> None:
        """Do nothing: there are no threads for callbacks."""

    def stop(self) -> None:
        """Do nothing: there are no threads for callbacks."""

    def dispatch_callback(self, callback: Callback) -> None:
        callback.func(*callback.args)

    def create_connection(
        self, address: tuple[str, int], hostname: str = "", timeout: float = _NO_TIME, **options: Any
    ) -> Connection:
        """Connect, with a shorter timeout than kazoo's, which would wait for a machine that is down as long as the
        session lives. `hostname` is the name in zookeeper.connect, `address` what it resolves to."""
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
        except InvalidSetting as problem:  # perhaps the key store is just being replaced
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
        """Like select(), but a TLS connection is readable if it has decrypted data, not if its socket has bytes: these
        may have been decrypted already, or be a message of the TLS protocol itself."""
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
