"""The data kept between rounds: the last commits of each group and partition, and the last ends of each log.

There may be tens of thousands of both, so they are kept small.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kaspar.client.admin.group_offsets import GroupOffset
from kaspar.monitor.views import Commit

_MAX_TIMES: Final = 64


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of a log in one round."""

    high_watermark: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class WindowSize:
    intervals: int
    """The number of commits that are kept."""
    min_distance_ms: int
    """A commit replaces the previous one if it follows within this time."""
    longest_gap_ms: int
    """A window is restarted after a longer gap between reads: while brokers are down, consumers cannot commit."""


class CommitWindow:
    """The commits of one partition by one group, oldest first."""

    __slots__ = ("_commits", "_last", "_seen_at_ms", "_size", "changed_at_ms")

    def __init__(self, size: WindowSize) -> None:
        self._size = size
        self._commits: list[Commit] = []
        self._last: GroupOffset | None = None
        self._seen_at_ms = 0
        self.changed_at_ms = 0

    @property
    def commits(self) -> Sequence[Commit]:
        return self._commits

    def observe(self, commit: GroupOffset, ends: "EndWindow", now_ms: int) -> None:
        """Apply what a round has read. An equal commit changes nothing; other metadata makes a commit different."""
        if now_ms - self._seen_at_ms > self._size.longest_gap_ms:
            self._commits.clear()
        self._seen_at_ms = now_ms
        if commit == self._last and self._commits:
            return
        if commit != self._last:
            self._last = commit
            self.changed_at_ms = now_ms
        at_ms = now_ms
        if self._commits and now_ms - self._commits[-1].at_ms < self._size.min_distance_ms:
            # It keeps the time of the replaced commit; otherwise frequent commits would always replace the last one.
            at_ms = self._commits.pop().at_ms
        lag, _ = lags(commit.offset, ends.latest)
        self._commits.append(
            Commit(commit.offset, at_ms, lag, unread(commit.offset, ends.latest), ends.has_kept_up(commit.offset))
        )
        if len(self._commits) > self._size.intervals:
            del self._commits[0]


def lags(offset: int, ends: Ends) -> tuple[int, int]:
    """The lags relative to the high watermark and the last stable offset. A commit newer than the ends has no lag."""
    lag = max(ends.high_watermark - offset, 0)
    if ends.last_stable_offset == ends.high_watermark:
        return lag, lag  # the same object, to save memory
    return lag, max(ends.last_stable_offset - offset, 0)


class LogEnd(Protocol):
    @property
    def high_watermark(self) -> int: ...
    @property
    def last_stable_offset(self) -> int: ...


def reads_uncommitted(offset: int, ends: LogEnd) -> bool:
    """Whether a group that has committed this offset has read beyond the last stable offset. If not, the group's
    isolation level is unknown, and it is assumed to read only committed records."""
    return offset > ends.last_stable_offset


def unread(offset: int, ends: LogEnd) -> int:
    """The maximum number of records that the group has not read yet."""
    end = ends.high_watermark if reads_uncommitted(offset, ends) else ends.last_stable_offset
    return max(end - offset, 0)


class EndWindow:
    """The ends of one log in recent rounds, and the times at which earlier ends were seen."""

    __slots__ = ("_intervals", "_seen_at_ms", "_seen_ends", "latest", "recent_high", "recent_stable")

    def __init__(self, intervals: int) -> None:
        self._intervals = intervals
        self.latest = Ends(0, 0)
        self.recent_high = array("q")
        self.recent_stable = array("q")
        self._seen_at_ms = array("q")
        self._seen_ends = array("q")

    def recent(self, offset: int) -> Sequence[int]:
        """In recent rounds, the ends of what a group with this committed offset can read."""
        return self.recent_high if reads_uncommitted(offset, self.latest) else self.recent_stable

    def has_kept_up(self, offset: int) -> bool:
        """Whether the offset has reached the end of the previous round."""
        recent = self.recent(offset)
        return len(recent) > 1 and offset >= recent[-2]

    def observe(self, ends: Ends, now_ms: int) -> bool:
        """Apply a round. Returns whether the log has been replaced."""
        has_begun_anew = bool(self._seen_ends) and ends.high_watermark < self._seen_ends[-1]
        if has_begun_anew:
            # The topic was recreated, or records were lost in an unclean election, so earlier times are invalid.
            for seen in (self.recent_high, self.recent_stable, self._seen_at_ms, self._seen_ends):
                del seen[:]
        self.latest = ends
        self.recent_high.append(ends.high_watermark)
        self.recent_stable.append(ends.last_stable_offset)
        if len(self.recent_stable) > self._intervals:
            del self.recent_high[0], self.recent_stable[0]
        if len(self._seen_ends) >= 2 and self._seen_ends[-1] == self._seen_ends[-2] == ends.high_watermark:
            self._seen_at_ms[-1] = now_ms  # an idle log needs only its first and last time
            return has_begun_anew
        self._seen_at_ms.append(now_ms)
        self._seen_ends.append(ends.high_watermark)
        if len(self._seen_ends) > _MAX_TIMES:
            self._thin_out()
        return has_begun_anew

    def written_at_ms(self, offset: int) -> float | None:
        """The time at which the record was written, interpolated between two rounds; None if before the first round."""
        for position, end in enumerate(self._seen_ends):
            if end > offset:
                if position == 0:
                    return None
                before_ms, after_ms = self._seen_at_ms[position - 1], self._seen_at_ms[position]
                before = self._seen_ends[position - 1]
                return before_ms + (after_ms - before_ms) * (offset + 1 - before) / (end - before)
        return None

    def _thin_out(self) -> None:
        """Remove every second time of the older half."""
        middle = len(self._seen_ends) // 2
        for times in (self._seen_at_ms, self._seen_ends):
            times[:middle] = times[0:middle:2]
