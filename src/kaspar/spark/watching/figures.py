"""The figures of a query, for one micro-batch and since its start, from Spark's progress events. No I/O."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kaspar.base.ids import TopicPartition
from kaspar.base.metrics import WINDOW_SECONDS, Histogram
from kaspar.spark.offsets import from_json

_OUR_ERROR: Final = re.compile(r"\bkaspar(?:\.\w+)+: (.+)")


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The figures of one micro-batch. `lag` is the number of records after it in each partition; None if the source
    does not have partitions and offsets."""

    batch_id: int
    rows: int
    input_rows_per_second: float
    processed_rows_per_second: float
    duration_ms: int
    lag: Mapping[TopicPartition, int] | None
    state_rows: int | None

    @classmethod
    def of(cls, progress: Mapping[str, Any]) -> "BatchReport":
        """The figures in the JSON of a StreamingQueryProgress."""
        lags = [_lag_of(source.get("endOffset"), source.get("latestOffset")) for source in progress["sources"]]
        known = [lag for lag in lags if lag is not None]
        states = [operator["numRowsTotal"] for operator in progress["stateOperators"]]
        return cls(
            batch_id=progress["batchId"],
            rows=progress["numInputRows"],
            input_rows_per_second=progress.get("inputRowsPerSecond") or 0.0,
            processed_rows_per_second=progress.get("processedRowsPerSecond") or 0.0,
            duration_ms=progress["batchDuration"],
            lag={partition: behind for lag in known for partition, behind in lag.items()} if known else None,
            state_rows=sum(states) if states else None,
        )

    def line(self) -> str:
        parts = [
            f"batch {self.batch_id:>5}",
            f"in {self.input_rows_per_second:>9,.0f} rows/s",
            f"done {self.processed_rows_per_second:>9,.0f} rows/s",
            f"{self.duration_ms:>6,} ms a batch",
        ]
        if self.lag is not None:
            parts.append(f"lag {sum(self.lag.values()):>7,}")
        if self.state_rows is not None:
            parts.append(f"state {self.state_rows:,} rows")
        return "   ".join(parts)


def _lag_of(end: object, latest: object) -> dict[TopicPartition, int] | None:
    """The number of records after the end of a batch in each partition; None for other sources."""
    try:
        done, known = from_json(_loaded(end)), from_json(_loaded(latest))
        return {where: max(0, newest - done[where]) for where, newest in known.items() if where in done}
    except (ValueError, TypeError, AttributeError):
        return None


def _loaded(offsets: object) -> Any:
    return json.loads(offsets) if isinstance(offsets, str) else offsets


@dataclass(slots=True)
class QueryFigures:
    """The figures of a query since its start. Written by Spark's listener thread, read by any thread."""

    name: str
    rows: int = 0
    batches: int = 0
    last: BatchReport | None = None
    idle: bool = False
    running: bool = True
    problem: str | None = None
    batch_seconds: Histogram = field(default_factory=Histogram)
    rotated: float = 0.0

    def add(self, report: BatchReport, now: float) -> None:
        self.rows += report.rows
        self.batches += 1
        self.last = report
        self.idle = False
        if now - self.rotated >= WINDOW_SECONDS:
            self.batch_seconds.rotate()
            self.rotated = now
        self.batch_seconds.record(report.duration_ms / 1000)

    def line(self) -> str:
        if self.problem is not None:
            return f"{self.name}: stopped: {self.problem}"
        if not self.running:
            return f"{self.name}: ended after {self.batches:,} batches and {self.rows:,} rows"
        if self.last is None:
            return f"{self.name}: started"
        return f"{self.name}: {self.last.line()}" + ("   idle" if self.idle else "")


def message_in(text: str) -> str:
    """The message in the text of a Spark exception: that of our own error, or else the first line."""
    ours = _OUR_ERROR.findall(text)
    chosen: str = ours[-1] if ours else (text.strip().splitlines() or ["no message"])[0]
    return chosen.partition(" SQLSTATE: ")[0].strip()
