"""Burrow's rules (core/internal/evaluator/caching.go): the status of a partition from the commits of a window.

Pure: times are parameters. Some rules differ from Burrow's. Two of the differences are because commits are polled here
and not read from `__consumer_offsets`, which also shows repeated commits of the same offset:

- A commit is seen only if it changes. A partition without changes for long enough is STOP if nobody owns it, and STALL
  if a live member does, since that member makes no progress.
- An incomplete window spans at least the time of a complete one. Otherwise a partition that was seen once would be STOP
  at once.
- A consumer whose last commit was less than a round behind the end is not slow, even if its lag never decreased: under
  steady load it always has a few records to read, and about as many in each round.

A consumer that waits for the end of a transaction is not late: its lag is relative to the last stable offset. A
consumer that has committed a higher offset does not wait, so its lag is relative to the high watermark.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kaspar.monitor.views import Commit, Status


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The parameters of the rules."""

    intervals: int
    """The number of commits in a complete window."""
    window_ms: int
    """The minimum time span of a complete window, with a commit in every round."""
    minimum_complete: float


def partition_status(
    commits: Sequence[Commit],
    recent_ends: Iterable[int],
    unread: int,
    *,
    is_owned: bool,
    now_ms: int,
    thresholds: Thresholds,
) -> Status:
    """`commits` are those of the window, oldest first. `recent_ends` are the readable ends of the log in recent
    rounds."""
    if unread == 0 or not commits:
        return Status.OK
    complete = completeness(commits, thresholds.intervals)
    # This rule is first, since a partition without lag at some point may have stopped long ago.
    if has_stopped(commits, now_ms, 0 if complete == 1 else thresholds.window_ms) and not was_at_end(
        commits[-1].offset, recent_ends
    ):
        return Status.STALL if is_owned else Status.STOP
    if complete < thresholds.minimum_complete or had_no_lag(commits):
        return Status.OK
    if has_rewound(commits):
        return Status.REWIND
    if has_stalled(commits):
        return Status.STALL
    if lag_never_decreased(commits) and not commits[-1].kept_up:
        return Status.WARN
    return Status.OK


def completeness(commits: Sequence[Commit], intervals: int) -> float:
    return min(len(commits) / intervals, 1.0)


def had_no_lag(commits: Sequence[Commit]) -> bool:
    """Rule 1: a partition that had no lag at some point of the window is OK."""
    return any(commit.unread == 0 for commit in commits)


def has_rewound(commits: Sequence[Commit]) -> bool:
    """Rule 2: an offset is smaller than the previous one."""
    return any(later.offset < earlier.offset for earlier, later in pairwise(commits))


def has_stopped(commits: Sequence[Commit], now_ms: int, shortest_span_ms: int) -> bool:
    """Rule 3: more time has passed since the last commit than between the first and the last."""
    span_ms = max(commits[-1].at_ms - commits[0].at_ms, shortest_span_ms)
    return now_ms - commits[-1].at_ms > span_ms


def has_stalled(commits: Sequence[Commit]) -> bool:
    """Rule 4: all commits have the same offset, with lag."""
    return all(later.offset == earlier.offset for earlier, later in pairwise(commits))


def lag_never_decreased(commits: Sequence[Commit]) -> bool:
    """Rule 5: offsets advance, but not faster than records arrive."""
    return all(later.unread >= earlier.unread for earlier, later in pairwise(commits))


def was_at_end(offset: int, recent_ends: Iterable[int]) -> bool:
    """Whether the last commit was at the end of the log in a recent round, so that unread records have only just
    arrived."""
    return any(end <= offset for end in recent_ends)


def group_status(partitions: Iterable[Status]) -> Status:
    """The worst status of the partitions. Everything worse than WARN is ERR."""
    return min(max(partitions, default=Status.OK), Status.ERR)
