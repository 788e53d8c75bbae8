"""How long to wait before restarting a process that has exited."""

from typing import Final

FIRST_DELAY_S: Final = 0.5
LONGEST_DELAY_S: Final = 30.0
STABLE_AFTER_S: Final = 30.0
"""If a process ran this long, its exit is taken to be unrelated to the one before."""


class BackOff:
    """The delay doubles with each exit, and is reset after a long run."""

    def __init__(self) -> None:
        self._last_delay_s = 0.0

    def next_delay_s(self, *, lived_s: float) -> float:
        if lived_s >= STABLE_AFTER_S or self._last_delay_s == 0.0:
            self._last_delay_s = FIRST_DELAY_S
        else:
            self._last_delay_s = min(2 * self._last_delay_s, LONGEST_DELAY_S)
        return self._last_delay_s
