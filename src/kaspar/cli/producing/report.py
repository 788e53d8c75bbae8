"""Delivery results: counted as records are delivered, and summarised at the end."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from kaspar.cli.output import decimal_size

MAX_FAILURES_SHOWN: Final = 20


@dataclass(slots=True)
class Report:
    topic: str
    delivered: int = 0
    size: int = 0
    """The bytes of keys and values."""
    failed: int = 0
    by_partition: Counter[int] = field(default_factory=Counter)

    def add_delivered(self, partition: int, size: int) -> None:
        self.delivered += 1
        self.size += size
        self.by_partition[partition] += 1

    def add_failed(self, place: str, reason: str) -> str | None:
        """Count a failure. Returns the message to print, or None after many failures."""
        self.failed += 1
        if self.failed > MAX_FAILURES_SHOWN + 1:
            return None
        return (
            f"{place}: {reason}" if self.failed <= MAX_FAILURES_SHOWN else "further failures are counted but not shown"
        )

    def summary(self, seconds: float) -> str:
        records = "1 record" if self.delivered == 1 else f"{self.delivered:,} records"
        rate = f", {self.delivered / seconds:,.0f} per second" if self.delivered > max(1.0, seconds) else ""
        failed = f"; {self.failed:,} failed" if self.failed else ""
        return f"{records} ({decimal_size(self.size)}) to {self.topic} in {seconds:.2f} s{rate}{self._spread()}{failed}"

    def _spread(self) -> str:
        if len(self.by_partition) < 2 or len(self.by_partition) > 16:
            return ""
        counts = ", ".join(f"{partition}: {count:,}" for partition, count in sorted(self.by_partition.items()))
        return f"; by partition {counts}"

    def as_json(self, seconds: float) -> dict[str, object]:
        return {
            "topic": self.topic,
            "delivered": self.delivered,
            "failed": self.failed,
            "bytes": self.size,
            "seconds": round(seconds, 3),
            "partitions": {str(partition): count for partition, count in sorted(self.by_partition.items())},
        }
