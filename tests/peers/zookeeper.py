"""ZooKeeper for tests: servers with short ticks, and a TCP proxy before one of them that a test controls.

server = zookeeper(folder)
with serving(server), Proxy(server) as proxy:
    ZooKeeperMetadata.open(proxy.address)
    proxy.cut()
"""

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kaspar.spark.running.java import JavaMissing, find_java
from kaspar.zookeeper import Member, ZooKeeperServer, write_config
from kaspar.zookeeper.config import write_id
from tests.peers.downloads import ToolMissingError
from tests.peers.kafka import LIGHT_JVM
from tests.peers.wire import free_port

HEAP = "96m"
SETTINGS = {
    "tickTime": "200",
    "minSessionTimeout": "400",
    "maxSessionTimeout": "60000",
    "forceSync": "no",  # kills lose nothing that is in the page cache
    "maxClientCnxns": "0",
}
_CHUNK_BYTES = 64 * 1024


def zookeeper(folder: Path, members: Sequence[Member] = (), own: Member | None = None) -> ZooKeeperServer:
    """A server that is not started yet, alone or as one member of an ensemble."""
    try:
        find_java()
    except JavaMissing as missing:
        raise ToolMissingError(str(missing)) from missing
    config = write_config(folder, client_port=free_port(), members=members, more=SETTINGS)
    if own is not None:
        write_id(config, own.id)
    return ZooKeeperServer(config, heap=HEAP, jvm_flags=LIGHT_JVM)


def ensemble(folder: Path, size: int = 3) -> list[ZooKeeperServer]:
    """The servers of an ensemble, not started yet."""
    members = [Member(number, peer_port=free_port(), election_port=free_port()) for number in range(1, size + 1)]
    return [zookeeper(folder / str(each.id), members, each) for each in members]


def address_of(*servers: ZooKeeperServer) -> str:
    return ",".join(f"{server.config.client_host}:{server.config.client_port}" for server in servers)


@contextlib.contextmanager
def serving(*servers: ZooKeeperServer) -> Iterator[None]:
    try:
        for server in servers:
            server.start()
        for server in servers:
            server.wait_serving()
        yield
    finally:
        for server in servers:
            server.kill()


class Proxy:
    """Passes bytes between clients and a server, unless it is told otherwise."""

    def __init__(self, server: ZooKeeperServer, *, port: int | None = None) -> None:
        """`port`: another than the one for clients in the clear."""
        target = port or server.config.client_port
        assert target is not None
        self._target = (server.config.client_host, target)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._from_client: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._accepts = True
        self._drops_responses = False
        self._drops_requests = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy")
        self.connections = 0
        self.requests_dropped = threading.Event()
        self.responses_dropped = threading.Event()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Close all connections."""
        with self._lock:
            for one in self._pairs:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def refuse(self, refuses: bool = True) -> None:
        """Close every new connection at once."""
        self._accepts = not refuses

    def drop(self, *, requests: bool = False, responses: bool = False) -> None:
        """Swallow what comes from then on, as a network does that loses packets; connections stay open."""
        self.requests_dropped.clear()
        self.responses_dropped.clear()
        self._drops_requests, self._drops_responses = requests, responses

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._ended.is_set():
                for key, _ in selector.select(0.02):
                    if key.fileobj is self._listener:
                        self._accept(selector)
                    else:
                        assert isinstance(key.fileobj, socket.socket)
                        self._pass(selector, key.fileobj)
            for one in list(self._pairs):
                one.close()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        client, _ = self._listener.accept()
        try:
            if not self._accepts:
                raise ConnectionRefusedError
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            client.close()
            return
        self.connections += 1
        with self._lock:
            self._pairs |= {client: server, server: client}
            self._from_client.add(client)
        for one in (client, server):
            selector.register(one, selectors.EVENT_READ)

    def _pass(self, selector: selectors.BaseSelector, source: socket.socket) -> None:
        if source not in self._pairs:
            return  # it was closed in this round
        target = self._pairs[source]
        try:
            chunk = source.recv(_CHUNK_BYTES)
            if chunk and self._is_swallowed(source):
                return
            if chunk:
                target.sendall(chunk)
                return
        except OSError:
            pass
        with self._lock:
            for one in (source, target):
                del self._pairs[one]
                self._from_client.discard(one)
                selector.unregister(one)
                one.close()

    def _is_swallowed(self, source: socket.socket) -> bool:
        if source in self._from_client:
            if self._drops_requests:
                self.requests_dropped.set()
            return self._drops_requests
        if self._drops_responses:
            self.responses_dropped.set()
        return self._drops_responses

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._listener.close()
