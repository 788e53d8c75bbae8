"""A pipeline of plain Spark queries; its functions for waiting, stopping and progress can be used by others."""

import datetime
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.spark.watching.figures import BatchReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_PAUSE_S: Final = 0.02
_SHORTEST_WAIT_S: Final = 0.001  # Spark rejects 0


class QueryPipeline:
    """A pipeline whose queries are started by a function.

    def start(session: SparkSession) -> StreamingQuery: ...

    kaspar.pipelines.run(QueryPipeline("copy", start))
    """

    def __init__(
        self,
        name: str,
        start: "Callable[[SparkSession], StreamingQuery | Sequence[StreamingQuery]]",
        description: str = "",
    ) -> None:
        self.name = name
        self._start = start
        self._description = description
        self.queries: Sequence[StreamingQuery] = ()

    def start(self, session: "SparkSession") -> None:
        started = self._start(session)
        self.queries = tuple(started) if isinstance(started, Sequence) else (started,)

    def wait(self, timeout_s: float) -> bool:
        return wait_for(self.queries, timeout_s)

    def stop(self, timeout_s: float) -> None:
        stop_between_batches(self.queries, timeout_s)

    def describe(self) -> str:
        return self._description

    def progress(self) -> PipelineProgress:
        return progress_of(self.queries)


def wait_for(queries: "Sequence[StreamingQuery]", timeout_s: float) -> bool:
    """Wait until all queries have ended by themselves; False on timeout. Raises the exception of a failed query."""
    until = time.monotonic() + timeout_s
    while True:
        running = [query for query in queries if query.isActive]
        for query in queries:
            problem = None if query in running else query.exception()
            if problem is not None:
                raise problem
        if not running:
            return True
        left_s = until - time.monotonic()
        if left_s <= 0:
            return False
        # If another query fails meanwhile, that is noticed at the end of this wait.
        running[0].awaitTermination(max(left_s, _SHORTEST_WAIT_S))  # type: ignore[arg-type]  # it takes fractions


def stop_between_batches(queries: "Sequence[StreamingQuery]", timeout_s: float) -> None:
    """Stop each query when no micro-batch is running or one has just completed, because stop() interrupts a running
    one. If the next micro-batch has already begun by then, it is interrupted. Queries that do not reach such a moment
    within the timeout are left running."""
    until = time.monotonic() + timeout_s
    waiting = [(query, _last_batch(query)) for query in queries if query.isActive]
    while waiting and time.monotonic() < until:
        still: list[tuple[StreamingQuery, int | None]] = []
        for query, batch in waiting:
            if query.isActive and query.status["isTriggerActive"] and _last_batch(query) == batch:
                still.append((query, batch))
            elif query.isActive:
                query.stop()
        waiting = still
        if waiting:
            time.sleep(_PAUSE_S)


def _last_batch(query: "StreamingQuery") -> int | None:
    progress = query.lastProgress
    return None if progress is None else int(progress["batchId"])


def progress_of(queries: "Sequence[StreamingQuery]") -> PipelineProgress:
    """The progress of a pipeline from the last progress of each of its queries."""
    known = [progress for query in queries if (progress := query.lastProgress) is not None]
    return summed([json.loads(progress.json) for progress in known])


def summed(events: Sequence[Mapping[str, Any]]) -> PipelineProgress:
    """The progress of a pipeline from one StreamingQueryProgress, as JSON, for each of its queries."""
    reports = [BatchReport.of(event) for event in events]
    if not reports:
        return PipelineProgress()
    lags = [sum(report.lag.values()) for report in reports if report.lag is not None]
    states = [report.state_rows for report in reports if report.state_rows is not None]
    watermarks = [mark for event in events if (mark := event.get("eventTime", {}).get("watermark")) is not None]
    return PipelineProgress(
        batches=max(report.batch_id for report in reports) + 1,
        input_rows_per_second=sum(report.input_rows_per_second for report in reports),
        processed_rows_per_second=sum(report.processed_rows_per_second for report in reports),
        lag=sum(lags) if lags else None,
        batch_ms=max(report.duration_ms for report in reports),
        state_rows=sum(states) if states else None,
        stream_time_ms=min(_ms(mark) for mark in watermarks) if watermarks else None,
    )


def _ms(timestamp: str) -> int:
    return int(datetime.datetime.fromisoformat(timestamp).timestamp() * 1000)
