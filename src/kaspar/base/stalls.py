"""How long the event loop was blocked. A request that arrives during a stall waits until the stall ends.

Two measurements are combined:
- work on the loop that took more than a millisecond reports how long it took (`LoopStalls.worked`), which is exact;
- a timer compares when it should have run with when it did, which finds unreported work. Timers are accurate to a
  millisecond or two, and see a stall only if it spans the moment they were due: a stall of at least the timer's
  interval is always found, a shorter one sometimes.

Reported time is subtracted from what the timer finds, so that no stall counts twice. The timer is also the broker's
heartbeat: the health page shows when it last ran.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from kaspar.base.errors import invariant
from kaspar.base.log import get_log
from kaspar.base.metrics import WINDOW_SECONDS

log = get_log(__name__)

STALL_SECONDS: Final = 0.001
"""Shorter work is not a stall; longer work is reported: `if seconds > STALL_SECONDS: stalls.worked(seconds)`."""

STALL_BOUNDS_MS: Final = (1, 10, 100)
WARN_SECONDS: Final = 0.1
TICK_SECONDS: Final = 0.1
_TIMER_NOISE_SECONDS: Final = 0.002
_WARN_EVERY_SECONDS: Final = 10.0
_BUSY_SAMPLE_SECONDS: Final = 5.0
_BUSY_SAMPLES: Final = 13  # one minute, and the sample at its beginning


class LoopStalls:
    """The measured stalls. Written by the event loop's thread, read by any."""

    def __init__(self, *, warn_seconds: float = WARN_SECONDS, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        start = monotonic()
        self.longest = 0.0
        self.last_tick = start
        self._warn_seconds = warn_seconds
        self._over = dict.fromkeys(STALL_BOUNDS_MS, 0)
        self._due = start
        self._reported_since_due = 0.0
        self._recent = (0.0, 0.0)  # longest stall of the previous window, and of the current one
        self._next_warning = start
        self._busy: deque[tuple[float, float]] = deque(maxlen=_BUSY_SAMPLES)

    def worked(self, seconds: float) -> None:
        """Report a piece of work that ends now and has blocked the loop this long."""
        self._reported_since_due += min(seconds, max(0.0, self._monotonic() - self._due))
        self._count(seconds)

    def due_at(self, due: float) -> None:
        """Set when the timer will run, if the loop is free."""
        self._due = due
        self._reported_since_due = 0.0

    def ticked(self, *, loop_cpu_seconds: float) -> None:
        """Record that the timer runs now. `loop_cpu_seconds` is the CPU time that the loop's thread has used so far."""
        now = self._monotonic()
        unexplained = now - self._due - self._reported_since_due
        self.last_tick = now
        if unexplained > _TIMER_NOISE_SECONDS:
            self._count(unexplained)
        if not self._busy or now - self._busy[-1][0] >= _BUSY_SAMPLE_SECONDS:
            self._busy.append((now, loop_cpu_seconds))

    def rotate(self) -> None:
        self._recent = (self._recent[1], 0.0)

    def _count(self, seconds: float) -> None:
        for bound in STALL_BOUNDS_MS:
            if seconds * 1000 > bound:
                self._over[bound] += 1
        self.longest = max(self.longest, seconds)
        before, current = self._recent
        if seconds > current:
            self._recent = (before, seconds)
        if seconds >= self._warn_seconds:
            self._warn(seconds)

    def _warn(self, seconds: float) -> None:
        now = self._monotonic()
        if now >= self._next_warning:
            self._next_warning = now + _WARN_EVERY_SECONDS
            log.warning("the event loop was blocked", ms=round(seconds * 1000), longest_ms=round(self.longest * 1000))

    # -- read by any thread ------------------------------------------------------------------------------------------

    def longest_recent(self) -> float:
        """The longest stall of the last one to two minutes, in seconds."""
        return max(self._recent)

    def over(self) -> dict[int, int]:
        """How many stalls were longer than each of STALL_BOUNDS_MS."""
        return self._over.copy()

    def idle_fraction(self) -> float:
        """The fraction of the last minute in which the loop's thread used no CPU; 1 until there are two samples."""
        samples = list(self._busy)
        if len(samples) < 2:
            return 1.0
        (start, cpu_at_start), (end, cpu_at_end) = samples[0], samples[-1]
        return min(1.0, max(0.0, 1.0 - (cpu_at_end - cpu_at_start) / (end - start)))

    def silent_seconds(self) -> float:
        """How long ago the timer last ran."""
        return self._monotonic() - self.last_tick


class LoopMonitor:
    """The timer, on the running event loop. `on_window` is called every WINDOW_SECONDS, to rotate histograms."""

    def __init__(self, stalls: LoopStalls, *, on_window: Callable[[], None] = lambda: None) -> None:
        self._stalls = stalls
        self._on_window = on_window
        self._handle: asyncio.TimerHandle | None = None
        self._window_end = 0.0

    def start(self) -> None:
        """Start the timer. Called on the running event loop."""
        invariant(self._handle is None, "the loop's monitor was started twice")
        now = time.monotonic()
        self._window_end = now + WINDOW_SECONDS
        self._stalls.last_tick = now
        self._schedule(asyncio.get_running_loop(), now)

    def stop(self) -> None:
        """Safe to call twice, or before start."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _schedule(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        self._stalls.due_at(now + TICK_SECONDS)
        self._handle = loop.call_later(TICK_SECONDS, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.monotonic()
        self._stalls.ticked(loop_cpu_seconds=time.thread_time())
        if now >= self._window_end:
            self._window_end = now + WINDOW_SECONDS
            self._stalls.rotate()
            self._on_window()
        self._schedule(loop, now)
