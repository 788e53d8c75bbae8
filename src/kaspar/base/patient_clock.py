"""A wall clock for irreversible decisions: it ignores a jump ahead until the new time has lasted for an hour.

Retention deletes old data, and so does everything else that expires: committed offsets, producer state, idle ids. A
wall clock set a year ahead by mistake makes everything old, and correcting it does not bring the data back. So after a
jump ahead this clock continues with the monotonic clock, and adopts the new time once it has lasted for an hour. A jump
back takes effect at once: it only keeps data longer.

Timestamps written while the wall clock is behind by mistake would look old once it is right again. So `stamp_ms`, the
timestamp to write, ignores a jump back for an hour; after that the clock is assumed to be right.

`last_known_ms`, the time when the process last ran, extends this to a clock that is wrong when the process starts (no
battery, no network yet). Machines are also switched off for a while, so at the start an absence of up to 30 days is
believed. After a longer one, data is deleted an hour late.
"""

import threading
from typing import NamedTuple

from kaspar.base.clock import Clock
from kaspar.base.log import get_log
from kaspar.base.named_tuples import new_tuple

log = get_log(__name__)

MAX_JUMP_MS = 5 * 60_000
"""How far the wall clock may run ahead of the monotonic one: it was corrected, or the machine was suspended."""

MAX_ABSENCE_MS = 30 * 24 * 60 * 60_000
"""The longest absence of the process that is believed when it starts."""

PATIENCE_MS = 60 * 60_000
"""How long a new time has to last before it is believed."""


class Moment(NamedTuple):
    """One moment on three clocks, in milliseconds. `believed_ms` is never later than `stamp_ms`."""

    stamp_ms: int
    """The timestamp to write: the wall clock's, or its time without a recent jump back."""
    steady_ms: int
    """The monotonic clock, for durations."""
    believed_ms: int
    """The wall clock's time, as far as it is believed, to compute the age of data."""


class PatientClock:
    """Thread-safe. It only notices jumps if it is read at least every few minutes."""

    def __init__(self, clock: Clock, last_known_ms: int | None = None) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._steady_ms = self._steady_now_ms()
        self._now_ms = clock.now_ms()
        # What the time would be without the jump back, and how long ago that was.
        self._before_ms: int | None = None
        self._back_for_ms = 0
        # The time that is not believed yet, and for how long it has lasted.
        self._claimed_ms: int | None = None
        self._lasted_ms = 0
        if last_known_ms is not None:
            self.start_from(last_known_ms)

    def start_from(self, last_known_ms: int) -> None:
        """Begin with the last time that an earlier process has written down."""
        with self._lock:
            self._steady_ms = self._steady_now_ms()
            self._now_ms = self._clock.now_ms()
            if self._now_ms > last_known_ms + MAX_ABSENCE_MS:
                self._now_ms = last_known_ms
            elif self._now_ms < last_known_ms - MAX_JUMP_MS:
                self._jumped_back(last_known_ms, self._now_ms)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def now_ms(self) -> int:
        """Milliseconds since 1970, as far as the wall clock is believed."""
        return self.moment().believed_ms

    def moment(self) -> Moment:
        with self._lock:
            wall_ms = self._clock.now_ms()
            steady_ms = int(self._clock.monotonic() * 1000)
            passed_ms, self._steady_ms = steady_ms - self._steady_ms, steady_ms
            if self._before_ms is None and self._claimed_ms is None:
                gained_ms = wall_ms - self._now_ms - passed_ms
                # The usual case: coordinators read the clock for every request.
                if -MAX_JUMP_MS <= gained_ms <= MAX_JUMP_MS:
                    self._now_ms = wall_ms
                    return new_tuple(Moment, (wall_ms, steady_ms, wall_ms))
            if self._before_ms is not None:
                self._check_jump_back(self._before_ms + passed_ms, wall_ms, passed_ms)
            self._now_ms = self._believed(wall_ms, passed_ms)
            stamp_ms = wall_ms if self._before_ms is None else max(wall_ms, self._before_ms)
            return Moment(stamp_ms, steady_ms, self._now_ms)

    def _believed(self, wall_ms: int, passed_ms: int) -> int:
        expected_ms = self._now_ms + passed_ms
        if wall_ms <= expected_ms + MAX_JUMP_MS:
            if self._claimed_ms is not None:
                log.info("the clock is back where it was expected", ahead_ms=wall_ms - expected_ms)
                self._claimed_ms = None
            if wall_ms < expected_ms - MAX_JUMP_MS and self._before_ms is None:
                self._jumped_back(expected_ms, wall_ms)
            return wall_ms
        if self._claimed_ms is not None and abs(wall_ms - self._claimed_ms - passed_ms) <= MAX_JUMP_MS:
            self._lasted_ms += passed_ms
        else:
            self._lasted_ms = 0
            log.warning(
                "the clock has jumped ahead: nothing expires by the new time until it has lasted for an hour",
                expected_ms=expected_ms,
                clock_ms=wall_ms,
            )
        self._claimed_ms = wall_ms
        if self._lasted_ms < PATIENCE_MS:
            return expected_ms
        log.warning("the clock's new time has lasted for an hour and is used from now on", clock_ms=wall_ms)
        self._claimed_ms = None
        return wall_ms

    def _jumped_back(self, before_ms: int, wall_ms: int) -> None:
        log.warning("the clock has jumped back", expected_ms=before_ms, clock_ms=wall_ms)
        self._before_ms = before_ms
        self._back_for_ms = 0

    def _check_jump_back(self, before_ms: int, wall_ms: int, passed_ms: int) -> None:
        """Check a jump back in the past: it may have been reverted, or the jump was the correction."""
        self._before_ms = before_ms
        self._back_for_ms += passed_ms
        if wall_ms >= before_ms - MAX_JUMP_MS or self._back_for_ms >= PATIENCE_MS:
            self._before_ms = None
            if abs(wall_ms - before_ms) <= MAX_JUMP_MS:
                self._now_ms = before_ms - passed_ms  # reverted: believe it at once

    def _steady_now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)
