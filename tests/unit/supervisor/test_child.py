"""Child processes: how they end, what they wrote, and that they do not outlive their parent."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kaspar.base.processes import ProcessId
from kaspar.supervisor import child as children
from kaspar.supervisor.child import Child

SECONDS = 20.0


def child(tmp_path: Path, program: str) -> Child:
    return Child([sys.executable, "-c", program], output=tmp_path / "output.log")


def ended(tmp_path: Path, program: str) -> Child:
    started = child(tmp_path, program)
    started.start()
    assert started.wait(SECONDS)
    return started


def test_end_is_described(tmp_path: Path) -> None:
    assert child(tmp_path, "").how_it_ended() == "was not started"
    assert ended(tmp_path, "raise SystemExit(3)").how_it_ended() == "exited with code 3"
    killed = child(tmp_path, "import time; time.sleep(60)")
    killed.start()
    assert killed.how_it_ended() == "is running"
    killed.kill()
    assert not killed.is_running
    assert killed.how_it_ended() == "was killed by SIGKILL"
    assert killed.exit_code == -signal.SIGKILL


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("print('one'); print('kaspar: two'); print('three')", "kaspar: two"),
        ("print('one\\ntwo')", "two"),
        ("print('[12:00] ERROR it failed'); print('  Traceback: Error: x')", "[12:00] ERROR it failed"),
        ("", None),
    ],
)
def test_last_problem_is_an_error_or_the_last_line(tmp_path: Path, program: str, problem: str | None) -> None:
    assert ended(tmp_path, program).last_problem() == problem


def test_last_problem_is_of_the_last_run(tmp_path: Path) -> None:
    (tmp_path / "output.log").write_text("kaspar: of an earlier run\n")
    again = ended(tmp_path, "import os; print(os.getpid())")
    assert again.id is not None
    assert again.last_problem() == str(again.id.pid)
    again.start()
    assert again.wait(SECONDS)
    assert again.last_problem() == str(again.id.pid)


def test_child_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started = child(tmp_path, "import time; time.sleep(60)")
    thread = threading.Thread(target=started.start)
    thread.start()
    thread.join()
    try:
        assert not started.wait(0.3)
    finally:
        started.kill()


def test_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from kaspar.supervisor.child import Child\n"
        "child = Child([sys.executable, '-c', 'import time; time.sleep(60)'], output=Path(sys.argv[1]))\n"
        "child.start(); print(child.id.pid, flush=True); time.sleep(60)"
    )
    line = [sys.executable, "-c", program, str(tmp_path / "output.log")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        orphan = ProcessId.of(int(parent.stdout.readline()))
        assert orphan.is_running()
        parent.kill()
    until = time.monotonic() + SECONDS
    while orphan.is_running():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_large_output_of_earlier_runs_is_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_LARGEST_LOG", 10)
    for text in ("short", "longer than that", "new"):
        ended(tmp_path, f"print({text!r})")
    assert (tmp_path / "output.log.1").read_text() == "short\nlonger than that\n"
    assert (tmp_path / "output.log").read_text() == "new\n"
