"""Runs one pipeline until it is stopped or has finished. A host and a standalone program use the same loop.

- An error of the first start is raised to the caller: the program is wrong, or something that it needs is missing.
- After that, when a query fails, all queries of the pipeline are restarted, after a delay that grows while they keep
  failing soon.
- A stop lets the micro-batch finish, within a time limit; queries that are still running then are interrupted.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.pipelines.pipeline import STOP_TIMEOUT_S, Pipeline
from kaspar.pipelines.reasons import reason_of
from kaspar.pipelines.statuses import State
from kaspar.supervisor.back_off import BackOff

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = get_log(__name__)

LOOK_EVERY_S: Final = 0.2
"""How often a running pipeline checks for a stop request."""


class SessionLost(KasparError):
    """The Spark session has ended: restarting a query would not help."""


@dataclass(frozen=True, slots=True)
class Change:
    """The new state: RUNNING, or RESTARTING with the reason and the delay until the next start."""

    state: State
    reason: str | None = None
    delay_s: float = 0.0


class PipelineRunner:
    def __init__(
        self,
        pipeline: Pipeline,
        *,
        stop: threading.Event,
        report: Callable[[Change], None],
        lost: Callable[[], str | None] = lambda: None,
        stop_timeout_s: float = STOP_TIMEOUT_S,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        """Any thread may set `stop` to stop the pipeline. `lost` returns how the session ended, if it has. `pause`
        waits for an event with a timeout."""
        self._pipeline = pipeline
        self._stop = stop
        self._report = report
        self._lost = lost
        self._stop_timeout_s = stop_timeout_s
        self._now = now
        self._pause = pause
        self._back_off = BackOff()
        self._started_at = 0.0

    def run(self, session: "SparkSession") -> None:
        """Run until the pipeline was stopped or has finished. Raises the error of its first start, or SessionLost."""
        if self._stop.is_set():
            return
        try:
            self._start(session)
        except BaseException:
            self._end_queries()
            raise
        while not self._stop.is_set():
            try:
                if self._pipeline.wait(LOOK_EVERY_S):
                    return
            except Exception as error:
                self._restart(session, error)
        self._end_queries()

    def _start(self, session: "SparkSession") -> None:
        self._started_at = self._now()
        self._pipeline.start(session)
        self._report(Change(State.RUNNING))

    def _restart(self, session: "SparkSession", failure: Exception) -> None:
        """Retry until the pipeline runs again or has to stop."""
        error: Exception | None = failure
        while error is not None:
            delay_s = self._back_off.next_delay_s(lived_s=self._now() - self._started_at)
            lost = self._lost()
            if lost is not None:
                raise SessionLost(lost) from None  # the text of `error` is in the JVM, which has ended
            self._end_queries()
            self._report(Change(State.RESTARTING, reason_of(error), delay_s))
            self._pause(self._stop, delay_s)
            if self._stop.is_set():
                return
            error = self._start_again(session)

    def _start_again(self, session: "SparkSession") -> Exception | None:
        try:
            self._start(session)
        except Exception as error:  # whatever is missing may become available again
            return error
        return None

    def _end_queries(self) -> None:
        try:
            self._pipeline.stop(self._stop_timeout_s)
        except Exception:
            log.exception("a pipeline did not stop", pipeline=self._pipeline.name)
        for query in self._pipeline.queries:
            try:
                if query.isActive:
                    query.stop()
            except Exception:
                log.exception("a query could not be stopped", pipeline=self._pipeline.name)
