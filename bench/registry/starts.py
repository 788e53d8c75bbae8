"""The time until a registry serves the schemas of its topic, and its memory use."""

import time
from collections.abc import Mapping
from typing import Final

from bench.meters import resident_bytes
from bench.registry.bench import SCHEMAS, RegistryBench, subject_of
from bench.registry.case import APICURIO, OURS, Program
from bench.registry.reads import SECTION
from bench.rows import Better, Row

_MANY: Final = 10_000
_GOAL_S: Final = 2.0
_GOAL_MB: Final = 100.0
_SETTLE_S: Final = 2.0


class Start:
    """Starts another instance beside the running one: the time until it serves the last schema, and its memory use."""

    name = "start"
    sides = (OURS, APICURIO)

    def __init__(self) -> None:
        self.rows: tuple[Row, ...] = (
            Row("start", f"start with {SCHEMAS:,} schemas", SECTION, "s", Better.LESS, 1.0),
            Row("memory", "memory of the idle process", SECTION, "MB", Better.LESS, _GOAL_MB, goal_is_value=True),
        )

    def measure(self, bench: RegistryBench, side: Program) -> Mapping[str, float]:
        bench.filled(side)
        with bench.server(side) as server:
            seconds = server.start(f"/subjects/{subject_of(SCHEMAS)}/versions/1")
            time.sleep(_SETTLE_S)
            return {"start": seconds, "memory": resident_bytes(server.pid) / 1e6}


class StartWithMany:
    """Only for Kaspar: filling the other registry with that many schemas takes minutes."""

    name = "start_10000"
    sides = (OURS,)

    def __init__(self) -> None:
        section = "Schema registry with many schemas"
        self.rows: tuple[Row, ...] = (
            Row(
                "start_10000",
                f"start with {_MANY:,} schemas",
                section,
                "s",
                Better.LESS,
                _GOAL_S,
                goal_is_value=True,
            ),
            Row("memory_10000", f"memory with {_MANY:,} schemas", section, "MB", Better.LESS),
        )
        self._topic: str | None = None

    def measure(self, bench: RegistryBench, side: Program) -> Mapping[str, float]:
        self._topic = self._topic or bench.filled_topic(_MANY)
        with bench.server(side, self._topic) as server:
            seconds = server.start(f"/schemas/ids/{_MANY}")
            time.sleep(_SETTLE_S)
            return {"start_10000": seconds, "memory_10000": resident_bytes(server.pid) / 1e6}
