"""`kaspar pipeline` beside a host, and on a folder in which nothing runs: output and exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.processes import ProcessId
from kaspar.cli.main import main
from kaspar.cli.pipeline_run import split_arguments
from kaspar.cli.pipeline_text import description, table
from kaspar.pipelines import definitions
from kaspar.pipelines.folder import Definition, Folder, RunningSupervisor, Seen, SessionPlan, Wanted
from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.pipelines.statuses import PipelineDetails, PipelineStatus, QueryStatus, State
from tests.unit.pipelines.fake_host import PIPELINES, Running, program
from tests.unit.pipelines.fakes import FakePipeline

HOUR = 3_600_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Folder(tmp_path / "state/kaspar/pipelines")
    made.make()
    return made


@pytest.fixture
def running(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A host under a supervisor, which the process of the test plays."""
    PIPELINES.clear()
    monkeypatch.setattr(sys, "path", list(sys.path))
    with folder.supervising():
        folder.write_supervisor(RunningSupervisor(ProcessId.of(os.getpid())))
        host = Running(folder).serve()
        yield host
        host.end()


def words(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    return [" ".join(line.split()) for line in (captured.out + captured.err).splitlines()]


def test_program_is_given_to_the_supervisor_that_runs(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "run", str(program(tmp_path)), "--", "--region", "eu"]) == 0
    assert words(capsys) == [
        f"Passed to the supervisor in {running.folder.path}: app.",
        "app: running in 12 rows/s 80 ms a batch lag 3",
    ]
    assert running.folder.definitions()["app"].arguments == ("--region", "eu")


