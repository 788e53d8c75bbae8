"""The network between processes: connections that deliver late, hang while a link is cut, and break.

As with TCP, the bytes of a connection arrive in order or not at all, and different connections overtake each other. A
link is cut in one direction or in both, or single connections stall. What is sent meanwhile waits, also the news that
the other side has closed: so connections may be half open. A process that ends resets its connections; a machine that
loses power sends nothing, and whoever writes to it hears of it once it is up again.
"""

import asyncio
import itertools
import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, cast

from kaspar.network.connection import Connection
from kaspar.network.listener import Listener
from tests.sim.determinism import OrderedSet
from tests.sim.virtual_loop import WORLD, Process, VirtualLoop, this_process

Address = tuple[str, int]
Link = tuple[str, str]


class Network:
    def __init__(self, loop: VirtualLoop, rng: random.Random) -> None:
        self.loop = loop
        self.rng = rng
        self.slowness = 1.0
        self.listeners: dict[Address, VirtualSocket] = {}
        self.dark_hosts: set[str] = set()
        """Machines without power."""
        self._cuts: Counter[Link] = Counter()
        self._waiting: dict[Link, deque[Callable[[], None]]] = {}
        self._ends: dict[Process, list[VirtualTransport]] = {}
        loop.network = self

    # -- links -------------------------------------------------------------------------------------------------------

    def latency(self) -> float:
        kind = self.rng.random()
        scale = 0.0005 if kind < 0.9 else 0.02 if kind < 0.995 else 0.4
        return self.rng.random() * scale * self.slowness

    def cut(self, source: str, target: str) -> None:
        self._cuts[source, target] += 1

    def mend(self, source: str, target: str) -> None:
        self._cuts[source, target] -= 1
        if self.is_open(source, target):
            for callback in self._waiting.pop((source, target), ()):
                self.loop.call_soon(callback, context=WORLD)

    def mend_all(self) -> None:
        for source, target in list(self._cuts):
            self._cuts[source, target] = 1
            self.mend(source, target)

    def is_open(self, source: str, target: str) -> bool:
        return self._cuts[source, target] <= 0

    def when_open(self, source: str, target: str, callback: Callable[[], None]) -> None:
        """In order, as soon as the link is open: at once, mostly."""
        if self.is_open(source, target):
            callback()
        else:
            self._waiting.setdefault((source, target), deque()).append(callback)

    # -- processes and machines --------------------------------------------------------------------------------------

    def end_process(self, process: Process, *, silently: bool = False) -> None:
        """`silently`: its machine loses power."""
        for address, listener in list(self.listeners.items()):
            if listener.process is process:
                del self.listeners[address]
        for end in self._ends.pop(process, []):
            end.drop(silently=silently)

    def reset_some(self, rng: random.Random) -> int:
        """Break some of the connections."""
        broken = [end for ends in self._ends.values() for end in ends if rng.random() < 0.3]
        for end in broken:
            end.abort()
        return len(broken)

    def reset_all_of(self, process: Process) -> None:
        for end in list(self._ends.get(process, ())):
            end.abort()

    def stall(self, source: str, target: str, rng: random.Random, share: float) -> Callable[[], None]:
        """Hold back what comes on some of the connections that there are, in one direction. Returns what ends it."""
        ends = [
            end
            for ends in self._ends.values()
            for end in ends
            if (end.peer.process.host, end.process.host) == (source, target) and rng.random() < share
        ]
        for end in ends:
            end.hold()

        def release() -> None:
            for end in ends:
                end.release()

        return release

    def add_end(self, end: "VirtualTransport") -> None:
        self._ends.setdefault(end.process, []).append(end)

    def remove_end(self, end: "VirtualTransport") -> None:
        ends = self._ends.get(end.process)
        if ends is not None and end in ends:
            ends.remove(end)

    # -- connecting --------------------------------------------------------------------------------------------------

    async def connect(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], address: Address
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Hangs while a link is cut or the machine is dark; the caller has its own time limit."""
        process = this_process()
        host = address[0]
        await asyncio.sleep(self.latency())
        for _ in itertools.count():
            if host not in self.dark_hosts and self.is_open(process.host, host) and self.is_open(host, process.host):
                break
            await asyncio.sleep(0.1)  # as the kernel tries again
        listener = self.listeners.get(address)
        if listener is None:
            raise ConnectionRefusedError(f"nobody listens on {host}:{address[1]}")
        mine, theirs = VirtualTransport(self, process), VirtualTransport(self, listener.process)
        mine.peer, theirs.peer = theirs, mine
        protocol = protocol_factory()
        mine.start(protocol)
        self.loop.call_later(self.latency(), listener.arrived, theirs, context=listener.process.context)
        await asyncio.sleep(self.latency())
        return mine, protocol


class VirtualTransport(asyncio.Transport):
    """One end of a connection."""

    peer: "VirtualTransport"

    def __init__(self, network: Network, process: Process) -> None:
        super().__init__()
        self.process = process
        self._network = network
        self._protocol: asyncio.BaseProtocol | None = None
        self._is_closing = False
        self._is_dropped = False
        self._reads = True
        self._arrived: deque[bytes | Exception | None] = deque()
        """Not read yet: bytes, and at last None or what broke the connection."""
        self._last_arrival = 0.0
        self._held: deque[bytes | Exception | None] | None = None
        """What has arrived while the connection stalls."""
        network.add_end(self)

    # -- what protocols call -----------------------------------------------------------------------------------------

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        protocol.connection_made(self)
        self._read()

    def write(self, data: Any) -> None:
        if not self._is_closing:
            self._send(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        if not self._is_closing:
            self._send(b"".join(list_of_data))

    def close(self) -> None:
        self._end(None, ConnectionResetError("closed by the peer"))

    def abort(self) -> None:
        self._end(None, ConnectionResetError("reset by the peer"))

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._reads = False

    def resume_reading(self) -> None:
        self._reads = True
        self._network.loop.call_soon(self._read, context=self.process.context)

    def is_reading(self) -> bool:
        return self._reads

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    # -- the connection ----------------------------------------------------------------------------------------------

    def _send(self, what: bytes | Exception | None) -> None:
        """It arrives after what was sent before it."""
        network, peer = self._network, self.peer
        at = max(network.loop.time() + network.latency(), peer._last_arrival)
        peer._last_arrival = at
        link = self.process.host, peer.process.host
        network.loop.call_at(at, lambda: network.when_open(*link, lambda: peer.arrive(what)), context=WORLD)

    def arrive(self, what: bytes | Exception | None) -> None:
        """Called by the world: the kernel has it, whether or not the process reads."""
        network = self._network
        if self._held is not None:
            self._held.append(what)
            return
        if self._is_dropped:
            if isinstance(what, bytes) and self.process.host not in network.dark_hosts:
                # Nobody has this connection any more, and the kernel says so.
                self._send(ConnectionResetError("reset by the peer"))
            return
        self._arrived.append(what)
        network.loop.call_soon(self._read, context=self.process.context)

    def hold(self) -> None:
        if self._held is None:
            self._held = deque()

    def release(self) -> None:
        held, self._held = self._held, None
        for what in held or ():
            self.arrive(what)

    def _read(self) -> None:
        protocol = self._protocol
        while protocol is not None and self._arrived and self._reads and not self._is_closing:
            what = self._arrived.popleft()
            if not isinstance(what, bytes):
                self._end(what, None)
            elif isinstance(protocol, asyncio.BufferedProtocol):
                self._fill(protocol, what)
            else:
                cast(asyncio.Protocol, protocol).data_received(what)

    def _fill(self, protocol: asyncio.BufferedProtocol, data: bytes) -> None:
        while data and not self._is_closing:
            if not self._reads:
                self._arrived.appendleft(data)
                return
            buffer = memoryview(protocol.get_buffer(len(data)))
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            protocol.buffer_updated(size)
            data = data[size:]

    def _end(self, problem: Exception | None, news: Exception | None) -> None:
        if self._is_closing:
            return
        self._is_closing = self._is_dropped = True
        self._network.remove_end(self)
        if news is not None:
            self._send(news)
        if self._protocol is not None:
            self._network.loop.call_soon(self._protocol.connection_lost, problem, context=self.process.context)

    def drop(self, *, silently: bool) -> None:
        """Its process has ended."""
        if not self._is_dropped:
            self._is_closing = self._is_dropped = True
            if not silently:
                self._send(ConnectionResetError("reset by the peer"))


class VirtualSocket:
    """A listening socket. The kernel accepts connections for it also while its process does not."""

    def __init__(self, network: Network, process: Process, address: Address) -> None:
        self.process = process
        self._network = network
        self._address = address
        self._backlog: deque[VirtualTransport] = deque()
        self._accept: Callable[[VirtualTransport], None] | None = None
        assert address not in network.listeners, f"{address} is taken"
        network.listeners[address] = self

    def arrived(self, end: "VirtualTransport") -> None:
        self._backlog.append(end)
        self.accept(self._accept)

    def accept(self, call: Callable[[VirtualTransport], None] | None) -> None:
        self._accept = call
        while self._accept is not None and self._backlog:
            self._accept(self._backlog.popleft())

    def fileno(self) -> int:
        return 0 if self._network.listeners.get(self._address) is self else -1

    def getsockname(self) -> Address:
        return self._address

    def close(self) -> None:
        if self.fileno() == 0:
            del self._network.listeners[self._address]
        for end in self._backlog:
            end.abort()
        self._backlog.clear()


class VirtualListener(Listener):
    """The product's listener, on a virtual socket."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.connections = OrderedSet()  # type: ignore[assignment]

    @staticmethod
    def _bind(host: str, port: int, backlog: int, receive_buffer_bytes: int) -> Any:
        process = this_process()
        network = cast(VirtualLoop, asyncio.get_running_loop()).network
        return VirtualSocket(cast(Network, network), process, (host, port))

    def resume_accepting(self) -> None:
        if self._loop is not None and self._socket.fileno() >= 0:
            cast(VirtualSocket, self._socket).accept(self._accept_end)

    def _pause_accepting(self) -> None:
        cast(VirtualSocket, self._socket).accept(None)

    def _accept_end(self, end: VirtualTransport) -> None:
        if not self._limits.acquire(end.peer.process.host):
            end.abort()
            return
        self.accepted += 1
        end.start(Connection(self, f"{end.peer.process.host}:1"))
