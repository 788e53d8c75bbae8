"""Counters and histograms that cost next to nothing to write.

A gauge needs no class: it is an attribute of some other object that is read when the metrics page is rendered
(`base/exposition.py`).

Rules:
- Each object is written by one thread (the event loop's) and read by any other. There are no locks: a reader may miss
  the last few writes, but never sees a total decrease.
- A histogram's percentiles cover the last one to two minutes: `rotate()`, called once a minute by the writing thread,
  starts a new slice and drops the one before the last. Count and sum are totals, as Prometheus expects.
- Buckets are log-linear: sixteen for each doubling, so that a percentile is at most 3 % off, at every scale.
"""

from collections.abc import Sequence
from typing import Final

from kaspar.base.errors import invariant

WINDOW_SECONDS: Final = 60.0
"""How often histograms are rotated."""

PERCENTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
"""The percentiles of Kafka's histograms."""

_SUB_BUCKET_BITS: Final = 4
_SUB_BUCKETS: Final = 1 << _SUB_BUCKET_BITS
_MAX_BITS: Final = 36  # nineteen hours in microseconds, 64 GiB in bytes; larger values count as this
_MAX_VALUE: Final = (1 << _MAX_BITS) - 1
BUCKET_COUNT: Final = (_MAX_BITS - _SUB_BUCKET_BITS + 1) * _SUB_BUCKETS


def bucket_of(value: int) -> int:
    """The bucket of a value: exact below 32, then sixteen buckets for each power of two."""
    if value <= 0:
        return 0
    if value > _MAX_VALUE:
        return BUCKET_COUNT - 1
    shift = value.bit_length() - _SUB_BUCKET_BITS - 1
    return (shift << _SUB_BUCKET_BITS) + (value >> shift) if shift > 0 else value


def bucket_bounds(bucket: int) -> tuple[int, int]:
    """The smallest and the largest value of a bucket."""
    if bucket < 2 * _SUB_BUCKETS:
        return bucket, bucket
    shift = (bucket >> _SUB_BUCKET_BITS) - 1
    low = (bucket - (shift << _SUB_BUCKET_BITS)) << shift
    return low, low + (1 << shift) - 1


# A table lookup is faster than computing the bucket. It covers 16 ms and 16 KiB, which few requests exceed.
DIRECT_VALUES: Final = 1 << 14
DIRECT_BUCKETS: Final = [
    bucket
    for bucket in range(bucket_of(DIRECT_VALUES))
    for _ in range(bucket_bounds(bucket)[0], bucket_bounds(bucket)[1] + 1)
]

_NOTHING: Final = (0,) * BUCKET_COUNT

_SLICE_SECONDS: Final = 5
_SLICES: Final = 12


class Counter:
    """A number that only grows: `counter.value += 1`. Prometheus computes the rate."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class RecentRate:
    """Events per second over the last minute. Times are seconds of the steady clock."""

    __slots__ = ("_begun", "_count", "_slices", "_slot")

    def __init__(self, now: float) -> None:
        self._begun = now
        self._slot = int(now // _SLICE_SECONDS)
        self._count = 0
        self._slices: tuple[tuple[int, int], ...] = ()

    def mark(self, now: float) -> None:
        slot = int(now // _SLICE_SECONDS)
        if slot != self._slot:
            recent = (each for each in self._slices if each[0] > slot - _SLICES)
            self._slices = (*recent, (self._slot, self._count))
            self._slot, self._count = slot, 0
        self._count += 1

    def per_second(self, now: float) -> float:
        oldest = int(now // _SLICE_SECONDS) - _SLICES + 1
        slices = (*self._slices, (self._slot, self._count))
        begun = max(self._begun, oldest * _SLICE_SECONDS)
        return sum(count for slot, count in slices if slot >= oldest) / max(now - begun, 1.0)


class Distribution:
    """A snapshot of a histogram. Values are in the histogram's own unit: seconds, or bytes."""

    __slots__ = ("_buckets", "_scale", "count", "sum", "window_count")

    def __init__(self, buckets: list[int], *, count: int, total: float, scale: float) -> None:
        self._buckets = buckets
        self._scale = scale
        self.count = count
        self.sum = total
        self.window_count = sum(buckets)

    def __add__(self, other: "Distribution") -> "Distribution":
        invariant(self._scale == other._scale, "distributions of different units cannot be added")
        return Distribution(
            [mine + others for mine, others in zip(self._buckets, other._buckets, strict=True)],
            count=self.count + other.count,
            total=self.sum + other.sum,
            scale=self._scale,
        )

    def with_zeros(self, *, count: int, window_count: int) -> "Distribution":
        """A copy with this many additional zeros, of which `window_count` are in the window."""
        buckets = self._buckets.copy()
        buckets[0] += window_count
        return Distribution(buckets, count=self.count + count, total=self.sum, scale=self._scale)

    def percentiles(self) -> list[float]:
        """The values at each of PERCENTILES over the window; zeros if nothing was recorded."""
        if self.window_count == self._buckets[0]:  # no values, or only zeros
            return [0.0] * len(PERCENTILES)
        results: list[float] = []
        seen = 0
        ranks = iter([fraction * self.window_count for fraction in PERCENTILES])
        rank = next(ranks)
        for bucket, count in enumerate(self._buckets):
            if not count:
                continue
            seen += count
            while seen >= rank:
                low, high = bucket_bounds(bucket)
                results.append((low + high) / 2 / self._scale)
                following = next(ranks, None)
                if following is None:
                    return results
                rank = following
        raise AssertionError("the buckets have fewer values than their count")

    def maximum(self) -> float:
        """The largest value of the window, rounded up to its bucket's end (at most 6 % more)."""
        for bucket in range(BUCKET_COUNT - 1, 0, -1):
            if self._buckets[bucket]:
                return bucket_bounds(bucket)[1] / self._scale
        return 0.0

    def mean(self) -> float:
        """The mean of the window, from its buckets."""
        if not self.window_count:
            return 0.0
        total = sum(count * sum(bucket_bounds(bucket)) for bucket, count in enumerate(self._buckets) if count)
        return total / 2 / self.window_count / self._scale


class Histogram:
    """The distribution of values over the last one to two minutes; by default of seconds, kept as microseconds.

    `buckets` and `sum` are public so that the hottest callers can update them in place and save a call.
    """

    __slots__ = ("_scale", "_windows", "buckets", "sum")

    def __init__(self, *, scale: float = 1e6) -> None:
        self._scale = scale
        self.buckets = [0] * BUCKET_COUNT
        self.sum = 0.0
        # One tuple, so that a rotation is atomic for readers in other threads: the previous slice, the current one,
        # and how many values are in neither.
        self._windows: tuple[Sequence[int], list[int], int] = (_NOTHING, self.buckets, 0)

    def record(self, value: float) -> None:
        units = int(value * self._scale)
        self.buckets[DIRECT_BUCKETS[units] if 0 <= units < DIRECT_VALUES else bucket_of(units)] += 1
        self.sum += value

    def rotate(self) -> None:
        """Start a new slice of the window. Called by the thread that records."""
        previous, current, forgotten = self._windows
        self.buckets = [0] * BUCKET_COUNT
        self._windows = (current, self.buckets, forgotten + sum(previous))

    def distribution(self) -> Distribution:
        """A snapshot. Thread-safe."""
        previous, current, forgotten = self._windows
        total = self.sum
        merged = [before + now for before, now in zip(previous, current, strict=True)]
        return Distribution(merged, count=forgotten + sum(merged), total=total, scale=self._scale)
