"""One start of `kaspar up` in an empty folder: until its brokers serve, until all is ready, and a minute idle."""

import importlib.metadata
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.command import TMPFS
from bench.meters import MachineUse, cpu_seconds, proportional_bytes, resident_bytes
from bench.rows import Better, Row
from bench.sides import Role
from bench.up.process import UpProcess
from kaspar.supervisor.plan import HOST
from kaspar.supervisor.ports import consecutive_free_ports
from kaspar.supervisor.readiness import Contact, view_of
from kaspar.web.catalogue import SERVICES

ANY_PORTS: Final = tuple(word for name in SERVICES for word in (f"--{name}-port", "0"))
_SETTLE_S: Final = 15.0
"""The time for work after a start: the canary's topic, the first rounds of the monitor."""
_MB: Final = 1e6


@dataclass(frozen=True, slots=True)
class Program:
    role: Role
    title: str


OURS: Final = Program(Role.CANDIDATE, f"Kaspar {importlib.metadata.version('kaspar')}")


class UpCase:
    """The goals are for one broker; more brokers have none."""

    def __init__(self, brokers: int, *, idle_s: float, has_goals: bool) -> None:
        self.name = f"up-{brokers}"
        self.sides: Sequence[Program] = (OURS,)
        self.others_shares: list[float] = []
        self._brokers = brokers
        self._idle_s = idle_s
        section = "kaspar up" if brokers == 1 else f"kaspar up --brokers {brokers}, ZooKeeper included"

        def row(name: str, title: str, unit: str, goal: float) -> Row:
            wanted = goal if has_goals else None
            return Row(f"{self.name}_{name}", title, section, unit, Better.LESS, wanted, goal_is_value=True)

        self.rows: tuple[Row, ...] = (
            row("brokers", "brokers serve clients after", "s", 2),
            row("ready", "everything is ready after", "s", 5),
            row("resident", "idle, resident memory of all processes", "MB", 250),
            row("proportional", "idle, with shared pages counted once", "MB", 250),
            row("cpu", "idle, CPU", "% of a core", 2),
        )

    def measure(self, side: Program) -> Mapping[str, float]:
        folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-up-", dir=TMPFS))
        try:
            values = self._measure(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return {row.name: value for row, value in zip(self.rows, values, strict=True)}

    def _measure(self, folder: Path) -> list[float]:
        ports = consecutive_free_ports(self._brokers)
        size = ["--brokers", str(len(ports))] if len(ports) > 1 else []
        process = UpProcess(folder, ["--port", str(ports[0]), *size, *ANY_PORTS])
        try:
            brokers_s = process.seconds_until(lambda: _all_serve(ports))
            ready_s = process.seconds_until_ready()
            time.sleep(_SETTLE_S)
            cpu_before, machine_before = cpu_seconds(process.pid), MachineUse.now()
            time.sleep(self._idle_s)
            used_s = cpu_seconds(process.pid) - cpu_before
            self.others_shares.append(MachineUse.now().others_share_since(machine_before, used_s))
            resident, proportional = resident_bytes(process.pid), proportional_bytes(process.pid)
        finally:
            process.stop()
        return [brokers_s, ready_s, resident / _MB, proportional / _MB, 100 * used_s / self._idle_s]


def _all_serve(ports: Sequence[int]) -> bool:
    return all(view_of(Contact(f"{HOST}:{port}")) is not None for port in ports)
