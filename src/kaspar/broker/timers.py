"""Timers for coordinators: one timer wheel for all of them, driven by one timer of the event loop.

Groups have a session for each member, and transactions a timeout each: a task or a loop timer for each of these would
cost more than the work itself. The wheel is hierarchical: the first level has a slot for each tick, and a slot of each
further level stands for a full turn of the level below. Setting, moving and cancelling a timer touch one slot, however
many timers there are. A distant timer is moved down a level at most LEVELS - 1 times before it is due.

Rules:
- A timer never fires early, and at most a tick late while the event loop is free. A tick is a millisecond, as in Kafka:
  some programs sleep for exactly the length of a session and then expect it to have expired.
- Timers use the steady clock, so no session expires because the wall clock jumps.
- Without timers nothing runs, and the loop is not woken before the next timer may be due.
- When many timers are due at once, they are fired in batches, and when many timers of one slot are moved down a level,
  they are moved in batches, so that other work of the event loop runs in between.
"""

import asyncio
import math
import time
from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Final, Generic, TypeAlias, TypeVar

from kaspar.base.clock import Clock

TICK_MS: Final = 1
SLOT_BITS: Final = 6
SLOTS: Final = 1 << SLOT_BITS
LEVELS: Final = 6
FIRE_AT_MOST: Final = 64
"""The event loop fires this many timers before it does other work, if firing them took FIRE_FOR_S."""
FIRE_FOR_S: Final = 0.001
"""See FIRE_AT_MOST."""
MOVE_AT_MOST: Final = 1000
"""The event loop moves this many timers down a level before it does other work."""

_MASK: Final = SLOTS - 1
_HORIZON: Final = 1 << SLOT_BITS * LEVELS
"""In ticks: two years. Timers beyond it wait in the last slot, and are placed again when that slot is reached."""

K = TypeVar("K", bound=Hashable)
Owner: TypeAlias = Callable[[Hashable], None]


