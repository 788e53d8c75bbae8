"""How long to wait before a process that has ended by itself is started again."""

from typing import Final

FIRST_DELAY_S: Final = 0.5
LONGEST_DELAY_S: Final = 30.0
STABLE_AFTER_S: Final = 30.0
"""A process that lived this long has ended for another reason than the one before it."""


class BackOff:
    """Doubles from one end to the next, and starts again after a long life."""

    def __init__(self) -> None:
        self._last_delay_s = 0.0

    def next_delay_s(self, *, lived_s: float) -> float:
        if lived_s >= STABLE_AFTER_S or self._last_delay_s == 0.0:
            self._last_delay_s = FIRST_DELAY_S
        else:
            self._last_delay_s = min(2 * self._last_delay_s, LONGEST_DELAY_S)
        return self._last_delay_s
