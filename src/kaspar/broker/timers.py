"""Timers by the ten thousand: one wheel for all coordinators, and one timer of the event loop that drives it.

Groups have a session for each member and transactions a timeout each; a task or a loop timer for each of them would
cost more than the work they wait for. The wheel is hierarchical: the first level has a slot for each tick, a slot of
the next stands for a whole turn of the level below. Setting, moving and cancelling a timer touch one slot, however many
timers there are; a timer far away is moved down a level at most LEVELS - 1 times before it is due.

Rules:
- A timer is never early, and late by a tick at most, as long as the event loop is free. A tick is a millisecond, as in
  Kafka: there are programs that sleep for just as long as a session lasts, and then expect it to be over.
- Time is the steady clock's: a wall clock that jumps ends nobody's session.
- Without timers nothing runs, and nothing wakes the loop before the next timer may be due.
- Many timers due at once are fired in pieces, and so are many of one slot moved down a level, so that whatever else the
  loop has to do comes between them.
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
"""How many timers are fired before others get their turn of the loop, if that took ..."""
FIRE_FOR_S: Final = 0.001
"""... this long."""
MOVE_AT_MOST: Final = 1000
"""How many timers are moved down a level before others get their turn."""

_MASK: Final = SLOTS - 1
_HORIZON: Final = 1 << SLOT_BITS * LEVELS
"""In ticks: two years. What lies beyond waits in the last slot and is placed again when that comes down."""

K = TypeVar("K", bound=Hashable)
Owner: TypeAlias = Callable[[Hashable], None]


class TimerWheel(Generic[K]):
    """Which key is due when. Has no clock: it is given the time in milliseconds, which never goes back."""

    __slots__ = ("_due", "_levels", "_reached", "_slot_of", "_tick")

    def __init__(self, now_ms: int = 0) -> None:
        self._tick = now_ms // TICK_MS
        """Everything up to this tick is in `_due`, in a slot of `_reached`, or was handed out."""
        self._levels: list[list[dict[K, int]]] = [[{} for _ in range(SLOTS)] for _ in range(LEVELS)]
        self._due: dict[K, int] = {}
        self._reached: list[dict[K, int]] = []
        """Slots whose time has come at this tick and that are not empty yet, the highest level last."""
        self._slot_of: dict[K, dict[K, int]] = {}

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, key: object) -> bool:
        return key in self._slot_of

    def set(self, key: K, at_ms: int) -> None:
        """Let `key` be due at `at_ms`; what was set for it before no longer counts."""
        slot = self._slot_of.get(key)
        if slot is not None:
            del slot[key]
        self._place(key, -(-at_ms // TICK_MS))

    def cancel(self, key: K) -> bool:
        """Whether there was such a timer. One that is due and was not handed out yet is still there."""
        slot = self._slot_of.pop(key, None)
        if slot is None:
            return False
        del slot[key]
        return True

    def due(self, now_ms: int, at_most: int | None = None) -> list[K]:
        """Take out what is due, in order of time. With `at_most`, the rest is handed out by the next call, and that may
        be all of it where many timers have to be moved first: see `next_ms`.
        """
        self._advance(now_ms // TICK_MS, None if at_most is None else MOVE_AT_MOST)
        keys = list(islice(self._due, at_most))
        for key in keys:
            del self._due[key]
            del self._slot_of[key]
        return keys

    def next_ms(self) -> int | None:
        """When to look again: no timer is due before. None if there is no timer."""
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
        """Place again what is in a slot that is reached: a level further down, or with what is due. How many were."""
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
        """The next tick at which a slot that holds something is reached. There is such a slot."""
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
    """The wheel on an event loop. Every timer has a key, and a function that is called with it when it is due."""

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
        """Nothing fires from now on."""
        self._stopped = True
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def fire(self) -> None:
        """Fire what is due, and come back for the rest."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        started = time.perf_counter()
        while due := self._wheel.due(self.now_ms(), FIRE_AT_MOST):
            for owner, key in due:
                try:
                    owner(key)
                except Exception as problem:  # the edge: one timer's bug keeps no other from its turn
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
        at_ms = -(-at_ms // TICK_MS) * TICK_MS  # the wheel hands it out then, and not before
        delay_ms = math.ceil(at_ms - self._clock.monotonic() * 1000)  # uvloop rounds, and might wake us too early
        self._handle = loop.call_later(delay_ms / 1000, self.fire) if delay_ms > 0 else loop.call_soon(self.fire)