class TimerWheel(Generic[K]):
    """Keys and the times at which they are due. Has no clock: it is given the time in milliseconds, which never goes
    back.
    """

    __slots__ = ("_due", "_levels", "_reached", "_slot_of", "_tick")

    def __init__(self, now_ms: int = 0) -> None:
        self._tick = now_ms // TICK_MS
        """Timers up to this tick are in `_due`, in a slot of `_reached`, or were returned by `due`."""
        self._levels: list[list[dict[K, int]]] = [[{} for _ in range(SLOTS)] for _ in range(LEVELS)]
        self._due: dict[K, int] = {}
        self._reached: list[dict[K, int]] = []
        """The slots that are reached at this tick and are not empty yet, with the highest level last."""
        self._slot_of: dict[K, dict[K, int]] = {}

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, key: object) -> bool:
        return key in self._slot_of

    def set(self, key: K, at_ms: int) -> None:
        """Let `key` be due at `at_ms`, in place of any earlier time that was set for it."""
        slot = self._slot_of.get(key)
        if slot is not None:
            del slot[key]
        self._place(key, -(-at_ms // TICK_MS))

    def cancel(self, key: K) -> bool:
        """Remove a timer. Returns whether it existed. One that is due exists until `due` has returned it."""
        slot = self._slot_of.pop(key, None)
        if slot is None:
            return False
        del slot[key]
        return True

    def due(self, now_ms: int, at_most: int | None = None) -> list[K]:
        """Remove and return the keys that are due, in order of time. With `at_most`, later calls return the rest. A
        call may return nothing although keys are due, if many timers have to be moved first: see `next_ms`.
        """
        self._advance(now_ms // TICK_MS, None if at_most is None else MOVE_AT_MOST)
        keys = list(islice(self._due, at_most))
        for key in keys:
            del self._due[key]
            del self._slot_of[key]
        return keys

    def next_ms(self) -> int | None:
        """The time at which to call `due` again: no timer is due before it. None if there is no timer."""
        if not self._slot_of:
            return None
        if self._due or self._reached:
            return self._tick * TICK_MS
        return self._next_stop() * TICK_MS

    def _place(self, key: K, tick: int) -> None:
        distance = tick - self._tick
        if distance <= 0:
            slot = self._due
        elif distance < SLOTS:
            slot = self._levels[0][tick & _MASK]
        elif distance < _HORIZON:
            level = (distance.bit_length() - 1) // SLOT_BITS
            slot = self._levels[level][tick >> SLOT_BITS * level & _MASK]
        else:
            slot = self._levels[-1][(self._tick + _HORIZON - 1) >> SLOT_BITS * (LEVELS - 1) & _MASK]
        slot[key] = tick
        self._slot_of[key] = slot

    def _advance(self, tick: int, most_moved: int | None) -> None:
        moved = 0
        while True:
            while self._reached:
                slot = self._reached[-1]
                moved += self._empty(slot, None if most_moved is None else most_moved - moved)
                if slot:
                    return
                self._reached.pop()
            if self._tick >= tick:
                return
            if len(self._slot_of) == len(self._due) or (stop := self._next_stop()) > tick:
                self._tick = tick
                return
            self._tick = stop
            self._reached = [
                self._levels[level][stop >> SLOT_BITS * level & _MASK]
                for level in range(LEVELS)
                if stop & ((1 << SLOT_BITS * level) - 1) == 0
            ]

    def _empty(self, slot: dict[K, int], most: int | None) -> int:
        """Place the timers of a reached slot again, a level below or in `_due`. Returns how many were placed."""
        timers = list(islice(slot.items(), most))
        if len(timers) == len(slot):
            slot.clear()
        else:
            for key, _ in timers:
                del slot[key]
        for key, tick in timers:
            self._place(key, tick)
        return len(timers)

    def _next_stop(self) -> int:
        """The next tick at which a slot that is not empty is reached. There must be one."""
        return min(self._stops())

    def _stops(self) -> Iterator[int]:
        for level, slots in enumerate(self._levels):
            shift = SLOT_BITS * level
            here = self._tick >> shift
            for ahead in range(1, SLOTS + 1):
                if slots[here + ahead & _MASK]:
                    yield here + ahead << shift
                    break


class Timers:
    """The timer wheel on an event loop. A timer has a key and an owner: the function that is called with the key."""

    def __init__(self, clock: Clock, *, on_bug: Callable[[Exception], None]) -> None:
        self._clock = clock
        self._on_bug = on_bug
        self._wheel: TimerWheel[tuple[Owner, Hashable]] = TimerWheel(self.now_ms())
        self._handle: asyncio.Handle | None = None
        self._wake_at_ms = 0
        self._stopped = False

    def now_ms(self) -> int:
        """The steady clock, in milliseconds."""
        return int(self._clock.monotonic() * 1000)

    def __len__(self) -> int:
        return len(self._wheel)

    def set(self, owner: Owner, key: Hashable, at_ms: int) -> None:
        """Call `owner(key)` at `at_ms` of the steady clock. Each owner has its own keys."""
        self._wheel.set((owner, key), at_ms)
        if self._handle is None or at_ms < self._wake_at_ms:
            self._wake_at(at_ms)

    def cancel(self, owner: Owner, key: Hashable) -> None:
        self._wheel.cancel((owner, key))

    def stop(self) -> None:
        """Fire no timer from now on."""
        self._stopped = True
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def fire(self) -> None:
        """Fire the timers that are due, and schedule the next call."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        started = time.perf_counter()
        while due := self._wheel.due(self.now_ms(), FIRE_AT_MOST):
            for owner, key in due:
                try:
                    owner(key)
                except Exception as problem:  # the edge: one timer's bug must not keep others from firing
                    self._on_bug(problem)
            if time.perf_counter() - started > FIRE_FOR_S:
                break
        next_ms = self._wheel.next_ms()
        if next_ms is not None:
            self._wake_at(next_ms)

    def _wake_at(self, at_ms: int) -> None:
        if self._stopped:
            return
        if self._handle is not None:
            self._handle.cancel()
        loop = asyncio.get_running_loop()
        self._wake_at_ms = at_ms
        at_ms = -(-at_ms // TICK_MS) * TICK_MS  # the wheel returns the timer at this tick, not before
        delay_ms = math.ceil(at_ms - self._clock.monotonic() * 1000)  # uvloop rounds, and might call this too early
        self._handle = loop.call_later(delay_ms / 1000, self.fire) if delay_ms > 0 else loop.call_soon(self.fire)
