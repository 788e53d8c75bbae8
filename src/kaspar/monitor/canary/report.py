"""What the canary reports, as values."""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Self


class CanaryStatus(IntEnum):
    """The worse, the greater. Of the whole canary it is that of its worst partition."""

    STARTING = 0
    """Nothing was acknowledged yet, and nothing has failed for long."""
    OK = 1
    LATE = 2
    """Records took longer than `canary.late.ms` within the window."""
    LOSING = 3
    """Acknowledged records were lost, doubled or out of order within the window."""
    UNAVAILABLE = 4
    """For longer than `canary.late.ms` no record is acknowledged, or acknowledged ones cannot be read."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Records since the start of the canary."""

    produced: int = 0
    """Acknowledged."""
    failed: int = 0
    """Not acknowledged in time, or refused. They may be in the log nevertheless."""
    consumed: int = 0
    lost: int = 0
    """Acknowledged, and no longer in the log, though its retention has not deleted them."""
    doubled: int = 0
    late: int = 0
    """Read after `canary.late.ms`, or not yet."""
    out_of_order: int = 0
    expired: int = 0
    """Acknowledged, and deleted unread: by retention, or with the topic."""

    def __add__(self, other: Self) -> "Counts":
        return Counts(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(Counts)})


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of the records of the window, in milliseconds."""

    mean: float
    p50: float
    p95: float
    p99: float
    p999: float
    maximum: float

    @classmethod
    def of(cls, values: list[float]) -> "Latencies | None":
        if not values:
            return None
        ordered = sorted(values)
        p50, p95, p99, p999 = (_percentile(ordered, part) for part in (0.5, 0.95, 0.99, 0.999))
        return cls(sum(ordered) / len(ordered), p50, p95, p99, p999, ordered[-1])


@dataclass(frozen=True, slots=True)
class Measured:
    """What the window has. An availability is None until something was tried in it."""

    produce_availability: float | None
    consume_availability: float | None
    produce_latencies: Latencies | None
    end_to_end_latencies: Latencies | None


@dataclass(frozen=True, slots=True)
class PartitionReport:
    partition: int
    leader: int
    """-1 while there is none."""
    status: CanaryStatus
    counts: Counts
    measured: Measured


@dataclass(frozen=True, slots=True)
class CanaryReport:
    at_ms: int
    """By the wall clock."""
    topic: str
    window_ms: int
    status: CanaryStatus
    problem: str
    """The last thing that went wrong and has not been put right; empty if there is none."""
    counts: Counts
    measured: Measured
    partitions: tuple[PartitionReport, ...]
    topics_created: int
    """How often the canary has created its topic: more than once means that somebody deletes it."""


def _percentile(ordered: list[float], part: float) -> float:
    """The smallest value that at least this part of all values does not exceed."""
    rank = -(-len(ordered) * part // 1)
    return ordered[max(int(rank), 1) - 1]
