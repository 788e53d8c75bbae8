"""The canary's report, as plain values."""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Self


class CanaryStatus(IntEnum):
    """A greater value is worse. The status of the whole canary is that of its worst partition."""

    STARTING = 0
    """Nothing has been acknowledged yet, and nothing has been failing for long."""
    OK = 1
    LATE = 2
    """Some records took longer than `canary.late.ms` within the window."""
    LOSING = 3
    """Acknowledged records were lost, duplicated or out of order within the window."""
    UNAVAILABLE = 4
    """For longer than `canary.late.ms`, no record was acknowledged, or acknowledged records could not be read."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Records since the start of the canary."""

    produced: int = 0
    """Acknowledged."""
    failed: int = 0
    """Not acknowledged in time, or rejected. They may be in the log nevertheless."""
    consumed: int = 0
    lost: int = 0
    """Acknowledged, but missing from the log, although retention has not deleted them."""
    doubled: int = 0
    late: int = 0
    """Not read within `canary.late.ms`; some may have been read later."""
    out_of_order: int = 0
    expired: int = 0
    """Acknowledged, and deleted unread: by retention, or with the topic."""

    def __add__(self, other: Self) -> "Counts":
        return Counts(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(Counts)})


@dataclass(frozen=True, slots=True)
class Latencies:
    """The latencies of records in the window, in milliseconds."""

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
    """The measurements in the window. An availability is None if nothing was attempted."""

    produce_availability: float | None
    consume_availability: float | None
    produce_latencies: Latencies | None
    end_to_end_latencies: Latencies | None


@dataclass(frozen=True, slots=True)
class PartitionReport:
    partition: int
    leader: int
    """-1 while there is no leader."""
    status: CanaryStatus
    counts: Counts
    measured: Measured


@dataclass(frozen=True, slots=True)
class CanaryReport:
    at_ms: int
    """Wall-clock time."""
    topic: str
    window_ms: int
    status: CanaryStatus
    problem: str
    """The most recent problem that still exists; empty if there is none."""
    counts: Counts
    measured: Measured
    partitions: tuple[PartitionReport, ...]
    topics_created: int
    """How often the canary has created its topic. More than once means that it was deleted."""


def _percentile(ordered: list[float], part: float) -> float:
    """The smallest value that is not exceeded by at least this part of all values."""
    rank = -(-len(ordered) * part // 1)
    return ordered[max(int(rank), 1) - 1]
