"""What a program that runs its pipeline by itself knows of it."""

from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.pipelines.runner import Change
from kaspar.pipelines.standalone import Figures
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
