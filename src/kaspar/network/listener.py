"""A listening socket, its limits, and its connections.

It accepts connections itself rather than through asyncio's server, because it must be able to stop accepting: at
`max.connections` new ones wait in the kernel's queue, as in Kafka, and when the process has no file handle left it
waits instead of spinning.
"""

import asyncio
import contextlib
import os
import resource
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.base.metrics import Counter as CounterMetric
from kaspar.config.kinds import MAX_INT
from kaspar.network.authentication_metrics import NO_AUTHENTICATION, AuthenticationMetrics
from kaspar.network.connection import SHARED_BUFFER_BYTES, Connection, RequestHandler
from kaspar.network.gates import Principal, Rejected
from kaspar.network.unidentified_connections import UnidentifiedConnections
from kaspar.quotas.connections import ConnectionRates, plain_address

if TYPE_CHECKING:
    import ssl

log = get_log(__name__)

ACCEPT_AT_ONCE: Final = 64
RETRY_ACCEPT_S: Final = 0.2
TURN_S: Final = 0.002
SWEEP_S: Final = 2.0
SWEEP_AT_ONCE: Final = 1000
"""The number of connections that are checked in one turn of the loop."""
LAST_RESPONSES_S: Final = 1.0  # for clients to read their last responses when the broker stops
RESERVED_HANDLES: Final = 32
TLS_HANDSHAKE_WITHIN_S: Final = 30.0
TLS_SHUTDOWN_WITHIN_S: Final = 2.0
ALERT_WITHIN_S: Final = 1.0
MAX_REFUSED: Final = 1000
"""The number of connections of addresses over their rate that are kept open for a while."""


class ListenerSecurity(Protocol):
    """What clients of a listener must do before their requests are handled."""

    @property
    def metrics(self) -> AuthenticationMetrics: ...

    def tls_context(self) -> "ssl.SSLContext | None":
        """The context for the next connection; None if it is not encrypted."""
        ...

    def opened(self, connection: Connection) -> None:
        """Set the connection's principal, or its authenticator. Its TLS handshake, if any, is done. Raises Rejected."""
        ...

    def closed(self, connection: Connection) -> None:
        """Called when a connection that was opened is closed."""
        ...

    def handshake_failed(self, peer: str, listener: str, problem: OSError) -> bytes:
        """The TLS alert to send to the client."""
        ...


class ConnectionLimits:
    """`max.connections` and `max.connections.per.ip`, counted over all listeners of a broker; both are dynamic."""

    def __init__(self, *, max_connections: int, max_per_ip: int, per_ip_overrides: Mapping[str, int]) -> None:
        self.max_connections = max_connections
        self.max_per_ip = max_per_ip
        self.override_per_ip(per_ip_overrides)
        self.total = 0
        self.by_ip: Counter[str] = Counter()

    @property
    def full(self) -> bool:
        return self.total >= self.max_connections

    def override_per_ip(self, limits: Mapping[str, int]) -> None:
        self._overrides = {plain_address(ip): limit for ip, limit in limits.items()}

    def limit_of(self, ip: str) -> int:
        return self._overrides.get(plain_address(ip), self.max_per_ip)

    def acquire(self, ip: str) -> bool:
        """Count one more connection of the address. False if it has reached its limit."""
        ip = plain_address(ip)
        if self.by_ip[ip] >= self.limit_of(ip):
            return False
        self.by_ip[ip] += 1
        self.total += 1
        return True

    def release(self, ip: str) -> None:
        ip = plain_address(ip)
        self.total -= 1
        self.by_ip[ip] -= 1
        if self.by_ip[ip] == 0:
            del self.by_ip[ip]


class SocketOptions(NamedTuple):
    """-1 leaves the size of a buffer to the operating system."""

    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    backlog: int = 1024


class Callbacks(NamedTuple):
    """The broker's functions that a listener calls."""

    slot_freed: Callable[[], None]
    failed: Callable[[Exception], None]
    stalled: Callable[[float], None]
    run_blocking: Callable[[Callable[[int], bytes], int], Awaitable[bytes]]


