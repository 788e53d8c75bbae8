"""The machines that brokers run on: each has a disk, a clock, and at most one broker process, which is the product's.

A broker is whole (kaspar.broker.server.Broker). What it shares with others is replaced: its listening socket, its
connections, its disk, its session with ZooKeeper, and the look at whether another process has ended.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from kaspar.base.errors import KasparError
from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.broker import listeners, lost_brokers, parts, registration, server
from kaspar.broker.cluster import broker_watch, membership
from kaspar.broker.server import Broker
from kaspar.config import BrokerSettings
from kaspar.storage import LogManager
from tests.sim.determinism import VirtualClock
from tests.sim.ensemble import Ensemble, VirtualMetadata
from tests.sim.network import Network, VirtualListener
from tests.sim.trace import Trace
from tests.sim.virtual_loop import WORLD, Process, VirtualLoop, this_process
from tests.unit.storage.forgetful_files import ForgetfulFiles

PORT = 9092
START_AGAIN_S = 1.0
STOP_WITHIN_S = 40.0


class Disk(ForgetfulFiles):
    def process_ended(self) -> None:
        """What was written is in the page cache, and stays; what was open is closed."""
        self._open.clear()


class Machine:
    def __init__(self, broker_id: int, world: "World", settings: dict[str, str], *, clock_ahead_ms: int) -> None:
        self.broker_id = BrokerId(broker_id)
        self.host = f"b{broker_id}"
        self.disk = Disk()
        self.process: Process | None = None
        self.broker: Broker | None = None
        self.is_running = False
        """Whether its broker has started."""
        self.has_closed = False
        """Whether its last broker has stopped in order: then everything that it wrote is synced."""
        self.starts = 0
        self.tainted: set[TopicPartition] = set()
        """Partitions whose log was not closed since, which the controller may not know yet."""
        self.lossy: set[TopicPartition] = set()
        """Those of them whose log may have lost its end."""
        self.crashed_after = -1
        """The last transaction of the metadata store before its last crash."""
        self.wanted = False
        """Whether it should run."""
        self._stopping: Process | None = None
        """The process that has been told to stop."""
        self._world = world
        self._clock = VirtualClock(world.loop, ahead_ms=clock_ahead_ms)
        self._settings = BrokerSettings.of(
            {"node.id": str(broker_id), "listeners": f"PLAINTEXT://{self.host}:{PORT}", **settings}
        )

    @property
    def is_up(self) -> bool:
        return self.process is not None

    def start(self) -> None:
        self.wanted = True
        if self.process is not None:
            return
        self.starts += 1
        self.has_closed = False
        process = self.process = Process(f"{self.host}.{self.starts}", self.host)
        self._world.trace.note(self.host, "starts")
        self._world.loop.call_soon(lambda: asyncio.ensure_future(self._run(process)), context=process.context)

    async def _run(self, process: Process) -> None:
        broker = self.broker = Broker(self._settings, clock=self._clock)
        try:
            await broker.start()
        except KasparError as problem:
            self._world.trace.note(self.host, f"does not start: {problem}")
            self._ended(process)
            return
        except Exception as problem:
            self._world.problem(f"the broker on {self.host} does not start because of a bug: {problem!r}")
            return
        self.is_running = True
        reason = await asyncio.shield(broker.failure)
        self._world.problem(f"the broker on {self.host} gave up: {reason!r}")

    def stop(self) -> None:
        """In order, as SIGTERM does; the second one changes nothing."""
        self.wanted = False
        process, broker = self.process, self.broker
        if process is None or broker is None:
            return
        if process is self._stopping:
            return
        if not self.is_running or process.is_paused:
            self.kill()
            return
        self._stopping = process
        self._world.loop.call_soon(lambda: asyncio.ensure_future(self._stop(process, broker)), context=process.context)
        self._world.loop.call_later(STOP_WITHIN_S, self._stopped_too_late, process, context=WORLD)

    async def _stop(self, process: Process, broker: Broker) -> None:
        await broker.stop()
        self._world.trace.note(self.host, "has stopped")
        self.has_closed = True
        self._ended(process)

    def _stopped_too_late(self, process: Process) -> None:
        if self.process is process:
            self.kill()

    def kill(self, *, power: bool = False) -> None:
        """The process ends at once. With `power`, the machine loses what is not synced, and nobody hears of it."""
        self.wanted = False
        process = self.process
        if process is not None:
            self._end(process, silently=power)
        if power:
            self.disk.crash(self._world.disk_rng)
            self._world.network.dark_hosts.add(self.host)

    def boot(self) -> None:
        self._world.network.dark_hosts.discard(self.host)
        self.start()

    def _ended(self, process: Process) -> None:
        if self.process is process:
            self._end(process, silently=False)
            if self.wanted:
                self._world.loop.call_later(START_AGAIN_S, self._start_again, context=WORLD)

    def _start_again(self) -> None:
        if self.wanted:
            self.start()

    def _end(self, process: Process, *, silently: bool) -> None:
        process.is_dead = True
        process.held.clear()
        self._world.network.end_process(process, silently=silently)
        self.disk.process_ended()
        self.process = self.broker = None
        self.is_running = False


class _NoMonitor:
    """Instead of the product's: it measures the real loop by the real clock."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def start(self) -> None:
        pass

    stop = start


class World:
    """What all machines share."""

    def __init__(
        self, loop: VirtualLoop, network: Network, ensemble: Ensemble, trace: Trace, disk_rng: Any, *, one_machine: bool
    ) -> None:
        self.loop = loop
        self.network = network
        self.ensemble = ensemble
        self.trace = trace
        self.disk_rng = disk_rng
        self.one_machine = one_machine
        """Whether the brokers can tell that another one's process has ended."""
        self.mistaken_for_dead: set[str] = set()
        """Hosts whose broker is alive, though others are sure that it is not."""
        self.machines: dict[BrokerId, Machine] = {}
        self.clients: list[str] = []
        """Their hosts."""
        self.problems: list[str] = []

    def problem(self, sentence: str) -> None:
        self.problems.append(sentence)
        self.trace.note("world", sentence)

    def _machine_of(self, process: Process) -> Machine:
        return next(each for each in self.machines.values() if each.host == process.host)

    def _log_manager(self, config: Any, clock: Any) -> LogManager:
        return LogManager(config, clock, self._machine_of(this_process()).disk, lock_directories=False)

    async def _open_zookeeper(self, config: Any) -> VirtualMetadata:
        return VirtualMetadata(self.ensemble)

    async def _has_ended(self, host: str, port: int) -> bool:
        await asyncio.sleep(self.network.latency())
        if host in self.mistaken_for_dead:
            return True
        return self.one_machine and host not in self.network.dark_hosts and (host, port) not in self.network.listeners

    @contextlib.contextmanager
    def replacing(self) -> Iterator[None]:
        """Replace what brokers share with others."""
        with contextlib.ExitStack() as patches:
            for module, name, value in (
                (parts, "LogManager", self._log_manager),
                (server, "_open_zookeeper", self._open_zookeeper),
                (server, "LoopMonitor", _NoMonitor),
                (listeners, "Listener", VirtualListener),
                (broker_watch, "has_ended", self._has_ended),
                (lost_brokers, "has_ended", self._has_ended),
                (membership, "has_ended", self._has_ended),
                (registration, "has_ended", self._has_ended),
            ):
                patches.enter_context(mock.patch.object(module, name, value))
            yield
