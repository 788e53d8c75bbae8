"""What a host runs, by the definitions in its folder. Programs are real, pipelines are not Spark's."""

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import KasparError
from kaspar.pipelines import ambient, definitions
from kaspar.pipelines.folder import Folder, Seen
from kaspar.pipelines.messages import LONGEST_DESCRIPTION, ApplyChanges, Described, DescribePipeline, Pipelines
from kaspar.pipelines.output import RoutedOutput
from kaspar.pipelines.running import run
from kaspar.pipelines.statuses import PipelineStatus, State
from tests.unit.pipelines.fake_host import PIPELINES, Running, program, wait_until
from tests.unit.pipelines.fakes import FakePipeline


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "pipelines")
    made.make()
    return made


@pytest.fixture
def running(folder: Folder) -> Iterator[Running]:
    host = Running(folder)
    yield host
    host.end()


@pytest.fixture(autouse=True)
def _pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    PIPELINES.clear()
    monkeypatch.setattr("kaspar.supervisor.back_off.FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_program_is_run_described_and_stopped(running: Running, tmp_path: Path) -> None:
    definitions.add(running.folder, [program(tmp_path)], ["--x"])
    running.begin()
    assert running.apply("app")["app"].state is State.RUNNING
    assert running.status().progress.lag == 3
    response = running.host.respond(DescribePipeline("app"))
    assert isinstance(response, Described)
    details = response.details
    assert (details.program, details.arguments) == (str(tmp_path / "app.py"), ("--x",))
    assert details.description == "orders -> totals"
    assert [(query.name, query.is_active) for query in details.queries] == [("query", True)]
    assert details.log == str(running.folder.log("app"))
    definitions.stop(running.folder, ["app"])
    assert running.apply("app")["app"].state is State.STOPPED
    assert not PIPELINES["app"].queries[0].isActive
    assert not running.host.alive()


def test_pipelines_are_starting_until_there_is_a_session(folder: Folder, tmp_path: Path) -> None:
    definitions.add(folder, [program(tmp_path)], [])
    host = Running(folder)
    assert host.status().state is State.STARTING
    response = host.host.respond(ApplyChanges(("app",), 0.01))
    assert isinstance(response, Pipelines)
    assert (response.is_ready, response.unsettled) == (False, ("app",))


def test_unknown_pipeline_is_refused(running: Running) -> None:
    with pytest.raises(KasparError, match="there is no pipeline app"):
        running.host.respond(DescribePipeline("app"))


def route_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the test itself: pytest sets these after all fixtures."""
    monkeypatch.setattr(sys, "stdout", RoutedOutput(sys.stdout))
    monkeypatch.setattr(sys, "stderr", RoutedOutput(sys.stderr))


def test_several_programs_run_side_by_side_and_one_that_fails_disturbs_no_other(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    route_output(monkeypatch)
    good = program(tmp_path, "run(PIPELINES['good'])", "good")
    bad = program(tmp_path, "raise ValueError('no such topic')", "bad")
    definitions.add(running.folder, [bad, good], [])
    statuses = running.begin().apply("good", "bad")
    assert statuses["good"].state is State.RUNNING
    failed = running.wait_for(State.FAILED, "bad")
    assert failed.reason == "ValueError: no such topic"
    wait_until(lambda: running.status("bad").restarts > 2)
    assert running.status("good") == replace(running.status("good"), restarts=0, state=State.RUNNING)
    log = running.folder.log("bad").read_text()
    assert f'Traceback (most recent call last):\n  File "{bad}", line 2' in log


def test_program_that_is_corrected_runs(running: Running, tmp_path: Path) -> None:
    definitions.add(running.folder, [program(tmp_path, "raise ValueError('x')")], [])
    running.begin().wait_for(State.FAILED)
    program(tmp_path)
    running.wait_for(State.RUNNING)


@pytest.mark.parametrize(
    ("end", "state"), [("", State.FINISHED), ("exit()", State.FINISHED), ("exit(3)", State.FAILED)]
)
def test_program_that_ends(end: str, state: State, running: Running, tmp_path: Path) -> None:
    definitions.add(running.folder, [program(tmp_path, f"from sys import exit\n{end}")], [])
    running.begin().wait_for(state)
    if state is State.FAILED:
        assert running.status().reason == "its program exited with code 3"


def test_failed_query_starts_again_without_its_program(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    route_output(monkeypatch)
    PIPELINES["app"] = FakePipeline("app", [ValueError("boom")])
    definitions.add(running.folder, [program(tmp_path, "print('once'); run(PIPELINES['app'])")], [])
    running.begin().apply("app")
    wait_until(lambda: running.status().state is State.RUNNING and running.status().restarts == 1)
    assert running.status().reason == "ValueError: boom"
    assert PIPELINES["app"].starts == 2
    assert running.folder.log("app").read_text().count("once") == 1


def test_failure_of_a_lost_session_is_left_to_the_next_host(running: Running, tmp_path: Path) -> None:
    PIPELINES["app"] = FakePipeline("app", [ValueError("the JVM does not respond")])
    running.lost = "Spark's JVM was killed by SIGKILL"
    definitions.add(running.folder, [program(tmp_path)], [])
    running.begin().wait_for(State.RUNNING)
    wait_until(lambda: running.asked_whether_lost == 2)  # by its runner, and when that has ended
    assert (running.status().state, running.status().restarts) == (State.RUNNING, 0)


def test_restart_executes_the_program_again(running: Running, tmp_path: Path) -> None:
    definitions.add(running.folder, [program(tmp_path)], [])
    running.begin().apply("app")
    definitions.restart(running.folder, ["app"])
    assert running.apply("app")["app"].state is State.RUNNING
    assert (PIPELINES["app"].starts, len(PIPELINES["app"].stops)) == (2, 1)


def test_stopped_stays_stopped_and_finished_stays_finished_in_the_next_host(running: Running, tmp_path: Path) -> None:
    one, two, three = (
        program(tmp_path, f"run(PIPELINES['{name}'])", name) for name in ("stopped", "finished", "going")
    )
    PIPELINES["finished"].script = ["finish"]
    definitions.add(running.folder, [one, two, three], [])
    running.begin().apply("stopped", "finished", "going")
    running.wait_for(State.FINISHED, "finished")
    definitions.stop(running.folder, ["stopped"])
    running.apply("stopped")
    running.end()
    assert running.folder.seen("going") is not None
    again = Running(running.folder).begin()
    try:
        again.apply("stopped", "finished", "going")
        states = {name: again.status(name).state for name in ("stopped", "finished", "going")}
        assert states == {"stopped": State.STOPPED, "finished": State.FINISHED, "going": State.RUNNING}
        assert again.status("going").restarts == 0
    finally:
        again.end()


def test_pipeline_of_a_killed_host_counts_a_restart(folder: Folder, tmp_path: Path) -> None:
    definitions.add(folder, [program(tmp_path)], [])
    generation = folder.definitions()["app"].generation
    folder.write_seen("app", Seen(generation, PipelineStatus("app", State.RUNNING, 1, restarts=4)))
    host = Running(folder).begin()
    try:
        status = host.wait_for(State.RUNNING)
        assert (status.restarts, status.reason) == (5, "its host was killed, or the machine stopped")
    finally:
        host.end()


def test_removed_pipeline_is_gone(running: Running, tmp_path: Path) -> None:
    definitions.add(running.folder, [program(tmp_path)], [])
    running.begin().apply("app")
    definitions.stop(running.folder, ["app"])
    running.apply("app")
    definitions.remove(running.folder, ["app"])
    assert running.apply("app") == {}
    definitions.add(running.folder, [program(tmp_path)], [])
    assert running.apply("app")["app"].state is State.RUNNING


def test_damaged_definition_leaves_the_others_as_they_were(running: Running, tmp_path: Path) -> None:
    definitions.add(running.folder, [program(tmp_path)], [])
    running.begin().apply("app")
    (running.folder.path / "pipelines/app/pipeline.json").write_text("{")
    assert running.apply("app")["app"].state is State.RUNNING


def test_changed_module_asks_for_another_process(running: Running, tmp_path: Path) -> None:
    module = tmp_path / "rates_of_host_test.py"
    module.write_text("RATE = 1")
    definitions.add(running.folder, [program(tmp_path, "import rates_of_host_test\nrun(PIPELINES['app'])")], [])
    running.begin().apply("app")
    module.write_text("RATE = 1000")
    definitions.restart(running.folder, ["app"])
    running.host.respond(ApplyChanges(("app",), 0.0))
    wait_until(lambda: running.host.renewal is not None)
    assert running.host.renewal == f"app: {module} has changed"


def test_run_in_a_thread_of_the_programs_own_is_refused(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ambient, "_hosting", True)
    refused: list[KasparError] = []

    def in_thread() -> None:
        try:
            run(FakePipeline())
        except KasparError as error:
            refused.append(error)

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert "was started in a thread that its program created" in str(refused[0])


def test_pipeline_that_fails_to_report_is_shown_all_the_same(running: Running, tmp_path: Path) -> None:
    definitions.add(running.folder, [program(tmp_path)], [])

    def fail() -> Any:
        raise ValueError("no")

    vars(PIPELINES["app"]).update(progress=fail, describe=fail)
    running.begin().apply("app")
    assert running.status().progress.lag is None
    response = running.host.respond(DescribePipeline("app"))
    assert isinstance(response, Described)
    assert response.details.description == ""


def test_long_description_is_cut(running: Running, tmp_path: Path) -> None:
    definitions.add(running.folder, [program(tmp_path)], [])
    vars(PIPELINES["app"])["describe"] = lambda: "x" * 1_000_000
    running.begin().apply("app")
    response = running.host.respond(DescribePipeline("app"))
    assert isinstance(response, Described)
    assert len(response.details.description) == LONGEST_DESCRIPTION