class Listener:
    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        *,
        requests: RequestHandler,
        limits: ConnectionLimits,
        max_request_bytes: int,
        max_idle_ms: int,
        socket_options: SocketOptions,
        callbacks: Callbacks,
        malformed_requests: CounterMetric,
        rates: ConnectionRates,
        unidentified: UnidentifiedConnections,
        between_brokers: bool = False,
        security: ListenerSecurity | None = None,
    ) -> None:
        """Without `security` clients are anonymous and nothing is encrypted."""
        self.name = name
        self.security = security
        self.requests = requests
        self.max_request_bytes = max_request_bytes
        self.max_idle_ms = max_idle_ms
        self.shared_buffer = bytearray(SHARED_BUFFER_BYTES)
        self.shared_view = memoryview(self.shared_buffer)
        self.overloaded = False
        self.turn_s = TURN_S
        self.malformed_requests = malformed_requests
        self.connections: set[Connection] = set()
        self._handshakes: dict[Connection, _Handshake] = {}
        self.accepted = 0
        self.disconnected = 0
        self.rejected = 0
        self.idle_closed = 0
        self.unidentified_closed = 0
        self._limits = limits
        self._rates = rates
        self._unidentified = unidentified
        self._between_brokers = between_brokers
        self._paused_until = 0.0
        self._refused: set[socket.socket] = set()
        self._slot_freed = callbacks.slot_freed
        self.stalled = callbacks.stalled
        self.run_blocking = callbacks.run_blocking
        self._failed = callbacks.failed
        self._send_buffer_bytes = socket_options.send_buffer_bytes
        self._adopting: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._all_closed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._accepting = False
        self._short_of_handles = False
        handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._first_reserved_handle = handles - min(RESERVED_HANDLES, handles // 8)
        self._sweeper: asyncio.Handle | None = None
        self._socket = self._bind(host, port, socket_options.backlog, socket_options.receive_buffer_bytes)

    @staticmethod
    def _bind(host: str, port: int, backlog: int, receive_buffer_bytes: int) -> socket.socket:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
        except OSError as problem:
            raise KasparError(f"the listener's host '{host}' cannot be resolved: {problem.strerror}") from None
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6 and not host:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            if receive_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            sock.setblocking(False)
            sock.bind(address)
            sock.listen(backlog)
        except OSError as problem:
            sock.close()
            raise KasparError(f"cannot listen on {host or '*'}:{port}: {problem.strerror}") from None
        return sock

    @property
    def authentication(self) -> AuthenticationMetrics:
        return NO_AUTHENTICATION if self.security is None else self.security.metrics

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._sweeper = self._loop.call_later(self._sweep_interval_s(), self._sweep)
        self.resume_accepting()

    async def stop_accepting(self) -> None:
        """Accept no more connections and requests. Requests under way get their responses."""
        self._stopping = True
        self.overloaded = True
        self._pause_accepting()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._socket.close()
        for refused in tuple(self._refused):
            self._close_refused(refused)
        if self._adopting:
            _, handshakes = await asyncio.wait(self._adopting, timeout=LAST_RESPONSES_S)
            for task in handshakes:
                task.cancel()
            if handshakes:
                await asyncio.wait(handshakes)

    async def close_connections(self) -> None:
        """Close all connections after they have sent what is queued. Clients that do not read it in time lose it."""
        for connection in tuple(self.connections):
            connection.close()
        if self.connections:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), LAST_RESPONSES_S)
        for connection in tuple(self.connections):
            connection.transport.abort()

    # -- accepting ---------------------------------------------------------------------------------------------------

    def resume_accepting(self) -> None:
        if not self._accepting and self._loop is not None and self._socket.fileno() >= 0:
            if self._loop.time() < self._paused_until:
                return  # it is resumed at that time
            self._accepting = True
            self._loop.add_reader(self._socket.fileno(), self._accept)

    def _pause_accepting(self) -> None:
        if self._accepting and self._loop is not None:
            self._accepting = False
            self._loop.remove_reader(self._socket.fileno())

    def _accept(self) -> None:
        assert self._loop is not None
        for _ in range(ACCEPT_AT_ONCE):
            if self._limits.full:
                self._pause_accepting()
                return
            try:
                if _free_handle() >= self._first_reserved_handle:
                    self._wait_for_handles("few file handles are left")
                    return
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:  # usually no handle or no memory is left, which may pass
                self._wait_for_handles(problem.strerror)
                return
            self._short_of_handles = False
            self._take(sock, address[0], address[1])
            if pause_ms := self._rates.pause_ms(self.name, self._now_ms(), between_brokers=self._between_brokers):
                self._pause_accepting()
                self._paused_until = self._loop.time() + pause_ms / 1000
                self._loop.call_at(self._paused_until, self.resume_accepting)
                return

    def _now_ms(self) -> int:
        assert self._loop is not None
        return int(self._loop.time() * 1000)

    def _wait_for_handles(self, reason: str | None) -> None:
        assert self._loop is not None
        if not self._short_of_handles:
            self._short_of_handles = True
            log.warning("cannot accept connections now; retrying", listener=self.name, reason=reason)
        self._pause_accepting()
        self._loop.call_later(RETRY_ACCEPT_S, self.resume_accepting)

    def _take(self, sock: socket.socket, ip: str, port: int) -> None:
        assert self._loop is not None
        if not self._limits.acquire(ip):
            self.rejected += 1
            log.info("rejected a connection: max.connections.per.ip is reached", ip=ip, limit=self._limits.limit_of(ip))
            sock.close()
            return
        if refused_for_ms := self._rates.refused_for_ms(ip, self._now_ms()):
            self.rejected += 1
            self._limits.release(ip)
            self._refuse_later(sock, refused_for_ms)
            return
        self.accepted += 1
        task = self._loop.create_task(self._adopt(sock, ip, port))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    def _refuse_later(self, sock: socket.socket, after_ms: int) -> None:
        """Close a connection of an address over its rate after a while, so that it does not reconnect at once."""
        assert self._loop is not None
        if len(self._refused) >= MAX_REFUSED:
            sock.close()
            return
        self._refused.add(sock)
        self._loop.call_later(after_ms / 1000, self._close_refused, sock)

    def _close_refused(self, sock: socket.socket) -> None:
        self._refused.discard(sock)
        sock.close()

    async def _adopt(self, sock: socket.socket, ip: str, port: int) -> None:
        assert self._loop is not None
        peer = f"{ip}:{port}"
        context = None if self.security is None else self.security.tls_context()
        own = connection = None
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._send_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
            if context is None:
                await self._loop.connect_accepted_socket(lambda: Connection(self, peer, sock), sock)
            else:
                own = sock.dup()  # the transport closes its own at once when the handshake fails
                connection = Connection(self, peer, sock, is_encrypted=True)
                self._handshakes[connection] = _Handshake(peer, own)
                self._count_unidentified(self._handshakes[connection])
                await self._loop.connect_accepted_socket(
                    lambda: connection,
                    sock,
                    ssl=context,
                    ssl_handshake_timeout=TLS_HANDSHAKE_WITHIN_S,
                    ssl_shutdown_timeout=TLS_SHUTDOWN_WITHIN_S,
                )
        except asyncio.CancelledError:  # the broker stops
            sock.close()
            raise
        except OSError as problem:
            sock.close()
            if own is not None and self.security is not None:
                await self._send_alert(own, self.security.handshake_failed(peer, self.name, problem))
            else:
                log.debug("a connection was closed before it was accepted", peer=peer, reason=problem.strerror)
            self._freed(ip)
        finally:
            if connection is not None:
                self._end_handshake(connection)
            if own is not None:
                own.close()

    async def _send_alert(self, sock: socket.socket, alert: bytes) -> None:
        """Tell the client why its handshake has failed. What it still sends is read, because otherwise the operating
        system would discard the alert.
        """
        assert self._loop is not None
        if not alert:
            return
        with contextlib.suppress(OSError):
            sock.setblocking(False)
            sock.send(alert)
            sock.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(ALERT_WITHIN_S):
                while await self._loop.sock_recv(sock, 64 * 1024):
                    pass

    def opened(self, connection: Connection) -> None:
        self.connections.add(connection)
        self._end_handshake(connection)  # it is counted only once
        self._count_unidentified(connection)
        if self.security is not None:
            try:
                self.security.opened(connection)
            except Rejected as rejection:
                connection.refuse(str(rejection))

    def closed(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._unidentified.closed(connection)
        if self.security is not None:
            self.security.closed(connection)
        self.disconnected += 1
        if self._stopping and not self.connections:
            self._all_closed.set()
        self._freed(connection.peer.rpartition(":")[0])

    def overload(self, overloaded: bool) -> None:
        """Take no more requests for now, or take them again, which `resume_requests` does for those held back."""
        self.overloaded = overloaded or self._stopping

    def resume_requests(self) -> None:
        for connection in tuple(self.connections):
            if self.overloaded:
                return  # because of requests of connections that were resumed before
            connection.try_resume()

    def call_soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def request_failed(self, connection: Connection, problem: Exception) -> None:
        """Close the connection after a bug in the handling of a request. The broker decides whether to go on."""
        log.exception("a request failed", peer=connection.peer, client=connection.client_in_log)
        connection.transport.abort()
        self._failed(problem)

    def _freed(self, ip: str) -> None:
        was_full = self._limits.full
        self._limits.release(ip)
        if was_full and not self._limits.full:
            self._slot_freed()

    def _end_handshake(self, connection: Connection) -> None:
        if (handshake := self._handshakes.pop(connection, None)) is not None:
            self._unidentified.closed(handshake)

    def _count_unidentified(self, connection: "Connection | _Handshake") -> None:
        if (oldest := self._unidentified.opened(connection)) is not None:
            self._close_unidentified(cast(Connection, oldest), "too many connections have not sent a request")

    def _close_unidentified(self, connection: "Connection | _Handshake", reason: str) -> None:
        self.unidentified_closed += 1
        log.info("closed an unidentified connection", reason=reason, peer=connection.peer)
        connection.transport.abort()

    # -- idle connections --------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        for connection in self._unidentified.overdue():
            self._close_unidentified(
                cast(Connection, connection), "it took too long to authenticate or to send a request"
            )
        self._sweep_some(tuple(self.connections), 0)

    def _sweep_some(self, connections: Sequence[Connection], first: int) -> None:
        """Close connections that have been idle for `connections.max.idle.ms`, and free the memory of quiet ones.
        Handles a slice of the connections that existed when the round began.
        """
        assert self._loop is not None
        now = time.perf_counter()
        behind = first + SWEEP_AT_ONCE
        for connection in connections[first:behind]:
            if connection not in self.connections:
                continue
            idle_s = now - connection.last_active
            if connection.requests_under_way and not connection.is_closing:
                continue
            if 0 <= self.max_idle_ms <= idle_s * 1000:
                self.idle_closed += 1
                log.debug("closed an idle connection", peer=connection.peer, idle_s=round(idle_s))
                connection.transport.abort()  # close() would wait for a client that has stopped reading
            elif idle_s > SWEEP_S:
                connection.release_idle_memory()
        if behind < len(connections):
            self._sweeper = self._loop.call_soon(self._sweep_some, connections, behind)
        else:
            self._sweeper = self._loop.call_later(self._sweep_interval_s(), self._sweep)

    def _sweep_interval_s(self) -> float:
        shortest_ms = min(self._unidentified.timeout_ms, self.max_idle_ms if self.max_idle_ms > 0 else MAX_INT)
        return min(SWEEP_S, shortest_ms / 4000)


class _Handshake:
    """A connection during its TLS handshake: it has no transport, and counts as unidentified."""

    principal: Principal | None = None

    def __init__(self, peer: str, sock: socket.socket) -> None:
        self.peer = peer
        self._socket = sock

    @property
    def transport(self) -> "_Handshake":
        return self

    def abort(self) -> None:
        with contextlib.suppress(OSError):  # the client may be gone
            self._socket.shutdown(socket.SHUT_RDWR)


def _free_handle() -> int:
    """The lowest free file handle. If it is high, few are left."""
    handle = os.open(os.devnull, os.O_RDONLY)
    os.close(handle)
    return handle
