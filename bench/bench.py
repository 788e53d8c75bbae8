"""The context of every case: the load programs, warm brokers, fresh brokers, and the amount of load."""

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import meters, programs
from bench.sides import Side
from bench.topics import Topics
from tests.peers.process import BrokerProcess

_WARM_UP_BYTES = 600_000_000
_WARM_UP_SECONDS = 10
_TOUCH_CHUNK = bytes(1 << 20)


@dataclass(slots=True)
class Bench:
    tools: programs.Programs
    folder: Path  # holds the data of all brokers, and is removed at the end
    on_tmpfs: bool
    scale: float  # 1.0 is the full load
    patience: int  # the maximum of extra tries for a measurement that other processes disturbed
    _warm: dict[str, BrokerProcess] = field(default_factory=dict)
    others_shares: list[float] = field(default_factory=list)  # for each load, the share of the machine used by others

    def scaled(self, amount: int) -> int:
        return max(1, int(amount * self.scale))

    def warm_broker(self, side: Side) -> BrokerProcess:
        """The side's long-running broker. It is started on first use, and warmed up with load of every kind."""
        broker = self._warm.get(side.name)
        if broker is not None and broker.running:
            return broker
        if broker is not None:  # it broke in an earlier case, which has failed: create another one
            shutil.rmtree(broker.folder, ignore_errors=True)
        broker = self._warm[side.name] = side.make(self.folder / f"{side.name}-warm")
        broker.start()
        print(f"    {side.name} runs as process {broker.pid}; warming up", flush=True)
        self._warm_up(broker)
        return broker

    def _warm_up(self, broker: BrokerProcess) -> None:
        """Run enough load for a JVM to compile its hot code. The other broker gets the same load."""
        topics = Topics(broker)
        for size, codec, partitions in ((1000, "none", 1), (100, "lz4", 8)):
            with topics.temporary(partitions) as topic:
                records = _WARM_UP_BYTES // size
                arguments = (broker.bootstrap, topic, partitions, records)
                programs.run(self.tools.client, "produce", *arguments, size, "1", codec)
                programs.run(self.tools.client, "consume", *arguments)
        with topics.temporary(1) as topic:
            where = (broker.host, broker.port, topic, 1)
            programs.run(self.tools.requests, "closed", *where, 10, 100, "1", _WARM_UP_SECONDS, 5)

    @contextmanager
    def fresh_broker(self, side: Side, name: str, settings: Mapping[str, str] | None = None) -> Iterator[BrokerProcess]:
        """A broker that has never been started. Its settings are written and its data folder is formatted."""
        folder = self.folder / f"{side.name}-{name}-{time.monotonic_ns()}"
        broker = side.make(folder)
        broker.overrides.update(settings or {})
        try:
            broker.prepare()
            yield broker
        finally:
            broker.kill()
            shutil.rmtree(folder, ignore_errors=True)

    def touch_memory(self, size: int) -> None:
        """Make sure that the next `size` bytes of a tmpfs are backed by the machine's physical memory.

        A virtual machine gets memory from its host on first use, and returns unused memory. Without this the first
        broker would pay for that and the second would not.
        """
        if not self.on_tmpfs:
            return
        path = self.folder / "touched"
        with path.open("wb", buffering=0) as file:
            for _ in range(size // len(_TOUCH_CHUNK)):
                file.write(_TOUCH_CHUNK)
        path.unlink()

    def run_load(
        self, broker: BrokerProcess, program: Path, *arguments: object, accept: tuple[int, ...] = (0,)
    ) -> "Load":
        """Run a load program, and measure what the broker used during that time."""
        machine, before = meters.MachineUse.now(), meters.cpu_seconds(broker.pid)
        measured = programs.run(program, *arguments, accept=accept)
        used = meters.cpu_seconds(broker.pid) - before
        self.others_shares.append(meters.MachineUse.now().others_share_since(machine, used))
        return Load(measured, used)

    def close(self) -> None:
        for broker in self._warm.values():
            broker.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Load:
    """One run of a load program."""

    measured: programs.Measured
    broker_cpu_seconds: float

    def __getitem__(self, name: str) -> float:
        return self.measured[name]
