"""Time windows: the keys of windowed results, and the definitions by which records are assigned to windows.

Names and rules are those of Kafka Streams (TimeWindows, SlidingWindows, SessionWindows, JoinWindows). A duration is a
number of milliseconds or a timedelta. A definition is immutable: `grace` and `advance_by` return a new one.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Generic, NamedTuple, Self, TypeVar

from kaspar.streams.errors import TopologyError

K = TypeVar("K")
Duration = int | timedelta


class Window(NamedTuple):
    """From `start` to `end` in milliseconds. The end is exclusive, except for sessions and sliding windows."""

    start: int
    end: int


class Windowed(NamedTuple, Generic[K]):
    """The key of a windowed result."""

    key: K
    window: Window


class EmitStrategy(enum.Enum):
    """When the results of a windowed aggregate are emitted (KIP-825)."""

    ON_WINDOW_UPDATE = "on-window-update"
    """Emit every update: a window has several results, the last of which is final."""
    ON_WINDOW_CLOSE = "on-window-close"
    """Emit one result for each window, when its grace period is over."""


def milliseconds(duration: Duration, name: str) -> int:
    """A duration in milliseconds. Raises TopologyError if it is negative, or neither a timedelta nor an integer."""
    duration_ms = _signed_milliseconds(duration, name)
    if duration_ms < 0:
        raise TopologyError(f"{name} must not be negative, but is {duration_ms} ms.")
    return duration_ms


def _signed_milliseconds(duration: Duration, name: str) -> int:
    if isinstance(duration, timedelta):
        duration = duration // timedelta(milliseconds=1)
    if isinstance(duration, bool) or not isinstance(duration, int):
        raise TopologyError(f"{name} must be a timedelta or a number of milliseconds, not {duration!r}.")
    return duration


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows of a fixed size. They are tumbling, or hopping if they advance by less than their size."""

    size_ms: int
    advance_ms: int
    grace_ms: int = 0

    @classmethod
    def of_size(cls, size: Duration) -> Self:
        """Tumbling windows without grace (Kafka's ofSizeWithNoGrace)."""
        size_ms = milliseconds(size, "The size of a window")
        if not size_ms:
            raise TopologyError("The size of a window must be larger than zero.")
        return cls(size_ms, size_ms)

    def advance_by(self, advance: Duration) -> Self:
        advance_ms = milliseconds(advance, "The advance of a window")
        if not 0 < advance_ms <= self.size_ms:
            raise TopologyError(
                f"A window of {self.size_ms} ms must advance by more than zero and at most its size, not by "
                f"{advance_ms} ms: otherwise some records would belong to no window."
            )
        return replace(self, advance_ms=advance_ms)

    def grace(self, grace: Duration) -> Self:
        """Set how long after its end, in stream time, a window still accepts records."""
        return replace(self, grace_ms=milliseconds(grace, "The grace period"))

    def windows_for(self, timestamp: int) -> Iterator[Window]:
        """All windows that contain the timestamp, in ascending order."""
        start = max(0, timestamp - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        while start <= timestamp:
            yield Window(start, start + self.size_ms)
            start += self.advance_ms

    @property
    def retention_ms(self) -> int:
        return self.size_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """A window for every set of records whose timestamps differ by at most `difference_ms`. Both ends are inclusive."""

    difference_ms: int
    grace_ms: int = 0

    @classmethod
    def of_time_difference(cls, difference: Duration) -> Self:
        difference_ms = milliseconds(difference, "The time difference")
        if not difference_ms:
            raise TopologyError("The time difference of sliding windows must be larger than zero.")
        return cls(difference_ms)

    def grace(self, grace: Duration) -> Self:
        return replace(self, grace_ms=milliseconds(grace, "The grace period"))

    @property
    def retention_ms(self) -> int:
        """Twice the difference: a late record needs the windows on both of its sides."""
        return 2 * self.difference_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Sessions: the records of a key belong to the same session until none arrives for the inactivity gap."""

    gap_ms: int
    grace_ms: int = 0

    @classmethod
    def of_inactivity_gap(cls, gap: Duration) -> Self:
        gap_ms = milliseconds(gap, "The inactivity gap")
        if not gap_ms:
            raise TopologyError("The inactivity gap of sessions must be larger than zero.")
        return cls(gap_ms)

    def grace(self, grace: Duration) -> Self:
        return replace(self, grace_ms=milliseconds(grace, "The grace period"))

    @property
    def retention_ms(self) -> int:
        return self.gap_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class JoinWindows:
    """The maximum distance between the timestamps of two joined records: the other record is at most `before_ms`
    earlier and at most `after_ms` later than this side's. One of the two may be negative: with before(-5), the other
    record is at least 5 ms later."""

    before_ms: int
    after_ms: int
    grace_ms: int = 0

    @classmethod
    def of_time_difference(cls, difference: Duration) -> Self:
        difference_ms = milliseconds(difference, "The time difference")
        return cls(difference_ms, difference_ms)

    def before(self, before: Duration) -> "JoinWindows":
        return self._not_empty(replace(self, before_ms=_signed_milliseconds(before, "The time before")))

    def after(self, after: Duration) -> "JoinWindows":
        return self._not_empty(replace(self, after_ms=_signed_milliseconds(after, "The time after")))

    def grace(self, grace: Duration) -> Self:
        return replace(self, grace_ms=milliseconds(grace, "The grace period"))

    @staticmethod
    def _not_empty(windows: "JoinWindows") -> "JoinWindows":
        if windows.size_ms < 0:
            raise TopologyError(
                f"Windows from {windows.before_ms} ms before to {windows.after_ms} ms after a record contain nothing."
            )
        return windows

    @property
    def size_ms(self) -> int:
        return self.before_ms + self.after_ms

    @property
    def retention_ms(self) -> int:
        return self.size_ms + self.grace_ms
