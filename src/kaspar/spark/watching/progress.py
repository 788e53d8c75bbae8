"""Watches running queries: rows per second, lag, the duration of micro-batches.

    with kaspar.spark.watch(session, metrics="127.0.0.1:9405"):
        query.awaitTermination()

One line per query, updated in place on a terminal and printed once a second elsewhere; on request the same as metrics
for Prometheus. All of it comes from Spark's progress events: brokers are not queried.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from pyspark.sql.streaming.listener import StreamingQueryListener

from kaspar.base.errors import KasparError
from kaspar.spark.watching.figures import BatchReport, QueryFigures, message_in
from kaspar.spark.watching.lines import LiveLines
from kaspar.spark.watching.metrics import make_app
from kaspar.web.pages import PageServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

LINE_EVERY_S: Final = 1.0


class ProgressListener(StreamingQueryListener):
    """Keeps the figures of every query, and calls `changed` for each update."""

    def __init__(
        self, changed: Callable[[QueryFigures, bool], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.queries: dict[str, QueryFigures] = {}
        self._changed = changed
        self._clock = clock

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:  # noqa: N802
        figures = QueryFigures(event.name or str(event.id)[:8], rotated=self._clock())
        self.queries[str(event.id)] = figures
        self._changed(figures, True)

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802
        figures = self._figures(str(event.progress.id), event.progress.name)
        figures.add(BatchReport.of(json.loads(event.progress.json)), self._clock())
        self._changed(figures, False)

    def onQueryIdle(self, event: "QueryIdleEvent") -> None:  # noqa: N802
        figures = self._figures(str(event.id), None)
        figures.idle = True
        self._changed(figures, False)

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:  # noqa: N802
        figures = self._figures(str(event.id), None)
        figures.running = False
        figures.problem = message_in(event.exception) if event.exception else None
        self._changed(figures, True)

    def _figures(self, query_id: str, name: str | None) -> QueryFigures:
        """The figures of a query, which may have started before the listener was added."""
        if query_id not in self.queries:
            self.queries[query_id] = QueryFigures(name or query_id[:8], rotated=self._clock())
        return self.queries[query_id]


class Watch:
    """Watches the queries of a session until it is closed."""

    def __init__(self, session: "SparkSession", out: TextIO | None, metrics: str | None) -> None:
        self._session = session
        self._out = out
        self._lock = threading.Lock()
        self._lines = LiveLines(out or sys.stderr)
        self._printed_at: dict[str, float] = {}
        self.listener = ProgressListener(self._show)
        self.page = self._make_page(metrics) if metrics is not None else None
        session.streams.addListener(self.listener)
        if self.page is not None:
            self.page.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._session.streams.removeListener(self.listener)
        if self.page is not None:
            self.page.stop()

    def _make_page(self, address: str) -> PageServer:
        host, _, port = address.rpartition(":")
        if not port.isdecimal():
            raise KasparError(f"the address of the metrics page must be host:port, not '{address}'")
        return PageServer(lambda: make_app(self.listener.queries), host=host, port=int(port))

    def _show(self, figures: QueryFigures, important: bool) -> None:
        if self._out is None:
            return
        with self._lock:
            if self._out.isatty():
                self._lines.show([each.line() for each in self.listener.queries.values()])
                return
            if not important:
                now = time.monotonic()
                if now - self._printed_at.get(figures.name, -LINE_EVERY_S) < LINE_EVERY_S:
                    return
                self._printed_at[figures.name] = now
            print(figures.line(), file=self._out, flush=True)


def watch(session: "SparkSession", *, out: TextIO | None = sys.stderr, metrics: str | None = None) -> Watch:
    """Watch every query of a session. `out=None` prints nothing; `metrics` is host:port of a Prometheus page."""
    return Watch(session, out, metrics)
