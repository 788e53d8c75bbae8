"""Finds the few faults of a failing simulation that it takes to fail."""

from collections.abc import Callable, Sequence

from tests.sim.faults import Fault
from tests.sim.simulation import Result, simulate


def shrunk(failed: Result, simulate_with: Callable[[int, Sequence[Fault]], Result] = simulate) -> Result:
    """A failing simulation of the same seed with as few faults as possible. It may fail in another way."""
    best = failed
    size = max(1, len(best.faults) // 2)
    while True:
        smaller = _without_some(best, size, simulate_with)
        if smaller is not None:
            best = smaller
            size = min(size, max(1, len(best.faults) // 2))
        elif size > 1:
            size //= 2
        else:
            return best


def _without_some(failed: Result, size: int, simulate_with: Callable[[int, Sequence[Fault]], Result]) -> Result | None:
    """The first that still fails without `size` neighbouring faults."""
    for start in range(0, len(failed.faults), size):
        result = simulate_with(failed.seed, failed.faults[:start] + failed.faults[start + size :])
        if result.violation is not None:
            return result
    return None
