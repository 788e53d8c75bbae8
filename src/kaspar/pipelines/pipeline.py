"""The interface between pipelines and the code that runs them.

A pipeline is one or more Spark streaming queries that start and stop together. The `runner` starts it with a session,
waits, restarts it when a query has failed, and stops it. It does not depend on what the queries do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STOP_TIMEOUT_S: Final = 60.0
"""How long a pipeline may take to finish its micro-batch when it is stopped."""


@dataclass(frozen=True, slots=True)
class PipelineProgress:
    """The progress that a pipeline reports; None for values that it does not know. Rates and times are those of its
    last micro-batch; for several queries, the sum of the rates and the longest time."""

    batches: int | None = None
    rows: int | None = None
    """Rows read since the pipeline started."""
    written: int | None = None
    """Records written to topics since the pipeline started."""
    dropped: Mapping[str, int] | None = None
    """Records not processed since the pipeline started, by reason."""
    input_rows_per_second: float | None = None
    processed_rows_per_second: float | None = None
    lag: int | None = None
    """The number of records after the last micro-batch in all source partitions."""
    batch_ms: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    stream_time_ms: int | None = None
    """The event time that the pipeline has reached, in milliseconds since 1970: stream time, or Spark's watermark."""


class Pipeline(Protocol):
    """Called by one thread at a time, except for `queries`, `describe` and `progress`, which any thread may call."""

    @property
    def name(self) -> str: ...

    @property
    def queries(self) -> "Sequence[StreamingQuery]":
        """The queries of the last start, including those that have ended."""
        ...

    def start(self, session: "SparkSession") -> None:
        """Start the queries. Called again after a failure, when all queries of the last start have ended. The session
        may be shared with other pipelines: a pipeline's own settings belong in `session.newSession()`."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait up to the timeout. Returns True as soon as all queries have ended by themselves, raises if one has
        failed."""
        ...

    def stop(self, timeout_s: float) -> None:
        """Let running micro-batches finish and end the queries, within the timeout. The caller interrupts queries that
        are still running afterwards. Some or all queries may already have failed, or may never have started."""
        ...

    def describe(self) -> str:
        """A description in one or more lines, for `kaspar pipeline describe`."""
        ...

    def progress(self) -> PipelineProgress: ...
