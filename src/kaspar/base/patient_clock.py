"""A wall clock for what cannot be undone: it does not believe a jump ahead before the new time has lasted.

Retention deletes what is old, and so does everything else that expires: committed offsets, producer state, idle ids. A
wall clock that is set a year ahead by mistake makes everything old, and no later correction brings it back. So this
clock goes on by the steady clock where the wall clock has jumped ahead of it, and takes the new time over when it has
lasted for an hour. A jump back is followed at once: it only keeps things longer.

What is written down while the wall clock is back by mistake would look old as soon as it is right again. So `stamp_ms`,
the time to write down, goes on as before a jump back, for an hour: after that the clock is taken to be right.

The time when the process last ran may be given, so that a clock that is wrong already when the process starts (no
battery, no network yet) is met with the same patience. But machines are switched off, for a night or for a holiday: so
at a start the clock is believed if it says that the process was away for 30 days at most. After more, if that is true,
things are deleted an hour late.
"""

import threading
from typing import NamedTuple

from kaspar.base.clock import Clock
from kaspar.base.log import get_log

log = get_log(__name__)
_new = tuple.__new__  # a named tuple's own constructor takes three times as long

MOST_JUMP_MS = 5 * 60_000
"""What the wall clock may gain on the steady one while the process runs: it is set right, or the machine slept."""

MOST_ABSENCE_MS = 30 * 24 * 60 * 60_000
"""How long ago the process may have run last, by a wall clock that is believed at a start."""

PATIENCE_MS = 60 * 60_000
"""How long a time has to last before it is believed."""


class Moment(NamedTuple):
    """One moment, in milliseconds. The first and the last are since 1970, and the last is never the later one."""

    stamp_ms: int
    """To be written down: the wall clock's, or what it would be if it had not just gone back."""
    steady_ms: int
    """Of the steady clock: for durations."""
    believed_ms: int
    """To judge the age of what was written down: the wall clock's, as far as it is believed."""


class PatientClock:
    """Must be asked from time to time, at least every few minutes, to see jumps. For any thread."""

    def __init__(self, clock: Clock, last_known_ms: int | None = None) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._steady_ms = self._steady_now_ms()
        self._now_ms = clock.now_ms()
        # The time before a jump back, as it would be by now, and since when the clock is back.
        self._before_ms: int | None = None
        self._back_for_ms = 0
        if last_known_ms is not None and self._now_ms > last_known_ms + MOST_ABSENCE_MS:
            self._now_ms = last_known_ms
        elif last_known_ms is not None and self._now_ms < last_known_ms - MOST_JUMP_MS:
            self._went_back(last_known_ms, self._now_ms)
        # The time that is not believed yet, as it should be by now, and for how long it has lasted.
        self._claimed_ms: int | None = None
        self._lasted_ms = 0

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def now_ms(self) -> int:
        """Milliseconds since 1970, as far as they are believed."""
        return self.moment().believed_ms

    def moment(self) -> Moment:
        with self._lock:
            wall_ms = self._clock.now_ms()
            steady_ms = int(self._clock.monotonic() * 1000)
            passed_ms, self._steady_ms = steady_ms - self._steady_ms, steady_ms
            if self._before_ms is None and self._claimed_ms is None:
                gained_ms = wall_ms - self._now_ms - passed_ms
                if -MOST_JUMP_MS <= gained_ms <= MOST_JUMP_MS:  # as ever: coordinators ask at every request
                    self._now_ms = wall_ms
                    return _new(Moment, (wall_ms, steady_ms, wall_ms))
            if self._before_ms is not None:
                self._look_back(self._before_ms + passed_ms, wall_ms, passed_ms)
            self._now_ms = self._looked_at(wall_ms, passed_ms)
            stamp_ms = wall_ms if self._before_ms is None else max(wall_ms, self._before_ms)
            return Moment(stamp_ms, steady_ms, self._now_ms)

    def _looked_at(self, wall_ms: int, passed_ms: int) -> int:
        expected_ms = self._now_ms + passed_ms
        if wall_ms <= expected_ms + MOST_JUMP_MS:
            if self._claimed_ms is not None:
                log.info("the clock is back where it was expected", ahead_ms=wall_ms - expected_ms)
                self._claimed_ms = None
            if wall_ms < expected_ms - MOST_JUMP_MS and self._before_ms is None:
                self._went_back(expected_ms, wall_ms)
            return wall_ms
        if self._claimed_ms is not None and abs(wall_ms - self._claimed_ms - passed_ms) <= MOST_JUMP_MS:
            self._lasted_ms += passed_ms
        else:
            self._lasted_ms = 0
            log.warning(
                "the clock has jumped ahead: nothing is deleted because of it until the new time has lasted an hour",
                expected_ms=expected_ms,
                clock_ms=wall_ms,
            )
        self._claimed_ms = wall_ms
        if self._lasted_ms < PATIENCE_MS:
            return expected_ms
        log.warning("the clock's new time has lasted, and counts from now on", clock_ms=wall_ms)
        self._claimed_ms = None
        return wall_ms

    def _went_back(self, before_ms: int, wall_ms: int) -> None:
        log.warning("the clock has gone back", expected_ms=before_ms, clock_ms=wall_ms)
        self._before_ms = before_ms
        self._back_for_ms = 0

    def _look_back(self, before_ms: int, wall_ms: int, passed_ms: int) -> None:
        """The clock went back a while ago: is it right again, or was it right to go back?"""
        self._before_ms = before_ms
        self._back_for_ms += passed_ms
        if wall_ms >= before_ms - MOST_JUMP_MS or self._back_for_ms >= PATIENCE_MS:
            self._before_ms = None
            if abs(wall_ms - before_ms) <= MOST_JUMP_MS:
                self._now_ms = before_ms - passed_ms  # where it was: there is nothing to be patient about

    def _steady_now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)
