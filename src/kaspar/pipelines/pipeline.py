"""What a pipeline is: the seam between what runs pipelines and what they do.

A pipeline is one or more Spark streaming queries that start and stop together. What runs it (`runner`) starts it with a
session, waits, starts it again when a query has failed, and stops it; it knows nothing of what the queries do.
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
    """What a pipeline reports of itself; None where it does not know. Rates and times are of its last micro-batch, of
    several queries the sum of the rates and the longest time."""

    batches: int | None = None
    rows: int | None = None
    """Read since it started."""
    written: int | None = None
    """Records that it has written to topics since it started."""
    dropped: Mapping[str, int] | None = None
    """Records that it has not processed since it started, by reason."""
    input_rows_per_second: float | None = None
    processed_rows_per_second: float | None = None
    lag: int | None = None
    """Records beyond the last micro-batch, of all source partitions."""
    batch_ms: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    stream_time_ms: int | None = None
    """The event time that it has reached, in milliseconds since 1970: stream time, or Spark's watermark."""


class Pipeline(Protocol):
    """Called by one thread at a time, except `queries`, `describe` and `progress`, which any thread may call."""

    @property
    def name(self) -> str: ...

    @property
    def queries(self) -> "Sequence[StreamingQuery]":
        """Those of the last start, also when they have ended."""
        ...

    def start(self, session: "SparkSession") -> None:
        """Start the queries. Called again after a failure, when all queries of the last start have ended. The session
        may be shared with other pipelines: settings of one's own belong into `session.newSession()`."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait for this long; True as soon as all queries have ended by themselves. Raises if one has failed."""
        ...

    def stop(self, timeout_s: float) -> None:
        """Let running micro-batches finish, and end the queries, within this time. What still runs when it returns is
        interrupted. Some or all queries may already have failed, or may never have started."""
        ...

    def describe(self) -> str:
        """What it does, as text of one or more lines, for `kaspar pipeline describe`."""
        ...

    def progress(self) -> PipelineProgress: ...
