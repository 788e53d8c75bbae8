"""The listener that keeps the figures of queries, and their metrics."""

import io
import json
import uuid
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql.streaming.listener import QueryIdleEvent, QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent

from kaspar.base.errors import KasparError
from kaspar.base.exposition import render
from kaspar.spark.watching.metrics import FAMILIES
from kaspar.spark.watching.progress import ProgressListener, watch
from tests.unit.spark.watching.test_figures import progress

QUERY = uuid.uuid4()


class Session:
    """A SparkSession as far as a watch uses it."""

    def __init__(self) -> None:
        self.listeners: list[ProgressListener] = []
        self.streams = SimpleNamespace(addListener=self.listeners.append, removeListener=self.listeners.remove)

    def run(self, **more: Any) -> None:
        for listener in self.listeners:
            listener.onQueryProgress(_progress(**more))


def _started(name: str | None = "counts") -> QueryStartedEvent:
    return QueryStartedEvent(QUERY, QUERY, name, "2026-01-01T00:00:00.000Z", set())


def _progress(**more: Any) -> QueryProgressEvent:
    lines = SimpleNamespace(id=QUERY, name="counts", json=json.dumps(progress(**more)))
    return cast(QueryProgressEvent, SimpleNamespace(progress=lines))


def _idle() -> QueryIdleEvent:
    return QueryIdleEvent(QUERY, QUERY, "2026-01-01T00:00:00.000Z")


def _terminated(exception: str | None) -> QueryTerminatedEvent:
    return QueryTerminatedEvent(QUERY, QUERY, exception, None)


def test_figures_follow_a_query_from_start_to_end() -> None:
    lines: list[str] = []
    listener = ProgressListener(lambda figures, important: lines.append(figures.line()), clock=lambda: 0.0)
    listener.onQueryStarted(_started())
    listener.onQueryProgress(_progress())
    listener.onQueryIdle(_idle())
    listener.onQueryTerminated(_terminated(None))
    assert lines[0] == "counts: started"
    assert lines[1].startswith("counts: batch     7")
    assert lines[2].endswith("idle")
    assert lines[3] == "counts: ended after 1 batches and 300 rows"


def test_query_that_runs_already_is_watched_from_its_next_batch() -> None:
    listener = ProgressListener(lambda figures, important: None)
    listener.onQueryProgress(_progress())
    assert [(figures.name, figures.rows) for figures in listener.queries.values()] == [("counts", 300)]


def test_query_without_a_name_goes_by_its_id() -> None:
    listener = ProgressListener(lambda figures, important: None)
    listener.onQueryStarted(_started(name=None))
    assert [figures.name for figures in listener.queries.values()] == [str(QUERY)[:8]]


def test_failed_query_reports_its_reason_in_one_line() -> None:
    session, out = Session(), io.StringIO()
    with watch(cast(Any, session), out=out):
        session.listeners[0].onQueryTerminated(_terminated("Traceback ...\nkaspar.x.Gone: The records are gone.\n at"))
    assert out.getvalue() == f"{str(QUERY)[:8]}: stopped: The records are gone.\n"
    assert session.listeners == []


def test_lines_come_once_a_second_where_there_is_no_terminal() -> None:
    session, out = Session(), io.StringIO()
    with watch(cast(Any, session), out=out):
        for number in range(100):
            session.run(batchId=number)
    assert 1 <= len(out.getvalue().splitlines()) < 100


def test_lines_are_drawn_in_place_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    session, out = Session(), Terminal()
    with watch(cast(Any, session), out=out):
        session.run(batchId=1)
        session.run(batchId=2)
    first, second = out.getvalue().splitlines()
    assert "batch     1" in first
    assert second.startswith("\x1b[1A")
    assert "batch     2" in second


def test_metrics_are_what_prometheus_reads() -> None:
    listener = ProgressListener(lambda figures, important: None)
    listener.onQueryStarted(_started())
    listener.onQueryProgress(_progress(stateOperators=[{"numRowsTotal": 3}]))
    text = b"".join(render(FAMILIES, listener.queries)).decode()
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["kaspar_spark_query_rows_total", "counts"] == 300
    assert samples["kaspar_spark_query_batches_total", "counts"] == 1
    assert samples["kaspar_spark_query_running", "counts"] == 1
    assert samples["kaspar_spark_query_input_rows_per_second", "counts"] == 100
    assert samples["kaspar_spark_query_processed_rows_per_second", "counts"] == 2500
    assert samples["kaspar_spark_query_lag", "counts", "clicks", "0"] == 10
    assert samples["kaspar_spark_query_state_rows", "counts"] == 3
    assert samples["kaspar_spark_query_batch_seconds_count", "counts"] == 1
    assert samples["kaspar_spark_query_batch_seconds_sum", "counts"] == pytest.approx(0.12)


def test_query_without_batches_has_no_rates() -> None:
    listener = ProgressListener(lambda figures, important: None)
    listener.onQueryStarted(_started())
    text = b"".join(render(FAMILIES, listener.queries)).decode()
    assert "kaspar_spark_query_running" in text
    assert 'rows_per_second{query="counts"}' not in text


def test_address_of_the_metrics_page_must_have_a_port() -> None:
    with pytest.raises(KasparError, match="must be host:port, not 'localhost'"):
        watch(cast(Any, Session()), metrics="localhost")
