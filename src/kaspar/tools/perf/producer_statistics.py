"""Counts records and their latencies, and formats them like Kafka's command."""

from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from typing import Final

_MIB: Final = 1024.0 * 1024.0
_PERCENTILES: Final = (0.5, 0.95, 0.99, 0.999)


class Statistics:
    """Statistics of all records or, with `steady`, of those after the warm-up. As in Kafka, latencies are whole
    milliseconds.
    """

    def __init__(
        self, now_ms: float, reporting_interval_ms: int, say: Callable[[str], object], *, steady: bool
    ) -> None:
        self.silent = False
        """Whether no lines are printed for intervals."""
        self._interval_ms = reporting_interval_ms
        self._say = say
        self._steady = steady
        self._start_ms = now_ms
        self._latencies: Counter[int] = Counter()
        self._count = 0
        self._bytes = 0
        self._window_start_ms = now_ms
        self._window_count = 0
        self._window_bytes = 0
        self._window_latency_ms = 0
        self._window_max_ms = 0

    def record(self, count: int, size: int, latency_ms: int, now_ms: float) -> None:
        """Count records. `size` is their total size in bytes; `latency_ms` is the latency of each."""
        self._latencies[latency_ms] += count
        self._count += count
        self._bytes += size
        self._window_count += count
        self._window_bytes += size
        self._window_latency_ms += latency_ms * count
        self._window_max_ms = max(self._window_max_ms, latency_ms)
        if now_ms - self._window_start_ms >= self._interval_ms:
            if self._steady and self._count == self._window_count:
                self._say("In steady state.")
            if not self.silent:
                self._say(self._window_line(now_ms))
            self._begin_window(now_ms)

    def _begin_window(self, now_ms: float) -> None:
        self._window_start_ms = now_ms
        self._window_count = 0
        self._window_bytes = 0
        self._window_latency_ms = 0
        self._window_max_ms = 0

    def _window_line(self, now_ms: float) -> str:
        seconds = max(1.0, now_ms - self._window_start_ms) / 1000
        return (
            f"{self._window_count} records sent, {self._window_count / seconds:.1f} records/sec "
            f"({self._window_bytes / seconds / _MIB:.2f} MB/sec), "
            f"{self._window_latency_ms / self._window_count:.1f} ms avg latency, "
            f"{self._window_max_ms:.1f} ms max latency."
        )

    def total_line(self, now_ms: float) -> str:
        seconds = max(1.0, now_ms - self._start_ms) / 1000
        total_ms = sum(latency * count for latency, count in self._latencies.items())
        p50, p95, p99, p999 = self.percentiles()
        return (
            f"{self._count}{' steady state' if self._steady else ''} records sent, "
            f"{self._count / seconds:.6f} records/sec ({self._bytes / seconds / _MIB:.2f} MB/sec), "
            f"{total_ms / max(1, self._count):.2f} ms avg latency, "
            f"{max(self._latencies, default=0):.2f} ms max latency, "
            f"{p50} ms 50th, {p95} ms 95th, {p99} ms 99th, {p999} ms 99.9th."
        )

    def percentiles(self) -> list[int]:
        """The latencies at the percentiles in _PERCENTILES."""
        latencies = sorted(self._latencies)
        ends = list(accumulate(self._latencies[each] for each in latencies))
        return [
            next((latency for latency, end in zip(latencies, ends, strict=True) if end > int(share * self._count)), 0)
            for share in _PERCENTILES
        ]
