"""The age of records at the time when they were read."""

from collections import deque
from typing import Final

_KEPT: Final = 1000


class Delays:
    """The ages of the latest records. One thread adds, others read."""

    def __init__(self) -> None:
        self._ms: deque[float] = deque(maxlen=_KEPT)

    def add(self, ms: float) -> None:
        self._ms.append(ms)

    @property
    def middle_ms(self) -> float | None:
        found = sorted(self._ms.copy())
        return found[len(found) // 2] if found else None
