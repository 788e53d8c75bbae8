"""What is read off Spark's progress: rates, lag, state; and the sentence in an exception."""

import json
from typing import Any

from kaspar.base.ids import TopicPartition
from kaspar.base.metrics import WINDOW_SECONDS
from kaspar.spark.watching.figures import BatchReport, QueryFigures, message_in


def progress(**more: Any) -> dict[str, Any]:
    """A StreamingQueryProgress as Spark writes it."""
    return {
        "id": "8a1c",
        "name": "counts",
        "batchId": 7,
        "batchDuration": 120,
        "numInputRows": 300,
        "inputRowsPerSecond": 100.0,
        "processedRowsPerSecond": 2500.0,
        "durationMs": {"triggerExecution": 120},
        "sources": [source({"clicks": {"0": 90, "1": 40}}, {"clicks": {"0": 100, "1": 40}})],
        "stateOperators": [],
        **more,
    }


def source(end: object, latest: object) -> dict[str, Any]:
    return {"description": "kaspar", "endOffset": end, "latestOffset": latest}


def test_report_of_a_batch() -> None:
    report = BatchReport.of(progress())
    assert (report.batch_id, report.rows, report.duration_ms) == (7, 300, 120)
    assert (report.input_rows_per_second, report.processed_rows_per_second) == (100.0, 2500.0)
    assert report.lag == {TopicPartition("clicks", 0): 10, TopicPartition("clicks", 1): 0}
    assert report.state_rows is None


def test_offsets_may_come_as_text() -> None:
    sources = [source(json.dumps({"clicks": {"0": 5}}), json.dumps({"clicks": {"0": 9}}))]
    assert BatchReport.of(progress(sources=sources)).lag == {TopicPartition("clicks", 0): 4}


def test_lag_of_several_sources_is_that_of_all_their_partitions() -> None:
    sources = [source({"a": {"0": 1}}, {"a": {"0": 2}}), source({"b": {"0": 1}}, {"b": {"0": 4}})]
    lag = BatchReport.of(progress(sources=sources)).lag
    assert lag == {TopicPartition("a", 0): 1, TopicPartition("b", 0): 3}


def test_partition_that_the_batch_did_not_know_has_no_lag_yet() -> None:
    sources = [source({"a": {"0": 1}}, {"a": {"0": 2, "1": 100}})]
    assert BatchReport.of(progress(sources=sources)).lag == {TopicPartition("a", 0): 1}


def test_source_without_partitions_has_no_lag() -> None:
    """Spark's rate source counts seconds; others report no latest offset."""
    for sources in ([source(3, 4)], [source("3", None)], [source({"a": {"0": 1}}, None)], []):
        report = BatchReport.of(progress(sources=sources))
        assert report.lag is None
        assert "lag" not in report.line()


def test_first_batch_has_no_rate_of_input() -> None:
    """Spark leaves out what it cannot divide."""
    event = progress()
    del event["inputRowsPerSecond"]
    assert BatchReport.of(event).input_rows_per_second == 0.0


def test_state_is_that_of_all_operators() -> None:
    report = BatchReport.of(progress(stateOperators=[{"numRowsTotal": 3}, {"numRowsTotal": 4}]))
    assert report.state_rows == 7
    assert report.line().endswith("state 7 rows")


def test_line_shows_rates_time_and_lag() -> None:
    words = " ".join(BatchReport.of(progress()).line().split())
    assert words == "batch 7 in 100 rows/s done 2,500 rows/s 120 ms a batch lag 10"


def test_query_counts_rows_and_batches() -> None:
    figures = QueryFigures("counts")
    assert figures.line() == "counts: started"
    figures.add(BatchReport.of(progress()), now=0.0)
    figures.add(BatchReport.of(progress()), now=WINDOW_SECONDS)
    assert (figures.batches, figures.rows) == (2, 600)
    assert figures.batch_seconds.distribution().count == 2
    figures.idle = True
    assert figures.line().endswith("idle")
    figures.running = False
    assert figures.line() == "counts: ended after 2 batches and 600 rows"
    figures.problem = "the topic is gone"
    assert figures.line() == "counts: stopped: the topic is gone"


def test_sentence_of_our_error_is_found_in_spark_s() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Traceback (most recent call last):\n"
        '  File "x.py", line 1, in latestOffset\n'
        "kaspar.spark.kafka_settings.InvalidOption: The topic 'clicks' does not exist: create it first.\n"
        " SQLSTATE: 38000 SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: ..."
    )
    assert message_in(text) == "The topic 'clicks' does not exist: create it first."


def test_sentence_without_a_traceback_is_found_too() -> None:
    text = "[PYTHON_DATA_SOURCE_ERROR] Failed: kaspar.base.errors.KasparError: No broker responds. SQLSTATE: 38000"
    assert message_in(text) == "No broker responds."


def test_sentence_of_another_error_is_its_first_line() -> None:
    assert (
        message_in("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\nmore") == "[DIVIDE_BY_ZERO] Division by zero."
    )
    assert message_in("") == "no message"
