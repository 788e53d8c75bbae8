"""Pipelines of plain Spark queries: waiting for them, stopping them between micro-batches, their progress."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.pipelines.queries import QueryPipeline, progress_of, stop_between_batches, summed, wait_for


class Progress(dict[str, Any]):
    @property
    def json(self) -> str:
        return json.dumps(self)


class ScriptedQuery:
    """Shows at each look the next of its statuses; `batches`: the number of its last micro-batch at each look."""

    def __init__(
        self, *, busy: Callable[[], bool] = lambda: False, batches: Callable[[], int | None] = lambda: None
    ) -> None:
        self.isActive = True
        self.error: Exception | None = None
        self.was_busy_when_stopped: bool | None = None
        self._busy = busy
        self._batches = batches

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": self._busy()}

    @property
    def lastProgress(self) -> Progress | None:  # noqa: N802
        number = self._batches()
        return None if number is None else Progress(event(batchId=number))

    def exception(self) -> Exception | None:
        return self.error

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802
        assert timeout > 0
        return not self.isActive

    def stop(self) -> None:
        self.isActive = False


def event(**more: Any) -> dict[str, Any]:
    return {
        "batchId": 7,
        "batchDuration": 120,
        "numInputRows": 300,
        "inputRowsPerSecond": 100.0,
        "processedRowsPerSecond": 2500.0,
        "sources": [{"endOffset": {"clicks": {"0": 90}}, "latestOffset": {"clicks": {"0": 100}}}],
        "stateOperators": [],
        **more,
    }


def sequence(*values: Any) -> Callable[[], Any]:
    left = list(values)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_waiting_ends_when_all_queries_have_ended() -> None:
    queries: Any = [ScriptedQuery(), ScriptedQuery()]
    queries[0].isActive = False
    assert not wait_for(queries, 0.01)
    queries[1].isActive = False
    assert wait_for(queries, 0.01)


def test_waiting_raises_what_any_query_has_failed_with() -> None:
    queries: Any = [ScriptedQuery(), ScriptedQuery()]
    queries[1].isActive = False
    queries[1].error = ValueError("no space")
    with pytest.raises(ValueError, match="no space"):
        wait_for(queries, 0.01)


def test_idle_query_is_stopped_at_once_and_a_busy_one_when_its_batch_is_done() -> None:
    idle: Any = ScriptedQuery()
    busy: Any = ScriptedQuery(busy=sequence(True, True, False))
    stop_between_batches([idle, busy], 10.0)
    assert not idle.isActive
    assert not busy.isActive


def test_query_that_never_rests_is_stopped_when_a_batch_is_complete() -> None:
    always_busy: Any = ScriptedQuery(busy=lambda: True, batches=sequence(4, 4, 4, 5))
    stop_between_batches([always_busy], 10.0)
    assert not always_busy.isActive


def test_query_in_a_long_batch_is_left_to_the_caller() -> None:
    stuck: Any = ScriptedQuery(busy=lambda: True, batches=lambda: 4)
    stop_between_batches([stuck], 0.05)
    assert stuck.isActive


def test_progress_is_that_of_all_queries() -> None:
    slow = event(batchId=2, batchDuration=500, inputRowsPerSecond=1.0, stateOperators=[{"numRowsTotal": 4}])
    assert summed([event(), slow]) == PipelineProgress(
        batches=8,
        input_rows_per_second=101.0,
        processed_rows_per_second=5000.0,
        lag=20,
        batch_ms=500,
        state_rows=4,
    )


def test_time_is_the_earliest_watermark() -> None:
    early, late = "2026-01-01T00:00:01.000Z", "2026-01-01T00:00:09.000Z"
    events = [event(eventTime={"watermark": late}), event(eventTime={"watermark": early}), event(eventTime={})]
    assert summed(events).stream_time_ms == 1_767_225_601_000


def test_query_without_a_batch_has_no_progress() -> None:
    queries: Any = [ScriptedQuery()]
    assert progress_of(queries) == PipelineProgress()


def test_function_may_start_one_query_or_several() -> None:
    one: Any = ScriptedQuery()
    two: Any = ScriptedQuery(batches=lambda: 3)
    session: Any = None
    single = QueryPipeline("single", lambda session: one)
    single.start(session)
    assert list(single.queries) == [one]
    several = QueryPipeline("several", lambda session: [one, two], "two queries")
    several.start(session)
    assert list(several.queries) == [one, two]
    assert several.progress().batches == 4
    assert several.describe() == "two queries"
    several.stop(1.0)
    assert several.wait(0.01)
