"""Values of the last minute or so. They are exact, since a canary has few."""

from collections import deque


class RecentValues:
    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._values: deque[tuple[float, float]] = deque()

    def add(self, value: float, now_ms: float) -> None:
        self._values.append((now_ms, value))
        self._drop(now_ms)

    def values(self, now_ms: float) -> list[float]:
        self._drop(now_ms)
        return [value for _, value in self._values]

    def total(self, now_ms: float) -> float:
        return sum(self.values(now_ms))

    def _drop(self, now_ms: float) -> None:
        while self._values and self._values[0][0] <= now_ms - self._window_ms:
            self._values.popleft()


class Outcomes:
    """The weights of successes and failures in the window."""

    def __init__(self, window_ms: int) -> None:
        self._succeeded = RecentValues(window_ms)
        self._failed = RecentValues(window_ms)

    def succeeded(self, now_ms: float, weight: float = 1) -> None:
        self._succeeded.add(weight, now_ms)

    def failed(self, now_ms: float, weight: float = 1) -> None:
        self._failed.add(weight, now_ms)

    def totals(self, now_ms: float) -> tuple[float, float]:
        return self._succeeded.total(now_ms), self._failed.total(now_ms)


def availability(succeeded: float, failed: float) -> float | None:
    """The fraction that succeeded; None if nothing was attempted."""
    return succeeded / (succeeded + failed) if succeeded or failed else None
