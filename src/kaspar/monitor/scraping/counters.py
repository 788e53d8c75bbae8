"""Rates of counters, which restart from zero when a broker restarts."""

from typing import Generic, TypeVar

Key = TypeVar("Key")


class CounterRates(Generic[Key]):
    """The growth of each counter per second, between two readings."""

    def __init__(self) -> None:
        self._last: dict[Key, tuple[int, float]] = {}

    def rate(self, key: Key, value: float, at_ms: int) -> float | None:
        """None for the first reading, or if no time has passed. A counter that decreased was reset: its value is its
        growth."""
        before = self._last.get(key)
        if before is not None and at_ms <= before[0]:
            return None
        self._last[key] = (at_ms, value)
        if before is None:
            return None
        grown = value - before[1] if value >= before[1] else value
        return grown / (at_ms - before[0]) * 1000
