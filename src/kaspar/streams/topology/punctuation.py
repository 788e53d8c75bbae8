"""Functions that a processor schedules, by stream time or by the wall clock (ProcessorContext.schedule).

A schedule is kept from one micro-batch to the next by its next time, in the task's clocks: a processor schedules again
whenever it is initialised, and continues where it was. As in Kafka's PunctuationSchedule, stream time is aligned to
multiples of the interval, and a schedule that is several intervals late is called once.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaspar.streams.topology.context import UNKNOWN_TIME, Clock

if TYPE_CHECKING:
    from kaspar.streams.topology.context import TaskContext

NEVER = 1 << 62


class PunctuationType(enum.Enum):
    STREAM_TIME = "stream-time"
    WALL_CLOCK_TIME = "wall-clock-time"


@dataclass(slots=True, eq=False)
class Schedule:
    """What schedule() returns."""

    interval_ms: int
    callback: Callable[[int], None]
    next_time: Clock
    """The time at which it is due, kept with the task."""
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def call(self, now: int) -> None:
        self.callback(now)
        due = self.next_time.now + self.interval_ms
        if due <= now:  # it missed some: go on with the next multiple that is still ahead
            due += (now - due) // self.interval_ms * self.interval_ms + self.interval_ms
        self.next_time.now = due


class Punctuations:
    def __init__(self, context: "TaskContext") -> None:
        self.next_stream_time = NEVER
        self._context = context
        self._by_stream_time: list[Schedule] = []
        self._by_wall_clock: list[Schedule] = []
        self._counts: dict[str, int] = {}

    def schedule(self, node: str, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]) -> Schedule:
        number = self._counts[node] = self._counts.get(node, -1) + 1
        next_time = self._context.clock(f"punctuation:{node}:{number}")
        schedule = Schedule(interval_ms, callback, next_time)
        if kind is PunctuationType.STREAM_TIME:
            if next_time.now == UNKNOWN_TIME:
                next_time.now = 0
            self._by_stream_time.append(schedule)
            self.next_stream_time = min(self.next_stream_time, next_time.now)
        else:
            if next_time.now == UNKNOWN_TIME:
                next_time.now = self._context.wall_clock_ms + interval_ms
            self._by_wall_clock.append(schedule)
        return schedule

    def stream_time_advanced(self, now: int) -> None:
        _call_due(self._by_stream_time, now)
        self.next_stream_time = min((each.next_time.now for each in self._by_stream_time), default=NEVER)

    def wall_clock_advanced(self, now: int) -> None:
        _call_due(self._by_wall_clock, now)


def _call_due(schedules: list[Schedule], now: int) -> None:
    """In the order in which they are due (PunctuationQueue)."""
    for schedule in sorted(schedules, key=lambda each: each.next_time.now):
        if not schedule.is_cancelled and schedule.next_time.now <= now:
            schedule.call(now)
    schedules[:] = [each for each in schedules if not each.is_cancelled]
