"""The loop that runs one pipeline: failures, back-off and stopping, on a clock of its own."""

import threading
from typing import Any

import pytest

from kaspar.pipelines.pipeline import STOP_TIMEOUT_S
from kaspar.pipelines.runner import Change, PipelineRunner, SessionLost
from kaspar.pipelines.statuses import State
from tests.unit.pipelines.fakes import FakePipeline, FakeSession

SESSION: Any = FakeSession()


class Run:
    """A run whose time passes only in pauses, and which is stopped when it has run or paused often enough."""

    def __init__(
        self,
        pipeline: FakePipeline,
        *,
        stop_after: int,
        lived_s: float = 0.0,
        lost: str | None = None,
        stop_in_pause: bool = False,
    ) -> None:
        self.changes: list[Change] = []
        self.stop = threading.Event()
        self._pipeline = pipeline
        self._stop_after = stop_after
        self._lived_s = lived_s
        self._stop_in_pause = stop_in_pause
        self._now = 0.0
        self._runner = PipelineRunner(
            pipeline,
            stop=self.stop,
            report=self._report,
            lost=lambda: lost,
            now=lambda: self._now,
            pause=self._pause,
        )

    def _report(self, change: Change) -> None:
        self.changes.append(change)
        if change.state is State.RUNNING:
            self._now += self._lived_s
            if self._pipeline.starts >= self._stop_after:
                self.stop.set()

    def _pause(self, stop: threading.Event, seconds: float) -> None:
        self._now += seconds
        if self._stop_in_pause:
            stop.set()

    def run(self) -> "Run":
        self._runner.run(SESSION)
        return self

    @property
    def states(self) -> list[State]:
        return [change.state for change in self.changes]

    @property
    def delays(self) -> list[float]:
        return [change.delay_s for change in self.changes if change.state is State.RESTARTING]


def test_pipeline_runs_until_it_is_stopped_and_may_finish_its_batch() -> None:
    pipeline = FakePipeline()
    assert Run(pipeline, stop_after=1).run().states == [State.RUNNING]
    assert pipeline.stops == [STOP_TIMEOUT_S]
    assert not pipeline.queries[0].was_interrupted


def test_query_that_does_not_end_in_time_is_interrupted() -> None:
    pipeline = FakePipeline()
    pipeline.ignores_stop = True
    Run(pipeline, stop_after=1).run()
    assert pipeline.queries[0].was_interrupted


def test_pipeline_that_finishes_is_not_stopped() -> None:
    pipeline = FakePipeline(script=["finish"])
    assert Run(pipeline, stop_after=9).run().states == [State.RUNNING]
    assert pipeline.stops == []


def test_failed_query_starts_again_after_delays_that_grow() -> None:
    pipeline = FakePipeline(script=[ValueError("one"), ValueError("two"), ValueError("three")])
    run = Run(pipeline, stop_after=4).run()
    assert pipeline.starts == 4
    assert run.delays == [0.5, 1.0, 2.0]
    assert [change.reason for change in run.changes if change.reason] == [
        "ValueError: one",
        "ValueError: two",
        "ValueError: three",
    ]


def test_failure_after_a_long_life_begins_with_the_first_delay() -> None:
    pipeline = FakePipeline(script=[ValueError("x"), ValueError("x")])
    assert Run(pipeline, stop_after=3, lived_s=100.0).run().delays == [0.5, 0.5]


def test_all_queries_end_before_the_next_start() -> None:
    """The fake asserts it; a query that goes on is interrupted."""
    pipeline = FakePipeline(script=[ValueError("x")])
    pipeline.ignores_stop = True
    Run(pipeline, stop_after=2).run()
    assert pipeline.starts == 2


def test_error_of_the_first_start_is_the_callers() -> None:
    pipeline = FakePipeline(script=["refuse"])
    run = Run(pipeline, stop_after=9)
    with pytest.raises(ValueError, match="refused"):
        run.run()
    assert run.states == []


def test_error_of_a_later_start_is_tried_again() -> None:
    pipeline = FakePipeline(script=[ValueError("x"), "refuse", "refuse"])
    run = Run(pipeline, stop_after=4).run()
    assert run.states == [State.RUNNING, *[State.RESTARTING] * 3, State.RUNNING]
    assert run.changes[-2].reason == "ValueError: refused"


def test_stop_while_waiting_for_the_next_start_ends_it() -> None:
    pipeline = FakePipeline(script=[ValueError("x")] * 9)
    assert Run(pipeline, stop_after=9, stop_in_pause=True).run().states == [State.RUNNING, State.RESTARTING]
    assert pipeline.starts == 1


def test_stop_before_the_start_starts_nothing() -> None:
    pipeline = FakePipeline()
    run = Run(pipeline, stop_after=1)
    run.stop.set()
    assert run.run().states == []
    assert pipeline.starts == 0


def test_lost_session_is_not_tried_again() -> None:
    pipeline = FakePipeline(script=[ValueError("x")])
    with pytest.raises(SessionLost, match="JVM was killed by SIGKILL"):
        Run(pipeline, stop_after=9, lost="Spark's JVM was killed by SIGKILL").run()
    assert pipeline.starts == 1


def test_pipeline_that_fails_to_stop_is_stopped_all_the_same() -> None:
    pipeline = FakePipeline()

    def stop(timeout_s: float) -> None:
        raise ValueError("cannot")

    vars(pipeline)["stop"] = stop
    Run(pipeline, stop_after=1).run()
    assert pipeline.queries[0].was_interrupted
