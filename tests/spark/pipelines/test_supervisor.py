"""Pipelines under one supervisor: they share a session, fail, and survive every kill.

All tests have the same supervisor, which is stopped by the last one; each brings it to where it begins.
"""

import itertools
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.pipelines.looking import statuses_of
from kaspar.pipelines.statuses import State
from tests.spark.pipelines.supervised import COUNTING, Counts, Supervised, wait_until


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pipelines")


@pytest.fixture(scope="module")
def program(place: Path) -> Path:
    """With the module beside it."""
    folder = place / "programs"
    folder.mkdir()
    shutil.copy(COUNTING.with_name("steps.py"), folder)
    return Path(shutil.copy(COUNTING, folder))


@pytest.fixture(scope="module")
def left(place: Path) -> Counts:
    return Counts(place / "left")


@pytest.fixture(scope="module")
def right(place: Path) -> Counts:
    return Counts(place / "right")


@pytest.fixture(scope="module")
def supervised(place: Path, program: Path, left: Counts) -> Iterator[Supervised]:
    supervisor = Supervised(place / "supervisor")
    supervisor.start(program, "--name", "left", "--", left.folder)
    try:
        supervisor.wait_for("left", "running")
        yield supervisor
    finally:
        supervisor.stop()


def run_right(supervised: Supervised, program: Path, right: Counts) -> "subprocess.CompletedProcess[str]":
    """Also if it runs, or was stopped."""
    done = supervised.command("run", str(program), "--name", "right", "--", str(right.folder))
    assert done.returncode == 0, done.stderr
    return done


def test_second_program_joins_the_session_of_the_first(
    supervised: Supervised, program: Path, left: Counts, right: Counts
) -> None:
    done = run_right(supervised, program, right)
    assert done.stdout.startswith(f"Passed to the supervisor in {supervised.folder.path}: right.")
    left.wait_for_more(supervised.text)
    right.wait_for_more(supervised.text)
    assert left.lines("session")[-1] == right.lines("session")[-1]
    described = supervised.command("describe", "right").stdout
    assert f"counts rows into {right.folder}" in described
    assert "count-right" in described
    assert supervised.statuses()["right"]["progress"]["batch_ms"] > 0


def test_failing_query_recovers_and_its_reason_is_shown(
    supervised: Supervised, program: Path, left: Counts, right: Counts
) -> None:
    run_right(supervised, program, right)
    before = supervised.statuses()
    (left.folder / "fail").touch()
    failed = before["left"]["restarts"] + 1
    wait_until(lambda: bool(supervised.statuses()["left"]["restarts"] == failed), "it has failed", supervised.text)
    left.wait_for_more(supervised.text)
    listed = supervised.statuses()
    assert listed["left"]["reason"] == "ValueError: told to fail in left"
    assert listed["right"]["restarts"] == before["right"]["restarts"]


def test_stop_lets_the_micro_batch_finish(supervised: Supervised, program: Path, right: Counts) -> None:
    run_right(supervised, program, right)
    end = right.begin_slow_batch(supervised.text)
    done = supervised.command("stop", "right")
    assert (done.returncode, done.stdout) == (0, "right is stopped.\n"), supervised.text()
    assert end in right.lines()
    assert right.lines("session")[-1] == "returned"
    (right.folder / "slow").unlink()


def test_kill_of_the_jvm(supervised: Supervised, left: Counts) -> None:
    before = supervised.statuses()["left"]["restarts"]
    supervised.kill_jvm()
    left.wait_for_more(supervised.text)
    status = supervised.wait_for("left", "running")
    assert status["restarts"] == before + 1
    assert "JVM was killed by SIGKILL" in status["reason"]


def test_kill_of_the_host(supervised: Supervised, left: Counts) -> None:
    supervised.kill_host()
    wait_until(
        lambda: State.RESTARTING in {status.state for status in statuses_of(supervised.folder)},
        "the folder says so meanwhile",
    )
    left.wait_for_more(supervised.text)
    assert "the host was killed by SIGKILL" in supervised.wait_for("left", "running")["reason"]


def test_kill_of_the_supervisor_ends_its_host_and_the_next_one_resumes_what_was_not_stopped(
    supervised: Supervised, program: Path, left: Counts, right: Counts
) -> None:
    run_right(supervised, program, right)
    assert supervised.command("stop", "right").returncode == 0
    host = supervised.folder.host()
    assert host is not None
    assert host.jvm is not None
    supervised.kill()
    processes = (host.process, host.jvm)
    wait_until(lambda: not any(process.is_running() for process in processes), "they end", supervised.text)
    assert {name: status["state"] for name, status in supervised.statuses().items()} == {
        "left": "interrupted",
        "right": "stopped",
    }
    ended = len(right.ended())
    supervised.start()
    left.wait_for_more(supervised.text)
    assert supervised.state("right") == "stopped"
    assert len(right.ended()) == ended


def test_every_micro_batch_was_run_and_in_order(supervised: Supervised, left: Counts) -> None:
    """After all of the above: some were repeated, none was left out."""
    left.wait_for_more(supervised.text)
    batches = left.ended()
    assert sorted(set(batches)) == list(range(batches[-1] + 1))
    assert all(after in (before, before + 1) for before, after in itertools.pairwise(batches))


def test_stopped_pipeline_goes_on_where_it_was(supervised: Supervised, program: Path, right: Counts) -> None:
    run_right(supervised, program, right)
    right.wait_for_more(supervised.text)
    assert supervised.command("stop", "right").returncode == 0
    last = right.ended()[-1]
    done = supervised.command("restart", "right")
    assert done.stdout.startswith("right: running"), done.stdout + done.stderr
    wait_until(lambda: right.ended()[-1] > last, "it goes on", supervised.text)


@pytest.mark.long
def test_restart_takes_up_a_changed_module(supervised: Supervised, program: Path, left: Counts) -> None:
    left.wait_for_more(supervised.text)
    steps = program.with_name("steps.py")
    steps.write_text(steps.read_text().replace("FACTOR = 1", "FACTOR = 3"))
    assert supervised.command("restart", "left").returncode == 0
    wait_until(lambda: left.lines()[-1].endswith(" 30"), "the new module is used", supervised.text)
    assert supervised.wait_for("left", "running")["restarts"] == 0


def test_supervisor_stops_by_a_signal(supervised: Supervised, left: Counts) -> None:
    assert supervised.stop() == 0
    assert left.lines("session")[-1] == "returned"
    assert supervised.state("left") == "interrupted"
