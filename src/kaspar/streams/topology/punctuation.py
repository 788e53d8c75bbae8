"""Functions that a processor schedules by stream time or wall-clock time (ProcessorContext.schedule).

The next time of a schedule is kept between micro-batches, in the task's clocks: a processor schedules again whenever it
is initialised, and the schedule continues. As in Kafka's PunctuationSchedule, stream time is aligned to multiples of
the interval, and a schedule that is several intervals late is called once. If a function raises, the program stops or
continues with the next call, according to processing.exception.handler (KIP-1033).
"""

from collections.abc import Callable
from dataclasses import dataclass

from kaspar.streams.errors import NEVER_SKIPPED, ProcessingError, described
from kaspar.streams.topology.context import UNKNOWN_TIME, Clock, OnError, PunctuationType, TaskContext
from kaspar.streams.topology.dead_letters import dead_letter

NEVER = 1 << 62


@dataclass(slots=True, eq=False)
class Schedule:
    """A scheduled function, as returned by schedule()."""

    interval_ms: int
    callback: Callable[[int], None]
    next_time: Clock
    """The time of the next call, kept with the task."""
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def was_called(self, now: int) -> None:
        due = self.next_time.now + self.interval_ms
        if due <= now:  # some calls were missed: continue with the next future time
            due += (now - due) // self.interval_ms * self.interval_ms + self.interval_ms
        self.next_time.now = due


class Punctuations:
    def __init__(self, context: TaskContext) -> None:
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
        self._call_due(self._by_stream_time, now)
        self.next_stream_time = min((each.next_time.now for each in self._by_stream_time), default=NEVER)

    def wall_clock_advanced(self, now: int) -> None:
        self._call_due(self._by_wall_clock, now)

    def _call_due(self, schedules: list[Schedule], now: int) -> None:
        """Call the schedules that are due, in the order of their times (PunctuationQueue)."""
        for schedule in sorted(schedules, key=lambda each: each.next_time.now):
            if not schedule.is_cancelled and schedule.next_time.now <= now:
                self._call(schedule, now)
                schedule.was_called(now)
        schedules[:] = [each for each in schedules if not each.is_cancelled]

    def _call(self, schedule: Schedule, now: int) -> None:
        """Call a function with the context of no record."""
        context = self._context
        place, raw = (
            (context.topic, context.partition, context.offset, context.headers),
            (context.raw_key, context.raw_value),
        )
        context.topic, context.partition, context.offset, context.headers = "", -1, -1, None
        context.raw_key = context.raw_value = None
        try:
            schedule.callback(now)
        except NEVER_SKIPPED:
            raise
        except Exception as problem:
            if context.settings.on_processing_error is OnError.FAIL:
                raise ProcessingError(
                    f"A punctuation of the program raised {described(problem)}. To go on after such errors set "
                    "processing.exception.handler = continue."
                ) from problem
            context.drop("processing")
            dead_letter(context, None, None, now, problem)
        finally:
            context.topic, context.partition, context.offset, context.headers = place
            context.raw_key, context.raw_value = raw
