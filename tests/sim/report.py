"""What is told of a simulation."""

from tests.sim.simulation import Result

TRACE_LINES = 400


def report(result: Result, *, lines: int = TRACE_LINES) -> str:
    return "\n".join(
        [
            *result.trace[-lines:],
            f"seed {result.seed}: {result.violation or 'passed'}",
            f"its {len(result.faults)} faults:",
            *(f"  {fault}" for fault in result.faults),
            f"replay it with: make sim SEED={result.seed}",
        ]
    )
