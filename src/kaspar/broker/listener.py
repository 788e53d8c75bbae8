"""A listening socket, its limits, and the connections it has taken.

It accepts by itself rather than through asyncio's server, because it must be able to stop accepting: at
`max.connections` newcomers wait in the kernel's queue as with Kafka, and when the process has no file handle left it
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
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.base.metrics import Counter as CounterMetric
from kaspar.broker.connection import SHARED_BUFFER_BYTES, Connection, RequestHandler

log = get_log(__name__)

ACCEPT_AT_ONCE: Final = 64
RETRY_ACCEPT_S: Final = 0.2
TURN_S: Final = 0.002
SWEEP_S: Final = 2.0
SWEEP_AT_ONCE: Final = 1000
"""How many connections are looked at before others have their turn."""
LAST_ANSWERS_S: Final = 1.0  # how long clients may take, when the broker stops, to read what it still has for them
RESERVED_HANDLES: Final = 32


class ConnectionLimits:
    """`max.connections` and `max.connections.per.ip`, counted over all listeners of a broker; changeable while
    running.
    """

    def __init__(self, *, max_connections: int, max_per_ip: int, per_ip_overrides: Mapping[str, int]) -> None:
        self.max_connections = max_connections
        self.max_per_ip = max_per_ip
        self.per_ip_overrides = per_ip_overrides
        self.total = 0
        self.by_ip: Counter[str] = Counter()

    @property
    def full(self) -> bool:
        return self.total >= self.max_connections

    def limit_of(self, ip: str) -> int:
        return self.per_ip_overrides.get(ip, self.max_per_ip)

    def take(self, ip: str) -> bool:
        if self.by_ip[ip] >= self.limit_of(ip):
            return False
        self.by_ip[ip] += 1
        self.total += 1
        return True

    def give_back(self, ip: str) -> None:
        self.total -= 1
        self.by_ip[ip] -= 1
        if self.by_ip[ip] == 0:
            del self.by_ip[ip]


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
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        backlog: int = 1024,
        slot_freed: Callable[[], None],
        failed: Callable[[Exception], None],
        stalled: Callable[[float], None],
        run_blocking: Callable[[Callable[[int], bytes], int], Awaitable[bytes]],
        malformed_requests: CounterMetric,
    ) -> None:
        self.name = name
        self.requests = requests
        self.max_request_bytes = max_request_bytes
        self.max_idle_ms = max_idle_ms
        self.shared_buffer = bytearray(SHARED_BUFFER_BYTES)
        self.shared_view = memoryview(self.shared_buffer)
        self.overloaded = False
        self.turn_s = TURN_S
        self.malformed_requests = malformed_requests
        self.connections: set[Connection] = set()
        self.accepted = 0
        self.disconnected = 0
        self.rejected = 0
        self.expired = 0
        self._limits = limits
        self._slot_freed = slot_freed
        self.stalled = stalled
        self.run_blocking = run_blocking
        self._failed = failed
        self._send_buffer_bytes = send_buffer_bytes
        self._adopting: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._all_closed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._accepting = False
        self._short_of_handles = False
        handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._first_reserved_handle = handles - min(RESERVED_HANDLES, handles // 8)
        self._sweeper: asyncio.Handle | None = None
        self._socket = self._bind(host, port, backlog, receive_buffer_bytes)

    @staticmethod
    def _bind(host: str, port: int, backlog: int, receive_buffer_bytes: int) -> socket.socket:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
        except OSError as problem:
            raise KasparError(f"the listener's host '{host}' is not known here: {problem.strerror}") from None
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
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._sweeper = self._loop.call_later(self._sweep_interval_s(), self._sweep)
        self.resume_accepting()

    async def stop_accepting(self) -> None:
        """No new connection and no new request from here on; what is under way is answered."""
        self._stopping = True
        self.overloaded = True
        self._pause_accepting()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._socket.close()
        if self._adopting:
            await asyncio.wait(self._adopting)

    async def close_connections(self) -> None:
        """Close them when they have sent what they have. A client that does not read it is not waited for."""
        for connection in tuple(self.connections):
            connection.close()
        if self.connections:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), LAST_ANSWERS_S)
        for connection in tuple(self.connections):
            connection.transport.abort()

    # -- accepting ---------------------------------------------------------------------------------------------------

    def resume_accepting(self) -> None:
        if not self._accepting and self._loop is not None and self._socket.fileno() >= 0:
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
            except OSError as problem:  # no handle or no memory is left, mostly; whatever it is, it may pass
                self._wait_for_handles(problem.strerror)
                return
            self._short_of_handles = False
            self._take(sock, address[0], address[1])

    def _wait_for_handles(self, reason: str | None) -> None:
        assert self._loop is not None
        if not self._short_of_handles:
            self._short_of_handles = True
            log.warning("cannot take a connection now, will try again", listener=self.name, reason=reason)
        self._pause_accepting()
        self._loop.call_later(RETRY_ACCEPT_S, self.resume_accepting)

    def _take(self, sock: socket.socket, ip: str, port: int) -> None:
        assert self._loop is not None
        if not self._limits.take(ip):
            self.rejected += 1
            log.info("refused a connection: max.connections.per.ip is reached", ip=ip, limit=self._limits.limit_of(ip))
            sock.close()
            return
        self.accepted += 1
        task = self._loop.create_task(self._adopt(sock, ip, port))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    async def _adopt(self, sock: socket.socket, ip: str, port: int) -> None:
        assert self._loop is not None
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._send_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
            await self._loop.connect_accepted_socket(lambda: Connection(self, f"{ip}:{port}", sock), sock)
        except OSError as problem:
            sock.close()
            self._freed(ip)
            log.debug("a connection was gone before it was taken", peer=f"{ip}:{port}", reason=problem.strerror)

    def opened(self, connection: Connection) -> None:
        self.connections.add(connection)

    def closed(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.disconnected += 1
        if self._stopping and not self.connections:
            self._all_closed.set()
        self._freed(connection.peer.rpartition(":")[0])

    def overload(self, overloaded: bool) -> None:
        """Take no more requests for now, or take them again: then `resume_requests` goes on with those held back."""
        self.overloaded = overloaded or self._stopping

    def resume_requests(self) -> None:
        for connection in tuple(self.connections):
            if self.overloaded:
                return  # by those that went on before it
            connection.try_resume()

    def call_soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def request_failed(self, connection: Connection, problem: Exception) -> None:
        """A request met a bug. Its connection is closed, and whoever runs the broker decides whether that was all."""
        log.exception("a request failed", peer=connection.peer, client=connection.client_id)
        connection.transport.abort()
        self._failed(problem)

    def _freed(self, ip: str) -> None:
        was_full = self._limits.full
        self._limits.give_back(ip)
        if was_full and not self._limits.full:
            self._slot_freed()

    # -- idle connections --------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        self._sweep_some(tuple(self.connections), 0)

    def _sweep_some(self, connections: Sequence[Connection], first: int) -> None:
        """Close connections that have been idle for `connections.max.idle.ms`, and take back the memory of quiet
        ones: a slice of those that there were when the round began.
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
                self.expired += 1
                log.debug("closed an idle connection", peer=connection.peer, idle_s=round(idle_s))
                connection.transport.abort()  # closing would wait for a client that has stopped reading
            elif idle_s > SWEEP_S:
                connection.release_idle_memory()
        if behind < len(connections):
            self._sweeper = self._loop.call_soon(self._sweep_some, connections, behind)
        else:
            self._sweeper = self._loop.call_later(self._sweep_interval_s(), self._sweep)

    def _sweep_interval_s(self) -> float:
        return min(SWEEP_S, self.max_idle_ms / 4000) if self.max_idle_ms > 0 else SWEEP_S


def _free_handle() -> int:
    """The lowest file handle that is free: when it is high, few are left."""
    handle = os.open(os.devnull, os.O_RDONLY)
    os.close(handle)
    return handle
