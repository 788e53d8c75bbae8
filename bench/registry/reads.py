"""Reads of schemas by id, as every consumer does once for each id, and by subject and version."""

from collections.abc import Callable, Mapping
from typing import Final

from bench.registry import wrk
from bench.registry.bench import SCHEMAS, Filled, RegistryBench, subject_of
from bench.registry.case import APICURIO, OURS, Program
from bench.rows import Better, Row

SECTION: Final = "Schema registry beside Apicurio"
CONNECTIONS: Final = 8
_SECONDS: Final = 4.0
_WARM_UP_SECONDS: Final = 3.0


class Reads:
    sides = (OURS, APICURIO)

    def __init__(self, name: str, title: str, paths: Callable[[Filled], list[str]]) -> None:
        self.name = name
        self.rows: tuple[Row, ...] = (
            Row(name, f"{title}, {CONNECTIONS} connections", SECTION, "requests/s", Better.MORE, 1.0),
            Row(f"{name}_p99", "their p99", SECTION, "ms", Better.LESS, 1.0),
        )
        self._paths = paths
        self._warm: set[Program] = set()

    def measure(self, bench: RegistryBench, side: Program) -> Mapping[str, float]:
        filled = bench.filled(side)
        file = bench.folder / f"{self.name}-{side.role.value}.txt"
        file.write_text("".join(f"{side.path}{path}\n" for path in self._paths(filled)))
        if side not in self._warm:
            self._warm.add(side)
            self._run(filled, file, _WARM_UP_SECONDS)
        load = self._run(filled, file, _SECONDS * bench.scale)
        return {self.name: load.per_second, f"{self.name}_p99": load.p99_ms}

    def _run(self, filled: Filled, paths: object, seconds: float) -> wrk.Load:
        settings = {"PATHS": str(paths)}
        return wrk.run(filled.server.url, "reads", connections=CONNECTIONS, seconds=seconds, settings=settings)


def reads() -> list[Reads]:
    return [
        Reads("read_id", "read by id", lambda filled: [f"/schemas/ids/{each}" for each in filled.ids]),
        Reads(
            "read_version",
            "read by subject and version",
            lambda _: [f"/subjects/{subject_of(number)}/versions/1" for number in range(1, SCHEMAS + 1)],
        ),
        Reads(
            "read_latest",
            "read the latest version",
            lambda _: [f"/subjects/{subject_of(number)}/versions/latest" for number in range(1, SCHEMAS + 1)],
        ),
    ]
