"""What a program that runs its pipeline by itself knows of it."""

import contextlib
import io
import os
import signal
from types import SimpleNamespace

import pytest

from kaspar.pipelines.folder import SessionPlan
from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.pipelines.runner import Change
from kaspar.pipelines.standalone import Figures, run_alone
from kaspar.pipelines.statuses import State
from tests.unit.pipelines.fakes import FakePipeline


def test_figures_follow_the_runner() -> None:
    figures = Figures(FakePipeline("app"))
    assert figures.status().state is State.STARTING
    figures.change(Change(State.RUNNING))
    assert (figures.status().state, figures.status().progress.lag) == (State.RUNNING, 3)
    figures.change(Change(State.RESTARTING, "boom", 0.5))
    failed = figures.status()
    assert (failed.state, failed.restarts, failed.reason) == (State.RESTARTING, 1, "boom")
    assert failed.failed_ms == failed.since_ms
    assert failed.progress == PipelineProgress()
    figures.change(Change(State.RUNNING))
    assert (figures.status().restarts, figures.status().reason) == (1, "boom")


def test_pipeline_that_is_just_ending_has_no_progress() -> None:
    pipeline = FakePipeline("app")

    def fail() -> PipelineProgress:
        raise ConnectionError

    vars(pipeline)["progress"] = fail
    figures = Figures(pipeline)
    figures.change(Change(State.RUNNING))
    assert figures.status().progress == PipelineProgress()


def test_signal_while_spark_starts_ends_the_program_without_running_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[object] = []

    def interrupted_start(name: str, plan: SessionPlan) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return object()

    monkeypatch.setattr("kaspar.pipelines.standalone.new_session", interrupted_start)
    jvm = SimpleNamespace(problem=lambda: None, signals_call=lambda stop: contextlib.nullcontext())
    monkeypatch.setattr("kaspar.pipelines.jvm.Jvm", lambda session: jvm)
    monkeypatch.setattr("kaspar.spark.running.sessions.end", ended.append)
    pipeline = FakePipeline("app")
    out = io.StringIO()
    run_alone(pipeline, SessionPlan(), out=out)
    assert "app: stopping as soon as Spark has started." in out.getvalue()
    assert not pipeline.starts
    assert len(ended) == 1