def test_pipelines_of_a_supervisor_are_followed_until_it_ends(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions.add(running.folder, [program(tmp_path), program(tmp_path, "run(PIPELINES['other'])", "other")], [])
    running.apply("app", "other")
    looks = iter([running.folder.supervisor(), running.folder.supervisor(), None])
    monkeypatch.setattr(Folder, "supervisor", lambda folder: next(looks))
    monkeypatch.setattr("kaspar.cli.pipeline_run._FOLLOW_EVERY_S", 0.0)
    assert main(["pipeline", "run", "--follow"]) == 1
    said = words(capsys)
    assert [line.partition(":")[0] for line in said[:-1]] == ["app", "other"]
    assert said[-1] == f"The supervisor of {running.folder.path} has ended."


def test_settings_of_the_session_are_refused_for_a_supervisor_that_runs(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = str(program(tmp_path))
    for more in (["--master", "local[7]"], ["--conf", "spark.driver.memory=1g"], ["--metrics", "127.0.0.1:0"]):
        assert main(["pipeline", "run", app, *more]) == 1
        assert "--master, --conf and --metrics take effect only at its start" in words(capsys)[0]
    assert running.folder.names() == []
    assert main(["pipeline", "run"]) == 1
    assert "a supervisor is already running" in words(capsys)[0]


def test_pipelines_are_listed(running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    definitions.add(running.folder, [program(tmp_path)], [])
    running.apply("app")
    assert main(["pipeline", "list"]) == 0
    assert words(capsys) == [
        "name state since restarts rows/s lag batch ms state size",
        "app running 0 s 0 12 3 80 -",
    ]
    assert main(["pipeline", "list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["name"], listed["state"], listed["progress"]["lag"]) == ("app", "running", 3)


def test_pipeline_is_described(running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    definitions.add(running.folder, [program(tmp_path)], ["an argument"])
    running.apply("app")
    assert main(["pipeline", "describe", "app"]) == 0
    assert words(capsys) == [
        "app: running for 0 s, restarts: 0",
        f"program {tmp_path}/app.py 'an argument'",
        f"log {running.folder.log('app')}",
        "progress in 12 rows/s, 80 ms a batch, lag 3",
        "query query (8a1c): Waiting for data to arrive",
        "",
        "orders -> totals",
    ]
    assert main(["pipeline", "describe", "app", "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["arguments"] == ["an argument"]
    assert main(["pipeline", "describe", "gone"]) == 1
    assert words(capsys) == [f"kaspar: there is no pipeline gone in {running.folder.path} (pipelines: app)"]


def test_pipeline_is_stopped_restarted_and_removed(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    definitions.add(running.folder, [program(tmp_path)], [])
    running.apply("app")
    assert main(["pipeline", "stop", "app"]) == 0
    assert running.status().state is State.STOPPED
    assert main(["pipeline", "restart", "app"]) == 0
    assert running.status().state is State.RUNNING
    assert PIPELINES["app"].starts == 2
    assert main(["pipeline", "remove", "--all"]) == 0
    assert running.folder.names() == []
    assert words(capsys) == ["app is stopped.", "app: running in 12 rows/s 80 ms a batch lag 3", "Removed app."]
    assert main(["pipeline", "list"]) == 0
    assert words(capsys) == [f"No pipelines in {running.folder.path}: 'kaspar pipeline run PROGRAM' runs one."]


def test_failing_pipeline_is_listed_with_its_reason(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    PIPELINES["app"] = FakePipeline("app", ["refuse"] * 100)
    assert main(["pipeline", "run", str(program(tmp_path))]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "app: failed: ValueError: refused   1 restart"


@pytest.mark.parametrize("command", ["stop", "restart", "remove"])
def test_names_or_all(command: str, folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.define("app", Definition("/app.py", (), 1))
    for arguments in ([], ["app", "--all"]):
        assert main(["pipeline", command, *arguments]) == 1
        assert words(capsys) == ["kaspar: name one or more pipelines, or use --all"]
    assert main(["pipeline", command, "gone"]) == 1
    assert words(capsys) == [f"kaspar: there is no pipeline gone in {folder.path} (pipelines: app)"]


def test_without_a_supervisor_changes_are_kept_for_the_next_one(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.define("app", Definition("/app.py", (), 1))
    folder.write_seen("app", Seen(1, PipelineStatus("app", State.RUNNING, 0)))
    assert main(["pipeline", "list"]) == 0
    assert "app interrupted" in words(capsys)[1]
    assert main(["pipeline", "stop", "app"]) == 0
    assert definitions.known(folder, "app").wanted is Wanted.STOPPED
    assert main(["pipeline", "restart", "app"]) == 1
    assert definitions.known(folder, "app").wanted is Wanted.RUNNING
    assert words(capsys)[-1] == (
        f"kaspar: no supervisor is running in {folder.path}: 'kaspar pipeline run' starts one, with app"
    )
    assert main(["pipeline", "remove", "app"]) == 0
    assert folder.names() == []


def test_folder_may_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "stop", "app", "--dir", str(tmp_path / "none")]) == 1
    assert words(capsys) == [f"kaspar: there are no pipelines in {tmp_path}/none"]
    assert not (tmp_path / "none").exists()


def test_run_refuses_what_cannot_run(folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.py").write_text("if")
    for arguments, sentence in (
        ([], f"kaspar: no pipelines to run in {folder.path}"),
        (["--", "x"], "kaspar: arguments after -- are for a program"),
        ([str(tmp_path / "gone.py")], f"kaspar: the program {tmp_path}/gone.py cannot be read"),
        ([str(tmp_path / "broken.py")], f"kaspar: the program {tmp_path}/broken.py is not valid Python, line 1"),
        (["--conf", "x"], "kaspar: --conf x is not NAME=VALUE"),
    ):
        assert main(["pipeline", "run", *arguments]) == 1
        (said,) = words(capsys)
        assert said.startswith(sentence)


def test_run_without_pyspark_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["pipeline", "run", "app.py"]) == 1
    assert words(capsys) == ["kaspar: PySpark is not installed: pip install 'kaspar[spark]'"]


def test_settings_of_the_session_are_kept(folder: Folder) -> None:
    """Also by a start that fails for another reason."""
    start = ["pipeline", "run", "--master", "local[2]", "--conf", "spark.a=1", "--conf", "spark.b=x=y"]
    assert main(start) == 1
    assert folder.session() == SessionPlan("local[2]", {"spark.a": "1", "spark.b": "x=y"})
    assert main(["pipeline", "run", "--conf", "spark.a="]) == 1
    assert folder.session() == SessionPlan("local[2]", {"spark.b": "x=y"})


def test_arguments_of_programs_follow_two_dashes() -> None:
    assert split_arguments(["a.py", "--", "-x", "--", "y"]) == (["a.py"], ["-x", "--", "y"])
    assert split_arguments(["a.py", "-x"]) == (["a.py", "-x"], [])


def test_table_shows_reasons_of_those_that_do_not_run() -> None:
    fine = PipelineStatus("a", State.RUNNING, 0, 1, "before", 0, PipelineProgress(state_bytes=5_000_000))
    failing = PipelineStatus("longer-name", State.FAILED, HOUR, 12, "topic x does not exist", HOUR)
    assert table([fine, failing], 2 * HOUR) == [
        "name         state    since      restarts  rows/s  lag  batch ms  state size",
        "a            running  2 h 0 min         1       -    -         -      5.0 MB",
        "longer-name  failed   1 h 0 min        12       -    -         -           -",
        "  topic x does not exist",
    ]


def test_description_shows_the_last_error_and_the_time_of_events() -> None:
    status = PipelineStatus(
        "a",
        State.RUNNING,
        0,
        1,
        "boom",
        HOUR,
        PipelineProgress(stream_time_ms=0, dropped={"late": 1200, "deserialization": 1}),
    )
    queries = (QueryStatus("", "8a1c", False, "Stopped"),)
    lines = description(PipelineDetails(status, "a.py", (), "a.log", queries), 2 * HOUR)
    assert lines[3].split()[0] == "time"
    assert lines[3].endswith("(of events)")
    assert lines[4] == "  dropped    1 deserialization, 1,200 late"
    assert lines[5:] == ["  query      without a name (8a1c): has ended", "  last error boom (1 h 0 min ago)"]


def test_reader_of_the_output_may_end_early(folder: Folder) -> None:
    command = [sys.executable, "-m", "kaspar.cli.main", "pipeline", "list", "--json"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        ended = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "")
