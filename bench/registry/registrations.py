"""Registrations of schemas, each under a new subject, and acknowledged when it is in the log of the cluster."""

from collections.abc import Mapping
from typing import Final

from bench.registry import wrk
from bench.registry.bench import RegistryBench
from bench.registry.case import APICURIO, OURS, Program
from bench.registry.reads import SECTION
from bench.rows import Better, Row

_SECONDS: Final = 5.0
_WARM_UP_SECONDS: Final = 3.0


class Registrations:
    sides = (OURS, APICURIO)

    def __init__(self, clients: int) -> None:
        self.name = f"register_{clients}"
        self._clients = clients
        title = "register, one client" if clients == 1 else f"register, {clients} clients"
        self.rows: tuple[Row, ...] = (
            Row(self.name, title, SECTION, "schemas/s", Better.MORE, 1.0),
            Row(f"{self.name}_p99", "their p99", SECTION, "ms", Better.LESS, 1.0),
        )
        self._warm: set[Program] = set()

    def measure(self, bench: RegistryBench, side: Program) -> Mapping[str, float]:
        if side not in self._warm:
            self._warm.add(side)
            self._run(bench, side, _WARM_UP_SECONDS)
        load = self._run(bench, side, _SECONDS * bench.scale)
        return {self.name: load.per_second, f"{self.name}_p99": load.p99_ms}

    def _run(self, bench: RegistryBench, side: Program, seconds: float) -> wrk.Load:
        settings = {"RUN": str(bench.next_run), "BASE": side.path}
        url = bench.filled(side).server.url
        return wrk.run(url, "registrations", connections=self._clients, seconds=seconds, settings=settings)
