"""The results of a benchmark: throughput and latencies."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from kaspar.cli.output import Column, Row

_MB: Final = 1_000_000
_SHARES: Final = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999}


@dataclass(slots=True)
class Latencies:
    """The number of records with each latency."""

    counts: Counter[float] = field(default_factory=Counter)

    def add(self, latency_ms: float, count: int = 1) -> None:
        self.counts[latency_ms] += count

    def row(self) -> dict[str, object]:
        """Average, percentiles and maximum; empty if there are no latencies."""
        total = self.counts.total()
        if not total:
            return {}
        in_order = sorted(self.counts)
        ends = list(accumulate(self.counts[latency] for latency in in_order))
        average = sum(latency * count for latency, count in self.counts.items()) / total
        percentiles = {
            name: next(latency for latency, end in zip(in_order, ends, strict=True) if end >= share * total)
            for name, share in _SHARES.items()
        }
        numbers = {"avg_ms": average, **percentiles, "max_ms": in_order[-1]}
        return {name: round(number, 2) for name, number in numbers.items()}


@dataclass(frozen=True, slots=True)
class Throughput:
    records: int
    size: int
    """The bytes of keys and values."""
    seconds: float

    def row(self) -> dict[str, object]:
        seconds = max(self.seconds, 1e-6)
        return {
            "records": self.records,
            "bytes": self.size,
            "seconds": round(self.seconds, 3),
            "records_per_s": round(self.records / seconds),
            "mb_per_s": round(self.size / seconds / _MB, 2),
        }


def _grouped(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else "-"


THROUGHPUT_COLUMNS: Final = (
    Column("records", "RECORDS", _grouped),
    Column("seconds", "SECONDS"),
    Column("records_per_s", "RECORDS/S", _grouped),
    Column("mb_per_s", "MB/S", _grouped),
)
LATENCY_COLUMNS: Final = (
    Column("avg_ms", "AVG MS"),
    Column("p50_ms", "P50"),
    Column("p95_ms", "P95"),
    Column("p99_ms", "P99"),
    Column("p999_ms", "P99.9"),
    Column("max_ms", "MAX"),
)


def columns_of(row: Row) -> list[Column]:
    """The columns for which the row has values."""
    return [column for column in (*THROUGHPUT_COLUMNS, *LATENCY_COLUMNS) if column.key in row]
